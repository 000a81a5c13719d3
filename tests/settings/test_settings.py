"""The doors that the rest of the project uses: read from Django, cached, reset."""

import os
import subprocess
import sys
from typing import Any

import pytest
from django.test import override_settings

from gm_chat.settings import (
    ChatConfigurationError,
    get_chat_settings,
    import_callable,
    suggestion,
    tolerated_names,
    validate_chat_settings,
)


def may_chat(user: object, scope: object) -> None:
    """A permission that a path can name."""


def test_both_django_settings_are_read_and_ours_wins() -> None:
    with override_settings(GENERAL_MANAGER={"CHAT": {"max_results": 1, "ttl_hours": 2}}, GM_CHAT={"max_results": 3}):
        settings = get_chat_settings()
        assert (settings.max_results, settings.ttl_hours) == (3, 2)


@pytest.mark.parametrize("general", [None, {}, {"OTHER": 1}, {"CHAT": None}])
def test_either_may_be_absent(general: object) -> None:
    with override_settings(GENERAL_MANAGER=general, GM_CHAT=None):
        assert get_chat_settings().max_results == 200


def test_the_result_is_cached_until_a_setting_changes() -> None:
    with override_settings(GM_CHAT={"max_results": 5}):
        first = get_chat_settings()
        assert get_chat_settings() is first
        with override_settings(DEBUG=True):
            assert get_chat_settings() is first
        with override_settings(GENERAL_MANAGER={"CHAT": {"ttl_hours": 1}}):
            assert get_chat_settings().ttl_hours == 1
        assert get_chat_settings().max_results == 5
    assert get_chat_settings().max_results == 200


def test_an_error_is_not_cached() -> None:
    with override_settings(GM_CHAT={"max_results": 0}):
        for _ in range(2):
            with pytest.raises(ChatConfigurationError):
                get_chat_settings()
    assert get_chat_settings().enabled


def test_the_environment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GM_CHAT_MAX_RESULTS", "9")
    get_chat_settings.cache_clear()
    try:
        assert get_chat_settings().max_results == 9
    finally:
        get_chat_settings.cache_clear()


@pytest.mark.parametrize(
    "settings",
    [
        {"GM_CHAT": ["enabled"]},
        {"GM_CHAT": "enabled"},
        {"GM_CHAT": {1: 2}},
        {"GENERAL_MANAGER": {"CHAT": 5}},
    ],
)
def test_a_source_must_be_a_mapping(settings: dict[str, Any]) -> None:
    with override_settings(**settings), pytest.raises(ChatConfigurationError) as caught:
        get_chat_settings()
    assert str(caught.value) == str(ChatConfigurationError.invalid_settings_mapping())


def test_so_must_general_manager() -> None:
    with (
        override_settings(GENERAL_MANAGER=["CHAT"]),
        pytest.raises(ChatConfigurationError, match="GENERAL_MANAGER must"),
    ):
        get_chat_settings()


def test_beside_a_real_general_manager_unknown_keys_are_tolerated() -> None:
    chat = {"CHAT": {"newer": 1, "max_results": 4}}
    with override_settings(GENERAL_MANAGER=chat):
        assert tolerated_names() == []
        with pytest.raises(ChatConfigurationError, match="newer"):
            get_chat_settings()
    with pytest.MonkeyPatch.context() as patch:
        from django.conf import settings

        patch.setattr(settings, "INSTALLED_APPS", [*settings.INSTALLED_APPS, "general_manager.apps.Config"])
        with override_settings(GENERAL_MANAGER=chat):
            assert get_chat_settings().max_results == 4
            assert [name.path for name in tolerated_names()] == [("newer",)]
    get_chat_settings.cache_clear()


def test_validation_imports_the_permission() -> None:
    with override_settings(GM_CHAT={"permission": may_chat}):
        assert validate_chat_settings() is get_chat_settings()
    with override_settings(GM_CHAT={"permission": "os.path.join"}):
        assert validate_chat_settings().permission == "os.path.join"
    for path, reason in (("os.path.jion", "jion"), ("no_such_package.x", "no_such_package"), ("os.path.sep", "str")):
        with override_settings(GM_CHAT={"permission": path}):
            assert get_chat_settings().permission == path
            with pytest.raises(ChatConfigurationError, match=f"'permission'.*{reason}"):
                validate_chat_settings()


def test_a_module_that_ends_the_process_when_imported_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(path: str) -> object:
        sys.exit(3)

    monkeypatch.setattr("gm_chat.settings.import_string", leave)
    with pytest.raises(ChatConfigurationError, match="SystemExit: 3"):
        import_callable("project.may_chat", setting="permission")


def test_import_callable() -> None:
    assert import_callable(may_chat, setting="permission") is may_chat
    assert import_callable("os.path.join", setting="permission") is os.path.join


def test_suggestion() -> None:
    assert suggestion("provder", ["provider", "url"]) == "Did you mean 'provider'?"
    assert suggestion("zzz", ["provider", "url"]) == "Known: provider, url."
    assert suggestion("zzz", []) == "There is none."


def test_importing_needs_no_configured_django_and_no_environment_reader() -> None:
    code = (
        "import sys, gm_chat.settings as s; from django.conf import settings;"
        "assert not settings.configured; assert 'graphql' not in sys.modules;"
        "settings.configure(INSTALLED_APPS=[]); assert s.get_chat_settings().enabled is False;"
        "assert 'pydantic_settings' not in sys.modules"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GM_CHAT_", "DJANGO_"))}
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, env=environment, timeout=60)
