"""The hooks of a turn: who is asked, in which order, and what a failure does."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import pytest

from gm_chat.host import PluginHost, facade
from gm_chat.plugin import (
    Action,
    Actor,
    Decision,
    PluginError,
    PromptSection,
    ToolDefinition,
    ToolSpec,
    TurnContext,
    TurnOutcome,
    Verdict,
    hookimpl,
)
from gm_chat.testing import make_host

CONTEXT = TurnContext("t", "c", Actor(user_id="7"), "hello", "http")


def raising() -> Any:
    raise OSError("no network")


def module(**attributes: Any) -> ModuleType:
    """A plugin's module, without a file."""
    made = ModuleType("acme")
    vars(made).update(attributes)
    return made


def nothing() -> list[Any]:
    return []


def plugin(**hooks: Callable[..., Any]) -> object:
    return module(**{f"gm_chat_{name}": hookimpl(function) for name, function in hooks.items()})


# --- select_provider ---


def choosing(choice: str | None, asked: list[str] | None = None, name: str = "") -> object:
    def select(candidates: Sequence[str]) -> str | None:
        if asked is not None:
            asked.append(name)
        return choice

    return plugin(select_provider=select)


def test_the_first_choice_ends_the_question() -> None:
    asked: list[str] = []
    host = make_host(c=choosing("fast", asked, "c"), a=choosing(None, asked, "a"), b=choosing("large", asked, "b"))
    assert host.select_provider(CONTEXT, ["fast", "large"]) == "large"
    assert asked == ["a", "b"]


def test_without_a_choice_it_is_left_to_the_settings() -> None:
    assert make_host().select_provider(CONTEXT, ["fast"]) is None
    assert make_host(a=choosing(None)).select_provider(CONTEXT, ["fast"]) is None


def test_tryfirst_and_trylast_are_kept() -> None:
    first = module(gm_chat_select_provider=hookimpl(lambda: "first", tryfirst=True))
    last = module(gm_chat_select_provider=hookimpl(lambda: "last", trylast=True))
    host = make_host(a=last, b=choosing(None), z=first)
    assert host.implementing("gm_chat_select_provider") == ("z", "b", "a")
    assert host.select_provider(CONTEXT, ["first", "last"]) == "first"


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (choosing("unknown"), "chose the provider 'unknown', which is none of fast, large"),
        (plugin(select_provider=raising), "failed: OSError: no network"),
        (plugin(select_provider=lambda: ["fast"]), "chose the provider ['fast'], which is none of fast, large"),
    ],
)
def test_a_bad_choice_fails_the_turn_in_the_plugin_s_name(selector: object, message: str) -> None:
    host = make_host(bad=selector, good=choosing("fast"))
    with pytest.raises(PluginError, match=r"plugin 'bad' \(test-bad\): gm_chat_select_provider") as caught:
        host.select_provider(CONTEXT, ["fast", "large"])
    assert message in str(caught.value)


# --- filter_tools ---


async def run(args: Any, context: Any) -> None: ...


TOOLS = [ToolSpec(definition=ToolDefinition(name, name, {}), run=run) for name in ("search", "query", "mutate")]


def names(tools: Sequence[ToolSpec]) -> list[str]:
    return [tool.definition.name for tool in tools]


def test_what_a_plugin_writes_into_a_schema_stays_with_the_plugin() -> None:
    def scribble(tools: Sequence[ToolDefinition]) -> list[str]:
        for tool in tools:
            tool.input_schema["properties"]["x"] = {}  # type: ignore[index]  # what a careless plugin does
        return [tool.name for tool in tools]

    schema: dict[str, Any] = {"type": "object", "properties": {}}
    tool = ToolSpec(definition=ToolDefinition("search", "", schema), run=run)
    (left,) = make_host(a=plugin(filter_tools=scribble)).filter_tools(CONTEXT, [tool])
    assert left is tool
    assert schema["properties"] == {}


def test_each_plugin_removes_from_what_the_one_before_left() -> None:
    seen: list[list[str]] = []

    def without(name: str) -> object:
        def keep(tools: Sequence[ToolDefinition]) -> list[str]:
            seen.append([tool.name for tool in tools])
            return [tool.name for tool in reversed(tools) if tool.name != name]

        return plugin(filter_tools=keep)

    host = make_host(a=without("mutate"), b=without("search"))
    assert names(host.filter_tools(CONTEXT, TOOLS)) == ["query"]
    assert seen == [["search", "query", "mutate"], ["search", "query"]]


def test_the_order_of_tools_stays() -> None:
    host = make_host(a=plugin(filter_tools=lambda tools: [tool.name for tool in reversed(tools)]))
    assert names(host.filter_tools(CONTEXT, TOOLS)) == ["search", "query", "mutate"]


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        (lambda: ["query", "drop_tables"], "kept the tool 'drop_tables', which was not among those it was given"),
        (lambda: [["query"]], "kept the tool ['query'], which was not among those it was given"),
        (raising, "failed: OSError"),
        (lambda: "query", "returned a str"),
        (lambda: None, "returned None; return the names of the tools to keep"),
    ],
)
def test_a_filter_that_adds_or_fails_fails_the_turn(keep: Callable[..., Any], message: str) -> None:
    with pytest.raises(PluginError, match="plugin 'bad'") as caught:
        make_host(bad=plugin(filter_tools=keep)).filter_tools(CONTEXT, TOOLS)
    assert message in str(caught.value)


def test_a_filter_may_keep_nothing() -> None:
    assert make_host(a=plugin(filter_tools=nothing)).filter_tools(CONTEXT, TOOLS) == []


# --- system_prompt and observers ---


def test_sections_are_ordered_and_failing_ones_left_out(caplog: pytest.LogCaptureFixture) -> None:
    host = make_host(
        a=plugin(system_prompt=lambda: PromptSection(text="late", order=200)),
        b=plugin(system_prompt=raising),
        c=plugin(system_prompt=lambda context: PromptSection(text=f"for {context.actor.key}")),
        d=plugin(system_prompt=lambda: None),
        e=plugin(system_prompt=lambda: "just text"),
        f=plugin(system_prompt=lambda: PromptSection(text="also 100")),
    )
    assert host.prompt_sections(CONTEXT) == ["for user:7", "also 100", "late"]
    assert "plugin 'b' (test-b): gm_chat_system_prompt OSError: no network; its section is left out" in caplog.text
    assert "plugin 'e' (test-e): gm_chat_system_prompt returned a str; its section is left out" in caplog.text


def test_observers_are_all_told_whatever_one_raises(caplog: pytest.LogCaptureFixture) -> None:
    told: list[Any] = []

    def started(context: TurnContext) -> None:
        told.append(context)

    def finished(context: TurnContext, outcome: TurnOutcome) -> None:
        told.append((context, outcome))

    host = make_host(
        a=plugin(turn_started=raising, turn_paused=raising, turn_finished=raising),
        b=plugin(turn_started=started, turn_paused=finished, turn_finished=finished),
    )
    paused, outcome = TurnOutcome("paused"), TurnOutcome("done")
    host.turn_started(CONTEXT)
    host.turn_paused(CONTEXT, paused)
    host.turn_finished(CONTEXT, outcome)
    assert told == [CONTEXT, (CONTEXT, paused), (CONTEXT, outcome)]
    assert caplog.text.count("OSError: no network; the turn goes on") == 3
    assert all(record.levelno == logging.ERROR for record in caplog.records)


# --- permit ---


class Check:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked = 0

    async def check(self, action: Action, actor: Actor, context: Any) -> Any:
        self.asked += 1
        await asyncio.sleep(0)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def judged_by(*checks: Check) -> PluginHost:
    return make_host({f"p{number}": _with_check(check) for number, check in enumerate(checks)})


def _with_check(check: object) -> object:
    return plugin(permission_checks=lambda: [check])


async def permitted(host: PluginHost) -> Decision:
    return await host.permit(Action("tool", "query"), Actor(), {})


async def test_all_checks_are_asked_and_one_denial_wins() -> None:
    checks = [
        Check(Decision.allow()),
        Check(Decision.deny("not you")),
        Check(Decision.abstain()),
        Check(Decision.deny("b")),
    ]
    decision = await permitted(judged_by(*checks))
    assert decision == Decision.deny("not you")
    assert [check.asked for check in checks] == [1, 1, 1, 1]


@pytest.mark.parametrize("answers", [[], [Decision.abstain()], [Decision.abstain(), Decision.allow()]])
async def test_without_a_denial_the_action_is_allowed(answers: list[Decision]) -> None:
    assert await permitted(judged_by(*map(Check, answers))) == Decision.allow()


@pytest.mark.parametrize("answer", [OSError("ldap"), SystemExit(1), True, None])
async def test_a_check_that_cannot_answer_denies(answer: Any) -> None:
    decision = await permitted(judged_by(Check(Decision.allow()), Check(answer)))
    assert decision.verdict is Verdict.DENY
    assert "plugin 'p1'" in decision.reason


async def test_a_check_that_hangs_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging:
        async def check(self, action: Action, actor: Actor, context: Any) -> Decision:
            await asyncio.sleep(60)
            return Decision.allow()

    monkeypatch.setattr(facade, "PERMISSION_CHECK_SECONDS", 0.02)
    decision = await permitted(make_host(slow=_with_check(Hanging())))
    assert decision.verdict is Verdict.DENY
    assert "TimeoutError" in decision.reason


@pytest.mark.parametrize(
    "broken",
    [
        plugin(permission_checks=raising),
        plugin(permission_checks=lambda: [object()]),
        plugin(permission_checks=lambda optoins: []),
        plugin(permission_check=nothing),
        module(GM_CHAT_CONTRACT=99, gm_chat_permission_checks=hookimpl(nothing)),
    ],
)
async def test_checks_that_could_not_be_built_deny_everything(broken: object) -> None:
    decision = await permitted(make_host(broken=broken, good=_with_check(Check(Decision.allow())), strict=False))
    assert decision.verdict is Verdict.DENY
    assert "could not be built" in decision.reason


async def test_another_broken_plugin_denies_nothing() -> None:
    host = make_host(broken=plugin(tool=nothing), failed=ImportError("no"), strict=False)
    assert len(host.problems) == 2
    assert await permitted(host) == Decision.allow()
