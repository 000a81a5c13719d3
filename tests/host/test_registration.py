"""What registration hooks hand out: order, types, names, and one plugin's failure beside another's success."""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from gm_chat.host import PluginHost
from gm_chat.host.facade import FAILED_CHECK_ID
from gm_chat.host.registration import REGISTRATIONS
from gm_chat.plugin import (
    CatalogSpec,
    CheckResult,
    Decision,
    ProviderSpec,
    RateLimitStoreSpec,
    StreamProtocolSpec,
    ToolDefinition,
    ToolSpec,
    hookimpl,
)
from gm_chat.testing import make_host


def module(**attributes: Any) -> ModuleType:
    """A plugin's module, without a file."""
    made = ModuleType("acme")
    vars(made).update(attributes)
    return made


def nothing() -> list[Any]:
    return []


def plugin(hook: str, implementation: Callable[..., Any]) -> object:
    """A plugin with one hook."""
    return module(**{hook: hookimpl(implementation)})


class Sink:
    def __init__(self, name: str = "sink") -> None:
        self.name = name
        self.required = False

    async def start(self) -> None: ...
    async def emit(self, event: Any) -> None: ...
    async def aclose(self) -> None: ...


class Check:
    async def check(self, action: Any, actor: Any, context: Any) -> Decision:
        return Decision.abstain()


class Source:
    name = "source"

    def describe(self) -> list[Any]:
        return []

    async def visibility(self, actor: Any) -> Any: ...
    async def execute(self, plan: Any, actor: Any, *, deadline: Any) -> Any: ...
    async def mutate(self, call: Any, actor: Any, *, deadline: Any) -> Any: ...


def tool(name: str) -> ToolSpec:
    async def run(args: Any, context: Any) -> str:
        return name

    return ToolSpec(definition=ToolDefinition(name, name, {"type": "object"}), run=run)


def never(*_: Any) -> Any:
    raise AssertionError("nothing is built while plugins register")


SAMPLES: dict[str, Callable[[str], Any]] = {
    "gm_chat_providers": lambda name: ProviderSpec(name=name, build=never),
    "gm_chat_tools": tool,
    "gm_chat_manager_sources": lambda name: type("S", (Source,), {"name": name})(),
    "gm_chat_catalogs": lambda name: CatalogSpec(name=name, load=never),
    "gm_chat_permission_checks": lambda name: Check(),
    "gm_chat_audit_sinks": Sink,
    "gm_chat_rate_limit_stores": lambda name: RateLimitStoreSpec(name=name, build=never),
    "gm_chat_stream_protocols": lambda name: StreamProtocolSpec(name=name, media_type="a/b", encode=never),
    "gm_chat_eval_datasets": lambda name: f"{name}.yaml",
    "gm_chat_urls": lambda name: name,
}
ATTRIBUTES = {hook: hook.removeprefix("gm_chat_") for hook in SAMPLES}
NAMED = [item.hook for item in REGISTRATIONS if item.name_of is not None]


def offered(host: PluginHost, hook: str) -> list[Any]:
    """What the host offers of one kind, flat."""
    offers = getattr(host, ATTRIBUTES[hook])
    if hook == "gm_chat_urls":
        return [pattern for patterns in offers.values() for pattern in patterns]
    return list(offers.values() if hasattr(offers, "values") else offers)


def test_every_registration_hook_has_a_sample() -> None:
    assert SAMPLES.keys() == {item.hook for item in REGISTRATIONS}


@pytest.mark.parametrize("hook", SAMPLES)
def test_lists_and_generators_are_collected_in_order_of_the_plugins_names(hook: str) -> None:
    def generator() -> Iterator[Any]:
        yield SAMPLES[hook]("a1")
        yield SAMPLES[hook]("a2")

    host = make_host(
        b=plugin(hook, lambda: [SAMPLES[hook]("b1")]), a=plugin(hook, generator), c=plugin(hook, lambda: None)
    )
    assert len(offered(host, hook)) == 3
    assert host.implementing(hook) == ("a", "b", "c")
    if hook == "gm_chat_tools":
        assert [spec.definition.name for spec in host.tools] == ["a1", "a2", "b1"]
    if hook == "gm_chat_urls":
        assert host.urls == {"a": ("a1", "a2"), "b": ("b1",)}


def half_a_generator(hook: str) -> Callable[[], Iterator[Any]]:
    def generate() -> Iterator[Any]:
        yield SAMPLES[hook]("half")
        raise OSError("no network")

    return generate


def _exit() -> None:
    raise SystemExit(2)


async def _later() -> list[Any]:
    return []


def _hidden() -> Any:
    return _later()


FAILURES: dict[str, tuple[Callable[[str], Callable[..., Any]], str]] = {
    "raises in the middle": (half_a_generator, "it failed: OSError: no network."),
    "exits": (lambda hook: _exit, "it failed: SystemExit: 2."),
    "wrong type": (lambda hook: lambda: [SAMPLES[hook]("x"), None], "it handed out a NoneType, which is no"),
    "a class": (lambda hook: lambda: [Sink], "it handed out the class Sink, not an instance."),
    "no list": (lambda hook: lambda: 7, "it returned a int; return a list, or yield"),
    "one text": (lambda hook: lambda: "x.yaml", "it returned a str; return a list, or yield"),
    "a hidden coroutine": (lambda hook: _hidden, "it returned a coroutine; hooks are plain functions"),
}


@pytest.mark.parametrize("hook", SAMPLES)
@pytest.mark.parametrize("failure", FAILURES)
def test_a_failing_hook_takes_nobody_else_down_and_leaves_no_halves(hook: str, failure: str) -> None:
    if hook == "gm_chat_urls" and failure == "wrong type":
        pytest.skip("URL patterns may be of any type")
    make, message = FAILURES[failure]
    host = make_host(
        a=plugin(hook, lambda: [SAMPLES[hook]("a")]),
        b=plugin(hook, make(hook)),
        c=plugin(hook, lambda: [SAMPLES[hook]("c")]),
        strict=False,
    )
    assert len(offered(host, hook)) == 2
    [problem] = host.problems
    assert (problem.plugin, problem.hook) == ("b", hook)
    assert message in problem.message
    fatal = {"gm_chat_manager_sources", "gm_chat_permission_checks", "gm_chat_audit_sinks"}
    assert problem.severity == ("error" if hook in fatal else "warning")


@pytest.mark.parametrize("hook", NAMED)
def test_a_name_offered_twice_belongs_to_nobody(hook: str) -> None:
    host = make_host(
        a=plugin(hook, lambda: [SAMPLES[hook]("same"), SAMPLES[hook]("mine")]),
        b=plugin(hook, lambda: [SAMPLES[hook]("same")]),
        strict=False,
    )
    assert len(offered(host, hook)) == 1
    assert [(problem.plugin, problem.severity, problem.hook) for problem in host.problems] == [
        ("a", "error", hook),
        ("b", "error", hook),
    ]
    assert "the name 'same' is offered by 'a' and 'b'; none of them is used." in host.problems[0].message


@pytest.mark.parametrize("hook", NAMED)
def test_the_core_keeps_its_names(hook: str) -> None:
    host = make_host(
        a=plugin(hook, lambda: [SAMPLES[hook]("same")]),
        core=[("core", plugin(hook, lambda: [SAMPLES[hook]("same")]))],
        strict=False,
    )
    assert len(offered(host, hook)) == 1
    [problem] = host.problems
    assert (problem.plugin, problem.severity) == ("a", "error")
    assert "gm-chat's own is used" in problem.message


def test_nobody_takes_the_core_s_own_name_and_no_list_disables_it() -> None:
    core = plugin("gm_chat_tools", lambda: [tool("query")])
    host = make_host(core=[("core", core)])
    assert host.plugins[0].distribution == "gm-chat"
    impostor = make_host({"core": plugin("gm_chat_tools", lambda: [tool("evil")])}, core=[("core", core)], strict=False)
    assert [spec.definition.name for spec in impostor.tools] == ["query"]
    assert "the name belongs to gm-chat itself" in impostor.problems[0].message
    listed = PluginHost.build(core=[("core", core)], disabled=["core"], enabled=[], entry_points=[])
    assert [spec.definition.name for spec in listed.tools] == ["query"]


def test_the_core_s_tools_come_first() -> None:
    host = make_host(
        a=plugin("gm_chat_tools", lambda: [tool("a")]),
        core=[("core", plugin("gm_chat_tools", lambda: [tool("query")]))],
    )
    assert [spec.definition.name for spec in host.tools] == ["query", "a"]


def test_system_checks_are_asked_each_time_and_failures_are_findings() -> None:
    answers: list[Any] = [[CheckResult(id="acme.W1", level="warning", message="hot")], OSError("gone"), ["text"]]

    def check() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    host = make_host(acme=plugin("gm_chat_system_checks", check))
    assert [finding.id for finding in host.system_checks()] == ["acme.W1"]
    for text in ("it failed: OSError: gone", "it handed out a str, which is no CheckResult"):
        [finding] = host.system_checks()
        assert finding.id == FAILED_CHECK_ID
        assert "'acme'" in finding.message
        assert text in finding.message


def test_objects_that_cannot_be_plugins_are_refused() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]  # the point of the test

    class WantsSelf:
        @hookimpl
        def gm_chat_tools(self) -> list[Any]:
            return []

    host = make_host(none=None, unhashable=Unhashable(), a_class=WantsSelf, strict=False)
    assert [record.state for record in host.plugins] == ["refused"] * 3
    text = "\n".join(map(str, host.problems))
    assert "the entry point names None" in text
    assert "unhashable" in text
    assert "Name an instance in the entry point, not a class." in text


def test_an_optional_hook_of_a_later_version_is_passed_over() -> None:
    later = module(gm_chat_dreams=hookimpl(lambda: None, optionalhook=True))
    assert make_host(later=later).plugins[0].hooks == ()


def test_what_pluggy_itself_refuses_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    import pluggy

    register = pluggy.PluginManager.register

    def refuse(self: Any, candidate: Any, name: str | None = None) -> Any:
        registered = register(self, candidate, name)
        if name == "b":  # half registered, as before pluggy 1.7
            raise pluggy.PluginValidationError(candidate, "not today")
        return registered

    monkeypatch.setattr(pluggy.PluginManager, "register", refuse)
    host = make_host(
        a=plugin("gm_chat_tools", lambda: [tool("a")]), b=plugin("gm_chat_tools", lambda: [tool("b")]), strict=False
    )
    assert [spec.definition.name for spec in host.tools] == ["a"]
    assert "pluggy refused it: PluginValidationError: not today" in host.problems[0].message


def test_make_host_fails_a_test_with_the_problems() -> None:
    with pytest.raises(AssertionError, match="there is no such hook"):
        make_host(a=plugin("gm_chat_tool", nothing))
