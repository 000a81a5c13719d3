"""Planned reads without a turn of the engine: the public functions, with callbacks and with the chat of the process."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from testproject.plans import ONE, act, answer, complete, plan, task
from testproject.shop.models import Material

from gm_chat.engine.failures import TurnStopped
from gm_chat.planned.config import get_planned_chat_settings
from gm_chat.planned.planner import InvalidPlanError
from gm_chat.planned.scheduler import (
    PreparedPlannedTurn,
    SchedulerCallbacks,
    iter_planned_read_events,
    prepare_planned_turn,
)
from gm_chat.planned.validation import read_plan
from gm_chat.plugin import ToolError
from gm_chat.providers.base import Message, TokenUsage
from gm_chat.testing.scripted import ScriptedProvider, call

if TYPE_CHECKING:
    from collections.abc import Mapping

QUERY: Final = call("query", manager="MaterialManager", fields=["name"])
ROWS: Final = {"data": [{"name": "Zinc"}], "total_count": 1, "has_more": False}


@pytest.fixture(autouse=True)
def _chat(settings: Any) -> None:
    settings.GM_CHAT = {
        "enabled": True,
        "provider": "gm_chat.testing.ScriptedProvider",
        "planned": {"enabled": True},
    }


async def play(*rounds: Any, callbacks: SchedulerCallbacks | None = None, user: Any = None) -> list[dict[str, Any]]:
    """Plan and read; the question's messages are kept in ``play.messages``."""
    messages: list[Message] = []
    settings = get_planned_chat_settings()
    with ScriptedProvider.playing([ONE], *rounds):
        prepared = await prepare_planned_turn("Which materials?", messages, settings, ["MaterialManager"])
        reading = iter_planned_read_events(
            prepared, scope={"user": user}, conversation="c1", messages=messages, callbacks=callbacks
        )
        async with aclosing(reading) as events:
            seen = [event async for event in events]
    assert prepared.attempt_usages == (TokenUsage(10, 5),)
    assert prepared.evidence_deadline is not None
    return seen


async def test_callbacks_take_the_place_of_the_engine() -> None:
    heard: list[tuple[str, Any]] = []

    def execute(name: str, args: Mapping[str, Any], scope: object) -> Any:
        heard.append(("execute", (name, scope)))
        return ROWS

    async def append(conversation: object, message: Message) -> None:
        heard.append(("append", (conversation, message.role)))

    def limit(scope: object, usage: TokenUsage | None = None) -> None:
        heard.append(("limit", usage))

    async def run_sync(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return function(*args, **kwargs)

    callbacks = SchedulerCallbacks(
        execute_tool=execute,
        append_message=append,
        emit_tool_called=lambda **kwargs: heard.append(("called", kwargs["result"])),
        emit_audit_event=lambda event: heard.append(("audit", event["event_type"])),
        enforce_rate_limit=limit,
        run_sync=run_sync,
    )
    events = await play([QUERY], [complete()], [answer("Zinc.")], callbacks=callbacks)
    assert [event["type"] for event in events] == ["tool_call", "tool_result", "text_chunk", "done"]
    assert events[0]["task_id"] == events[1]["task_id"] == "t1"
    assert events[3]["usage"] == {"input_tokens": 40, "output_tokens": 20}
    assert events[3]["orchestration"]["status"] == "complete"
    told = [item for item in heard if item[0] not in ("audit", "limit")]
    assert told == [
        ("execute", ("query", {"user": None})),
        ("append", ("c1", "assistant")),
        ("append", ("c1", "tool")),
        ("called", ROWS),
        ("append", ("c1", "assistant")),
    ]
    assert [usage for name, usage in heard if name == "limit"].count(TokenUsage(10, 5)) == 3
    assert ("audit", "planned_terminal") in heard


async def test_what_a_tool_refuses_is_told_to_the_executor() -> None:
    results = iter([ToolError("unknown_field", "no such field"), {"error": {"code": "busy"}}, ROWS])

    def execute(name: str, args: Mapping[str, Any], scope: object) -> Any:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    callbacks = SchedulerCallbacks(execute_tool=execute)
    events = await play([QUERY], [QUERY], [QUERY], [complete()], [answer("Zinc.")], callbacks=callbacks)
    assert [event["result"] for event in events if event["type"] == "tool_result"] == [
        {"error": {"code": "unknown_field", "message": "no such field"}},
        {"error": {"code": "busy"}},
        ROWS,
    ]


@pytest.mark.parametrize(
    ("error", "code"), [(TurnStopped("rate_limited"), "rate_limited"), (RuntimeError("secret"), "chat_error")]
)
async def test_what_a_callback_raises_ends_the_read(error: Exception, code: str) -> None:
    def limit(scope: object, usage: TokenUsage | None = None) -> None:
        raise error

    events = await play(callbacks=SchedulerCallbacks(enforce_rate_limit=limit))
    # Asking the provider is what is limited: its failure is the provider's, unless it is a decision.
    assert [event["code"] for event in events] == [code if code == "rate_limited" else "provider_failed"]
    assert "secret" not in str(events)


async def test_a_tool_that_breaks_ends_the_read() -> None:
    def execute(name: str, args: Mapping[str, Any], scope: object) -> Any:
        raise RuntimeError("secret")

    events = await play([QUERY], callbacks=SchedulerCallbacks(execute_tool=execute))
    assert [event["type"] for event in events] == ["tool_call", "error"]
    assert events[1]["code"] == "chat_error"
    assert "secret" not in str(events)


@pytest.mark.django_db(transaction=True)
async def test_without_callbacks_the_chat_s_own_tools_read_as_the_user() -> None:
    await Material.objects.acreate(name="Zinc", density=7.1)
    root = await get_user_model()._default_manager.acreate(username="root", is_superuser=True)
    events = await play([QUERY], [complete()], [answer("Zinc.")], user=root)
    assert [event["type"] for event in events] == ["tool_call", "tool_result", "text_chunk", "done"]
    assert events[1]["result"]["data"] == [{"name": "Zinc"}]
    refused = await play([QUERY], [act("block", reason="?")], user=AnonymousUser())
    assert "error" in refused[1]["result"]
    assert refused[-1]["code"] == "manager_unresolved"


async def test_a_mutation_has_nothing_to_read() -> None:
    settings = get_planned_chat_settings()
    with ScriptedProvider.playing([plan(intent="mutation")]):
        prepared = await prepare_planned_turn("Add zinc.", [], settings, None)
    assert prepared.mutation_plan is prepared.plan
    with pytest.raises(ValueError, match="ordinary loop"):
        await anext(iter_planned_read_events(prepared, scope={}, conversation=None, messages=[]))


async def test_no_plan_is_an_exception() -> None:
    with ScriptedProvider.playing(["No."], repeat=True), pytest.raises(InvalidPlanError):
        await prepare_planned_turn("Which?", [], get_planned_chat_settings(), None)


async def test_a_limit_may_refuse_to_plan_at_all() -> None:
    def limit(scope: Mapping[str, Any], usage: TokenUsage | None = None) -> None:
        raise TurnStopped("rate_limited")

    with pytest.raises(TurnStopped):
        await prepare_planned_turn(
            "Which?",
            [],
            get_planned_chat_settings(),
            None,
            callbacks=SchedulerCallbacks(enforce_rate_limit=limit),
            scope={},
        )


def test_a_turn_for_a_plan_that_is_there() -> None:
    made = read_plan(plan(task(), task("t2")))
    prepared = PreparedPlannedTurn.for_plan(made, get_planned_chat_settings(), user_text="Which?")
    assert prepared.budget.root_ids == ("t1", "t2")
    assert (prepared.usage, prepared.result, prepared.mutation_plan) == (TokenUsage(), None, None)
