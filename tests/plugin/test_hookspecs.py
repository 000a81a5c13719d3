"""The contract, its documentation and its tutorial say the same, and the tutorial's code runs."""

import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gm_chat.host.validation import SPECS
from gm_chat.plugin import hookspecs
from gm_chat.testing import make_host

ROOT = Path(__file__).resolve().parents[2]
HOOKS = (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")
TUTORIAL = (ROOT / "docs" / "tutorial-audit-plugin.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### `(\w+\([^)]*\))`\n(.*?)(?=^#|\Z)", HOOKS, re.MULTILINE | re.DOTALL))


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_every_hook_is_documented_with_its_arguments_and_no_other() -> None:
    assert list(SECTIONS) == [f"{spec.name}({', '.join(spec.arguments)})" for spec in SPECS.values()]


@pytest.mark.parametrize("name", SPECS)
def test_each_says_when_what_and_what_an_exception_means(name: str) -> None:
    spec = SPECS[name]
    section = SECTIONS[f"{name}({', '.join(spec.arguments)})"]
    assert re.findall(r"^\*\*(\w+|An exception)\*\*", section, re.MULTILINE) == [
        "Fires",
        "Arguments",
        "Returns",
        "An exception",
        "Since",
    ]
    listed = section.partition("**Arguments**")[2].partition("**Returns**")[0]
    assert re.findall(r"`(\w+)`,", listed) == list(spec.arguments)
    [since] = re.findall(r"Since contract (\d+)", inspect.getdoc(getattr(hookspecs, name)) or "")
    assert f"**Since** contract {since}." in section


@pytest.mark.parametrize("name", SPECS)
def test_a_specification_is_never_called(name: str) -> None:
    with pytest.raises(AssertionError):
        getattr(hookspecs, name)(*SPECS[name].arguments)


def test_the_example_is_a_plugin() -> None:
    [code] = blocks(HOOKS, "python")
    from types import ModuleType

    plugin = ModuleType("acme_weather")
    exec(code, vars(plugin))  # noqa: S102 - our own documentation
    assert [tool.definition.name for tool in make_host(weather=plugin).tools] == ["forecast"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The tutorial's files, and the metadata that installing them would write."""
    for block in [*blocks(TUTORIAL, "toml"), *blocks(TUTORIAL, "python")]:
        name, _, text = block.partition("\n")
        file = tmp_path / name.removeprefix("# ")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (tmp_path / "src" / "acme_chat_audit" / "__init__.py").touch()
    declared = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = tmp_path / "src" / "acme_chat_audit-1.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {declared['name']}\nVersion: {declared['version']}\n", encoding="utf-8"
    )
    entries = "\n".join(f"{name} = {value}" for name, value in declared["entry-points"]["gm_chat"].items())
    (info / "entry_points.txt").write_text(f"[gm_chat]\n{entries}\n", encoding="utf-8")
    return tmp_path


def run(project: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=project,
        env={
            **{key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "COV"))},
            "PYTHONPATH": os.pathsep.join([str(project / "src"), str(ROOT)]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_tutorial_s_tests_pass(project: Path) -> None:
    output = run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:django", "tests")
    assert re.search(r"^\d+ passed", output, re.MULTILINE)


def test_the_tutorial_s_plugin_is_found_and_takes_events(project: Path) -> None:
    script = """
import asyncio
from gm_chat.audit import AuditPolicy
from gm_chat.engine.audit import AuditTrail
from gm_chat.host import PluginHost
from gm_chat.plugin import Actor, TurnContext

scope = {}
exec(open("settings.py").read(), scope)
options = scope["GM_CHAT"]["plugins"]
options["acme_audit"]["path"] = "chat.jsonl"
host = PluginHost.build(core=[], enabled=["acme-chat-audit"], options=options)
assert not host.problems, host.problems
trail = AuditTrail(host.audit_sinks, AuditPolicy(level=scope["GM_CHAT"]["audit"]["level"]))
asyncio.run(trail.user_message(TurnContext("t", "c", Actor(user_id="7"), "hello", "http")))
print(open("chat.jsonl").read())
"""
    event = json.loads(run(project, "-c", script))
    assert (event["event_type"], event["actor"], event["content"]) == ("user_message", "user:7", "hello")
