"""Faults X1 and X2 with real distributions: the host stays up, the others work, each culprit is named."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from gm_chat.host import PluginHost, PluginRecord, Problem
from gm_chat.plugin import PluginError

Install = Callable[..., None]

GOOD = """
from gm_chat.plugin import ToolDefinition, ToolSpec, hookimpl

async def run(args, context):
    return __name__

@hookimpl
def gm_chat_tools():
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    yield ToolSpec(definition=ToolDefinition(__name__, "A tool.", schema), run=run)
"""
HOOK = "from gm_chat.plugin import hookimpl\n"
EMPTY = "\n    return []"
BROKEN = {
    "import_error": ("import a_module_that_nobody_has", "failed", "ModuleNotFoundError"),
    "syntax_error": ("def broken(:\n    pass", "failed", "SyntaxError"),
    "system_exit": ("import sys\nsys.exit(3)", "failed", "SystemExit: 3"),
    "misspelt_hook": (
        HOOK + "@hookimpl\ndef gm_chat_tool():" + EMPTY,
        "refused",
        "Did you mean 'gm_chat_tools'?",
    ),
    "misspelt_argument": (
        HOOK + "@hookimpl\ndef gm_chat_tools(option):" + EMPTY,
        "refused",
        "Did you mean 'options'?",
    ),
    "async_hook": (HOOK + "@hookimpl\nasync def gm_chat_tools():\n    return []", "refused", "async def"),
    "async_generator": (HOOK + "@hookimpl\nasync def gm_chat_tools():\n    yield 1", "refused", "async def"),
    "other_contract": (HOOK + "GM_CHAT_CONTRACT = 2\n" + GOOD, "refused", "contract 2"),
    "old_contract": (HOOK + "GM_CHAT_CONTRACT = 0\n" + GOOD, "refused", "Upgrade the plugin."),
    "forgotten_marker": ("def gm_chat_tools():\n    return []", "refused", "@hookimpl"),
    "default_argument": (HOOK + "@hookimpl\ndef gm_chat_tools(options=None):\n    return []", "refused", "default"),
    "any_arguments": (HOOK + "@hookimpl\ndef gm_chat_tools(**arguments):\n    return []", "refused", "'**arguments'"),
    "keyword_only": (HOOK + "@hookimpl\ndef gm_chat_tools(*, options):\n    return []", "refused", "'options'"),
    "wrapper": (HOOK + "@hookimpl(wrapper=True)\ndef gm_chat_tools():\n    return (yield)", "refused", "wrappers"),
    "specname": (HOOK + "@hookimpl(specname='gm_chat_tools')\ndef mine():\n    return []", "refused", "specname"),
    "unreadable_error": (
        "class Error(Exception):\n    def __str__(self):\n        raise OSError\nraise Error",
        "failed",
        "Error: (its message cannot be read: OSError)",
    ),
    "unprintable_error": (
        "raise ValueError('a\\ud800\\x00\\x1b[31m\\nb' + 9_000 * 'c')",
        "failed",
        "ValueError: a\ufffd\ufffd\ufffd[31m bccc",
    ),
    "raising_lookup": ("def __dir__():\n    raise OSError('no')", "refused", "OSError: no"),
}


def build(**options: object) -> PluginHost:
    return PluginHost.build(core=[], **options)  # type: ignore[arg-type]  # each test passes right ones


def ours(host: PluginHost) -> dict[str, PluginRecord]:
    """Without the plugins that the environment happens to have installed."""
    return {record.name: record for record in host.plugins if record.distribution.startswith("acme-")}


def problems_of(host: PluginHost, name: str) -> list[Problem]:
    return [problem for problem in host.problems if problem.plugin == name]


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_plugin_between_two_good_ones_is_named_and_alone(kind: str, install: Install) -> None:
    source, state, message = BROKEN[kind]
    install("acme-a", "1.0", "a_good", "acme_a", GOOD)
    install("acme-broken", "3.1", f"b_{kind}", "acme_broken", source)
    install("acme-z", "1.0", "z_good", "acme_z", GOOD)

    host = build()

    assert {name: record.state for name, record in ours(host).items()} == {
        "a_good": "active",
        f"b_{kind}": state,
        "z_good": "active",
    }
    names = [tool.definition.name for tool in host.tools]
    assert names.index("acme_a") < names.index("acme_z")
    [problem] = problems_of(host, f"b_{kind}")
    assert (problem.distribution, problem.version, problem.severity) == ("acme-broken", "3.1", "error")
    assert message in str(problem)
    assert "acme-broken 3.1" in str(problem)


def test_keyboard_interrupt_is_not_swallowed(install: Install) -> None:
    install("acme-a", "1.0", "a", "acme_a", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        build()


def test_of_two_plugins_with_one_name_neither_wins(install: Install) -> None:
    install("acme-one", "1.0", "twin", "acme_one", GOOD)
    install("acme-two", "2.0", "twin", "acme_two", GOOD)
    host = build()
    twins = [record for record in host.plugins if record.name == "twin"]
    assert [(twin.distribution, twin.state) for twin in twins] == [("acme-one", "refused"), ("acme-two", "refused")]
    assert not {"acme_one", "acme_two"} & {tool.definition.name for tool in host.tools}
    for problem in problems_of(host, "twin"):
        assert "acme-one 1.0 and acme-two 2.0" in problem.message
        assert problem.severity == "error"
    assert "acme_one" not in sys.modules

    chosen = build(disabled=["acme_one"])
    assert "acme_two" in {tool.definition.name for tool in chosen.tools}
    assert problems_of(chosen, "twin") == []


def test_disabled_plugins_are_never_imported(install: Install) -> None:
    install("acme-a", "1.0", "a", "acme_a", "raise SystemExit")
    host = build(disabled=["a"])
    assert ours(host)["a"].state == "disabled"
    assert problems_of(host, "a") == []
    assert "acme_a" not in sys.modules


def test_only_enabled_plugins_are_imported_and_blocked_wins(install: Install) -> None:
    for name in "abc":
        install(f"acme-{name}", "1.0", name, f"acme_{name}", GOOD)
    host = build(enabled=["a", "acme.C"], disabled=["c"])
    assert {name: record.state for name, record in ours(host).items()} == {
        "a": "active",
        "b": "disabled",
        "c": "disabled",
    }
    assert {tool.definition.name for tool in host.tools} == {"acme_a"}
    assert not {"acme_b", "acme_c"} & set(sys.modules)


def test_a_list_that_names_nothing_installed_is_a_warning(install: Install) -> None:
    install("acme-weather", "1.0", "weather", "acme_weather", GOOD)
    [problem] = problems_of(build(disabled=["wether"]), "wether")
    assert problem.severity == "warning"
    assert problem.hint == "Did you mean 'weather'?"


def test_settings_for_nobody_are_a_warning(install: Install) -> None:
    install("acme-weather", "1.0", "weather", "acme_weather", GOOD)
    [problem] = problems_of(build(options={"wether": {}}), "wether")
    assert problem.severity == "warning"
    assert problem.hint == "Did you mean 'weather'?"


def test_metadata_without_a_version_hides_no_plugin(install: Install, site: Path) -> None:
    install("acme-a", "1.0", "a", "acme_a", GOOD)
    (site / "acme_a-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-a\n")
    record = ours(build())["a"]
    assert record.state == "active"
    assert record.version in {"unknown version", "None", ""}


def test_an_environment_that_cannot_be_listed_leaves_the_host_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("disk")

    monkeypatch.setattr("gm_chat.host.facade.installed_entry_points", fail)
    host = build()
    assert host.plugins == ()
    assert "OSError: disk" in host.problems[0].message


def test_two_entry_points_to_one_module_are_reported(install: Install, site: Path) -> None:
    install("acme-a", "1.0", "first", "acme_a", GOOD)
    (site / "acme_a-1.0.dist-info" / "entry_points.txt").write_text("[gm_chat]\nfirst = acme_a\nsecond = acme_a\n")
    host = build()
    assert sorted(record.state for record in ours(host).values()) == ["active", "refused"]
    assert "acme_a" in {tool.definition.name for tool in host.tools}
    assert "already registered" in host.problems[0].message


def test_the_lot_at_once_in_a_process_of_its_own(install: Install, site: Path) -> None:
    """What an operator sees: Django starts, the good plugin works, and JSON names all the others."""
    for number, (kind, (source, _, _)) in enumerate(BROKEN.items()):
        install(f"acme-{kind.replace('_', '-')}", "1.0", kind, f"acme_{number}", source)
    install("acme-one", "1.0", "twin", "acme_one", GOOD)
    install("acme-two", "2.0", "twin", "acme_two", GOOD)
    install("acme-good", "1.0", "good", "acme_good", GOOD)
    script = """
        import json, django
        django.setup()
        from gm_chat.defaults import core_plugins
        from gm_chat.host import PluginHost
        from gm_chat.settings import get_chat_settings
        host = PluginHost.build(core=core_plugins(get_chat_settings()))
        print(json.dumps({
            "tools": [tool.definition.name for tool in host.tools],
            "states": {record.name: record.state for record in host.plugins},
            "named": sorted({problem.plugin for problem in host.problems}),
        }))
    """
    tests = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(site), str(tests), str(tests.parent)]),
            "DJANGO_SETTINGS_MODULE": "testproject.settings",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert "acme_good" in seen["tools"]
    assert {kind: seen["states"][kind] for kind in BROKEN} == {kind: state for kind, (_, state, _) in BROKEN.items()}
    assert {*BROKEN, "twin"} <= set(seen["named"])


@pytest.mark.parametrize(
    ("hook", "handed_out", "message"),
    [
        ("gm_chat_tools", "Evil()", "it handed out a Evil that cannot be examined: OSError: __class__"),
        ("gm_chat_providers", "ProviderSpec(name=['x'], build=print)", "ProviderSpec.name is ['x']: expected text"),
        ("gm_chat_providers", "ProviderSpec(name='', build=print)", "whose name is '', not text"),
        ("gm_chat_providers", "ProviderSpec(name='x', build=5)", "ProviderSpec.build is 5"),
        ("gm_chat_tools", "ToolSpec(definition=ToolDefinition('x', '', {}), run=5)", "ToolSpec.run is 5"),
        (
            "gm_chat_tools",
            "ToolSpec(definition=ToolDefinition('x', '', {}), run=print, kind='w')",
            "ToolSpec.kind is 'w'",
        ),
        ("gm_chat_tools", "ToolSpec(definition=None, run=print)", "it failed: AttributeError"),
    ],
)
def test_what_cannot_be_used_is_named(hook: str, handed_out: str, message: str, install: Install) -> None:
    source = f"""
        from gm_chat.plugin import ProviderSpec, ToolDefinition, ToolSpec, hookimpl

        class Evil:
            def __getattribute__(self, name):
                raise OSError(name)

        @hookimpl
        def {hook}():
            yield {handed_out}
    """
    install("acme-x", "1.0", "x", "acme_x", source)
    (problem,) = problems_of(build(), "x")
    assert problem.hook == hook
    assert message in problem.message


def test_a_check_that_cannot_be_shown_is_named(install: Install) -> None:
    source = """
        from gm_chat.plugin import CheckResult, hookimpl

        @hookimpl
        def gm_chat_system_checks():
            return [CheckResult(id="x.W1", level="nosuch", message="m")]
    """
    install("acme-x", "1.0", "x", "acme_x", source)
    (result,) = [found for found in build().system_checks() if "'x'" in found.message]
    assert "CheckResult.level is 'nosuch': expected one of debug, info" in result.message


@pytest.mark.parametrize(
    ("described", "message"), [("raise SystemExit(4)", "SystemExit: 4"), ("return [5]", "it gave a int")]
)
def test_a_manager_source_that_cannot_describe_is_named(described: str, message: str, install: Install) -> None:
    source = f"""
        from gm_chat.plugin import hookimpl

        class Source:
            name = "acme"
            def describe(self): {described}
            async def visibility(self, actor): ...
            async def execute(self, plan, actor, *, deadline): ...
            async def mutate(self, call, actor, *, deadline): ...

        @hookimpl
        def gm_chat_manager_sources():
            return [Source()]
    """
    install("acme-x", "1.0", "x", "acme_x", source)
    (found,) = [item for item in build().manager_sources if item.name == "acme"]
    with pytest.raises(PluginError, match=f"plugin 'x' .acme-x., manager source 'acme', describe: .*{message}"):
        found.describe()
