import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from gm_chat.host import PluginHost
from gm_chat.management.commands import gm_chat_plugins
from gm_chat.plugin import hookimpl
from gm_chat.testing import make_host


def plugin(**hooks: Callable[..., Any]) -> ModuleType:
    made = ModuleType("acme")
    for name, function in hooks.items():
        setattr(made, f"gm_chat_{name}", hookimpl(function))
    return made


def nothing() -> list[Any]:
    return []


def fail() -> list[Any]:
    raise OSError("no network")


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    def run(host: PluginHost, *arguments: str) -> str:
        monkeypatch.setattr(gm_chat_plugins, "get_runtime", lambda: SimpleNamespace(host=host))
        out = StringIO()
        try:
            call_command("gm_chat_plugins", *arguments, stdout=out, no_color=True)
        except CommandError as error:
            return f"{out.getvalue()}!{error.returncode} {error}"
        return out.getvalue()

    return run


MIXED = {"good": plugin(tools=nothing, urls=nothing), "broken": SystemExit(3), "misspelt": plugin(tool=nothing)}


def test_a_table_in_columns_with_the_problems_below(show: Callable[..., str]) -> None:
    lines = show(make_host(MIXED, strict=False)).splitlines()
    assert [line.split() for line in lines[:4]] == [
        ["PLUGIN", "STATE", "DISTRIBUTION", "VERSION", "HOOKS"],
        ["broken", "failed", "test-broken", "0", "-"],
        ["good", "active", "test-good", "0", "tools,", "urls"],
        ["misspelt", "refused", "test-misspelt", "0", "tools"],
    ]
    assert (
        len(
            {
                line.index(column)
                for line, column in zip(lines[:4], ["STATE", "failed", "active", "refused"], strict=True)
            }
        )
        == 1
    )
    text = "\n".join(lines)
    assert "error: plugin 'broken' (test-broken 0): importing it failed with SystemExit: 3." in text
    assert "error: plugin 'misspelt' (test-misspelt 0), gm_chat_tool: there is no such hook." in text
    assert text.endswith("!1 2 plugin errors.")


def test_warnings_alone_are_no_failure(show: Callable[..., str]) -> None:
    text = show(make_host(acme=plugin(tools=fail), strict=False))
    assert "warning: plugin 'acme' (test-acme 0), gm_chat_tools: it failed: OSError: no network." in text
    assert "!" not in text


def test_json_has_everything(show: Callable[..., str]) -> None:
    text, _, status = show(make_host(MIXED, strict=False), "--json").rpartition("!")
    shown = json.loads(text)
    assert [item["name"] for item in shown["plugins"]] == ["broken", "good", "misspelt"]
    assert shown["plugins"][1] == {
        "name": "good",
        "distribution": "test-good",
        "version": "0",
        "state": "active",
        "hooks": ["gm_chat_tools", "gm_chat_urls"],
    }
    assert {item["plugin"]: item["severity"] for item in shown["problems"]} == {"broken": "error", "misspelt": "error"}
    assert status == "1 2 plugin errors."


def test_one_hook_only(show: Callable[..., str]) -> None:
    text = show(make_host(MIXED, strict=False), "--hook", "gm_chat_urls")
    assert "good" in text
    assert "broken" not in text
    assert "misspelt" not in text


def test_a_misspelt_hook_is_named(show: Callable[..., str]) -> None:
    text = show(make_host(), "--hook", "gm_chat_tool")
    assert text == "!1 There is no hook 'gm_chat_tool'. Did you mean 'gm_chat_tools'?"


def test_invalid_settings_are_one_line() -> None:
    with (
        override_settings(GM_CHAT={"enabled": True, "max_reslts": 3}),
        pytest.raises(CommandError, match="max_results"),
    ):
        call_command("gm_chat_plugins", stdout=StringIO())


def test_the_core_is_listed_through_the_real_runtime() -> None:
    out = StringIO()
    call_command("gm_chat_plugins", "--json", "--hook", "gm_chat_permission_checks", stdout=out)
    [core] = json.loads(out.getvalue())["plugins"]
    assert (core["name"], core["distribution"], core["state"]) == ("core", "gm-chat", "active")


BROKEN = {
    "import_error": "import a_module_that_nobody_has",
    "syntax_error": "def broken(:",
    "system_exit": "raise SystemExit(3)",
    "misspelt": "from gm_chat.plugin import hookimpl\n@hookimpl\ndef gm_chat_tool(): return []",
    "async_hook": "from gm_chat.plugin import hookimpl\n@hookimpl\nasync def gm_chat_tools(): return []",
    "other_contract": "GM_CHAT_CONTRACT = 99",
}


@pytest.fixture
def broken_site(tmp_path: Path) -> Path:
    for number, (name, source) in enumerate([*BROKEN.items(), ("twin", ""), ("twin", "")]):
        info = tmp_path / f"acme_{number}-1.{number}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme-{number}\nVersion: 1.{number}\n")
        (info / "entry_points.txt").write_text(f"[gm_chat]\n{name} = acme_module_{number}\n")
        (tmp_path / f"acme_module_{number}.py").write_text(textwrap.dedent(source))
    return tmp_path


@pytest.mark.parametrize("command", [["gm_chat_plugins"], ["check"]])
def test_broken_plugins_are_named_on_the_command_line(command: list[str], broken_site: Path) -> None:
    tests = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "django", *command],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, [broken_site, tests, tests.parent])),
            "DJANGO_SETTINGS_MODULE": "testproject.settings",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    text = done.stdout + done.stderr
    assert done.returncode == 1, text
    assert "Traceback" not in text
    for number, name in enumerate([*BROKEN, "twin", "twin"]):
        assert f"plugin '{name}' (acme-{number} 1.{number})" in text
