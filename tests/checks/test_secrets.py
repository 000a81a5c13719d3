"""Keys in settings files: named where version control knows the file, and never quoted."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from gm_chat.checks import secrets
from gm_chat.checks.secrets import secret_findings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KEY = "sk-0123456789abcdefghij"

SETTINGS = f"""
import os
SECRET_KEY = "django-has-a-check-of-its-own"
OPENAI = "{KEY}"
GM_CHAT = {{
    "provider_config": {{"api_key": "not-a-vendors-look", "max_tokens": 5, "model": "gpt-4.1-mini"}},
    "provider_profiles": {{"spare": {{"provider_config": {{"api_key": os.environ["KEY"], "base_url": "https://u:pw@h"}}}}}},
    "plugins": {{"acme": {{"token": "a-token-of-acme", "keyword": "not-a-secret", "key": ""}}}},
}}
GM_CHAT["provider_config"]["password"] = "set-afterwards"
OTHER = {{"api_key": "of-somebody-else"}}
"""


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make a settings module of this text, in a repository that knows it or not."""

    def make(text: str = SETTINGS, *, repository: bool = True, tracked: bool = True) -> None:
        path = tmp_path / "planted_settings.py"
        path.write_text(text, "utf-8")
        if repository:
            subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
        if tracked:
            subprocess.run(["git", "add", path.name], cwd=tmp_path, check=True)
        module = ModuleType("planted_settings")
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, "planted_settings", module)
        monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "planted_settings")

    return make


def test_each_literal_is_named_and_none_is_quoted(plant: Any) -> None:
    plant()
    found = [(finding.msg, finding.hint, finding.id) for finding in secret_findings()]
    places = [message.partition("planted_settings.py, ")[2].partition(" is written")[0] for message, _, _ in found]
    assert places == [
        "line 4: the chat's 'OPENAI'",
        "line 6: the chat's 'api_key'",
        "line 7: the chat's 'base_url'",
        "line 8: the chat's 'token'",
        "line 10: the chat's 'password'",
    ]
    assert {id for _, _, id in found} == {"gm_chat.W021"}
    text = repr(found)
    assert not any(value in text for value in (KEY, "not-a-vendors-look", "u:pw", "a-token-of-acme", "set-afterwards"))


@pytest.mark.parametrize(("repository", "tracked"), [(False, False), (True, False)])
def test_a_file_that_git_does_not_know_is_nobody_s_business(plant: Any, repository: bool, tracked: bool) -> None:
    plant(repository=repository, tracked=tracked)
    assert list(secret_findings()) == []


@pytest.mark.parametrize("error", [FileNotFoundError("git"), subprocess.TimeoutExpired("git", 2)])
def test_without_git_it_is_silent(plant: Any, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    plant()

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(secrets.subprocess, "run", fail)
    assert list(secret_findings()) == []


@pytest.mark.parametrize("text", ["def (", "", "GM_CHAT = {**{}}", "\0"])
def test_what_cannot_be_read_says_nothing(plant: Any, text: str) -> None:
    plant(text)
    assert list(secret_findings()) == []


def test_no_settings_module_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE")
    assert list(secret_findings()) == []
