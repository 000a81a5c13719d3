"""What holds for a turn whatever its loop does: admitted once, closed once, one terminal event, nothing leaked."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from gm_chat.engine import run_turn
from gm_chat.engine.events import Done, Error, Event, TextChunk, ToolCall, ToolResult
from gm_chat.engine.ports import ClosedTurn, OpenedTurn, ProviderHandle, StoredMessage, TurnRequest
from gm_chat.errors import PUBLIC_MESSAGES
from gm_chat.loops import legacy_loop
from gm_chat.managers.api import FieldInfo, ManagerInfo, ManagerVisibility, MutationCall, MutationInfo, Visibility
from gm_chat.managers.index import MaskedView, SchemaIndex
from gm_chat.plugin import Actor, ToolContext, TurnContext, TurnOutcome
from gm_chat.providers.base import (
    ProviderIncompleteError,
    ProviderQuotaError,
    ProviderTimeoutError,
    TokenUsage,
)
from gm_chat.settings import ChatSettings
from gm_chat.testing.scripted import NO_DONE, ScriptedProvider, call, done
from gm_chat.testing.services import MemoryServices, MemoryStore, Recorder, ask, play_turn, tool

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from gm_chat.engine.state import TurnState

SECRET = "sk-very-secret"


def only_error(events: list[Event]) -> Error:
    (terminal,) = [event for event in events if isinstance(event, Done | Error)]
    assert events[-1] is terminal
    assert isinstance(terminal, Error)
    return terminal


# --- a good turn --------------------------------------------------------------------------------------------------


async def test_the_course_of_a_turn() -> None:
    services = MemoryServices()
    turn = await play_turn(services, ["Hello."])
    assert services.asked == ["message"]
    assert services.observer.log == ["started", "finished done"]
    assert services.observer.outcomes == [TurnOutcome("done", None, 10, 5, "Hello.")]
    assert services.store.opened == ["id-1"]
    assert turn.closed == ClosedTurn(
        turn_id="id-1",
        conversation_id="user:7",
        messages=[StoredMessage(role="assistant", content="Hello.", tool_calls=[], provider="scripted")],
        outcome=TurnOutcome("done", None, 10, 5, "Hello."),
        usage=TokenUsage(10, 5),
        events=(TextChunk("Hello."), Done(TokenUsage(10, 5))),
    )


async def test_the_turn_is_stored_before_its_last_event_is_released() -> None:
    services = MemoryServices()
    with ScriptedProvider.playing(["Hello."]):
        async with aclosing(run_turn(ask(), services, loop=legacy_loop)) as events:
            assert await anext(events) == TextChunk("Hello.")
            assert services.store.closed == []
            assert isinstance(await anext(events), Done)
            assert len(services.store.closed) == 1
            assert services.observer.log[-1] == "finished done"


async def test_text_is_released_while_the_provider_still_works() -> None:
    services = MemoryServices()
    gate = asyncio.Event()
    with ScriptedProvider.playing(["first", gate.wait, "last"]):
        async with aclosing(run_turn(ask(), services, loop=legacy_loop)) as events:
            assert await asyncio.wait_for(anext(events), 1) == TextChunk("first")
            gate.set()
            assert [event async for event in events] == [TextChunk("last"), Done(TokenUsage(10, 5))]


async def test_the_next_turn_sees_the_one_before() -> None:
    async def query(args: Mapping[str, Any], context: ToolContext) -> Any:
        return ["Bolt"]

    services = MemoryServices(tools=[tool(query)])
    await play_turn(services, ["Look: ", call("query", call_id="theirs", n=1)], ["A bolt."], text="Parts?")
    turn = await play_turn(services, ["You are welcome."], text="Thanks!")
    shown = [(message.role, message.content) for message in turn.requests[0].messages[1:]]
    assert shown == [
        ("user", "Parts?"),
        ("assistant", "Look: "),
        ("tool", '["Bolt"]'),
        ("assistant", "A bolt."),
        ("user", "Thanks!"),
    ]
    assert turn.requests[0].messages[2].tool_calls[0].id == "theirs"


async def test_the_prompt_holds_the_project_s_words_and_the_plugins_sections() -> None:
    services = MemoryServices(settings=ChatSettings(system_prompt="Be kind."), sections=["Mind the gap."])
    turn = await play_turn(services, ["ok"])
    assert turn.requests[0].system.endswith("Be kind.\n\nMind the gap.")


async def test_the_prompt_outlines_the_data_that_the_actor_may_see() -> None:
    async def query(args: Mapping[str, Any], context: ToolContext) -> Any:
        return 1

    services = MemoryServices(tools=[tool(query)], managers=Managers())
    turn = await play_turn(services, ["ok"], text="What do parts cost?")
    outline = turn.requests[0].system.split("\n\n")[-1]
    first, _, last = outline.splitlines()
    assert (first, last) == ("Managers: PartManager.", "- PartManager: name")
    services.tools = []
    turn = await play_turn(services, ["ok"])
    assert "PartManager" not in turn.requests[0].system


async def test_a_tool_gets_the_turn_its_own_id_and_a_deadline() -> None:
    seen: list[ToolContext] = []

    async def look(args: Mapping[str, Any], context: ToolContext) -> Any:
        seen.append(context)
        assert isinstance(args, dict)
        args["n"] = "changed by the tool"
        return None

    services = MemoryServices(tools=[tool(look)], settings=ChatSettings(query_timeout_seconds=5))
    turn = await play_turn(services, [call("look", n=1)], ["ok"])
    assert turn.events[0] == ToolCall("id-2", "look", {"n": 1})
    assert turn.events[1] == ToolResult("id-2", "look", None)
    assert turn.closed is not None
    assert turn.closed.messages[0].tool_calls == [{"id": "id-2", "name": "look", "args": {"n": 1}}]
    (context,) = seen
    assert context.turn == TurnContext("id-1", "user:7", ask().actor, "Which parts?", "http")
    assert context.call_id == "id-2"
    assert context.deadline is not None
    assert not context.approved
    services.settings = ChatSettings()
    await play_turn(services, [call("look", n=1)], ["ok"])
    assert seen[-1].deadline is None


async def test_usage_of_all_rounds_is_summed_and_unknown_stays_marked() -> None:
    async def query(args: Mapping[str, Any], context: ToolContext) -> Any:
        return 1

    services = MemoryServices(tools=[tool(query)])
    turn = await play_turn(services, [call("query"), done(7, 3)], ["ok", done(0, 0, reported=False)])
    assert turn.events[-1] == Done(TokenUsage(7, 3, reported=False))
    assert services.observer.outcomes == [TurnOutcome("done", None, 7, 3, "ok")]


# --- turns that fail ----------------------------------------------------------------------------------------------


async def test_a_denied_message_is_never_opened() -> None:
    services = MemoryServices(denied=frozenset({"message"}))
    turn = await play_turn(services, ["never said"])
    assert turn.events == [Error("permission_denied", "You may not use this chat.")]
    assert services.store.opened == []
    assert services.observer.log == []
    assert turn.requests == []


@pytest.mark.parametrize("said", [[], ["Half an ans"]])
async def test_a_provider_s_error_is_public_only_as_chat_error(
    said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    services = MemoryServices()
    failure = ProviderQuotaError(f"429 for key {SECRET}", retry_after=6.2)
    turn = await play_turn(services, [*said, failure])
    error = only_error(turn.events)
    assert (error.code, error.message) == ("chat_error", PUBLIC_MESSAGES["chat_error"])
    assert error.details["retry_after_seconds"] == 7
    assert SECRET not in repr(turn.events)
    assert turn.closed is not None
    assert [row.content for row in turn.closed.messages] == said
    assert turn.closed.outcome == TurnOutcome("failed", "chat_error", 0, 0, "".join(said))
    assert turn.closed.usage == TokenUsage(reported=False)
    assert services.observer.failures == [(failure, error)]
    assert services.observer.log == ["started", "failed", "finished failed"]
    correlation_id = error.details["correlation_id"]
    assert len(correlation_id) == 32
    (record,) = [entry for entry in caplog.records if entry.name == "gm_chat.engine"]
    assert record.levelno == logging.ERROR
    assert correlation_id in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[1] is failure


async def test_usage_of_finished_rounds_counts_when_a_later_one_fails() -> None:
    async def query(args: Mapping[str, Any], context: ToolContext) -> Any:
        return 1

    services = MemoryServices(tools=[tool(query)])
    turn = await play_turn(services, [call("query"), done(7, 3)], [RuntimeError("boom")])
    assert turn.closed is not None
    assert turn.closed.usage == TokenUsage(7, 3, reported=False)
    assert [row.role for row in turn.closed.messages] == ["assistant", "tool"]


async def test_a_stream_without_a_terminal_event_fails_and_keeps_its_text() -> None:
    services = MemoryServices()
    turn = await play_turn(services, ["Half", NO_DONE])
    assert only_error(turn.events).code == "chat_error"
    assert isinstance(services.observer.failures[0][0], ProviderIncompleteError)
    assert turn.closed is not None
    assert turn.closed.messages[0].content == "Half"


@pytest.mark.parametrize(("script", "limits"), [([5.0], (0.02, 5.0)), (["Half", 5.0], (5.0, 0.02))])
async def test_a_provider_that_is_too_slow_is_a_chat_error(script: list[Any], limits: tuple[float, float]) -> None:
    services = MemoryServices(timeout_seconds=limits[0], stream_timeout_seconds=limits[1])
    turn = await asyncio.wait_for(play_turn(services, script), 2)
    assert only_error(turn.events).code == "chat_error"
    assert isinstance(services.observer.failures[0][0], ProviderTimeoutError)


async def test_a_plain_timeout_is_no_deadline_of_a_plan() -> None:
    async def slow(args: Mapping[str, Any], context: ToolContext) -> Any:
        raise TimeoutError("the project's own")

    turn = await play_turn(MemoryServices(tools=[tool(slow)]), [call("slow")])
    assert only_error(turn.events).code == "chat_error"


@pytest.mark.parametrize("write", [False, True])
async def test_a_tool_that_breaks_is_answered_without_detail_and_ends_the_turn(write: bool) -> None:
    failure = RuntimeError(f"password={SECRET}")

    async def broken(args: Mapping[str, Any], context: ToolContext) -> Any:
        raise failure

    services = MemoryServices(tools=[tool(broken, write=write)])
    turn = await play_turn(services, ["Now. ", call("broken")])
    result = turn.events[2]
    assert isinstance(result, ToolResult)
    assert result.result["error"]["code"] == "internal_error"
    assert only_error(turn.events).code == "chat_error"
    assert SECRET not in repr(turn.events)
    assert turn.closed is not None
    assert SECRET not in repr(turn.closed)
    assert turn.closed.messages[1].tool_result == result.result
    assert services.observer.failures[0][0] is failure


async def test_the_other_results_of_a_batch_with_a_broken_tool_are_kept() -> None:
    async def good(args: Mapping[str, Any], context: ToolContext) -> Any:
        return args["n"]

    async def broken(args: Mapping[str, Any], context: ToolContext) -> Any:
        raise ZeroDivisionError

    services = MemoryServices(tools=[tool(good), tool(broken)])
    turn = await play_turn(services, [call("good", n=1), call("broken"), call("good", n=2)])
    results = [event.result for event in turn.events if isinstance(event, ToolResult)]
    assert (results[0], results[2]) == (1, 2)
    assert isinstance(services.observer.failures[0][0], ZeroDivisionError)


async def test_a_tool_that_breaks_on_arguments_outside_its_schema_blames_the_model() -> None:
    async def forecast(args: Mapping[str, Any], context: ToolContext) -> Any:
        return args["city"].upper()

    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    services = MemoryServices(tools=[tool(forecast, schema=schema)])
    turn = await play_turn(
        services, [call("forecast")], [call("forecast", city=3)], [call("forecast", city="ulm")], ["ok"]
    )
    assert turn.requests[1].results[0]["error"]["message"] == "the argument 'city' is missing"
    assert "must be of type string, got 3" in turn.requests[2].results[1]["error"]["message"]
    assert turn.requests[3].results[2] == "ULM"
    assert services.observer.failures == []


async def test_a_result_that_json_cannot_hold_breaks_the_tool() -> None:
    async def odd(args: Mapping[str, Any], context: ToolContext) -> Any:
        return object()

    turn = await play_turn(MemoryServices(tools=[tool(odd)]), [call("odd")])
    assert only_error(turn.events).code == "chat_error"


async def test_an_exception_with_a_public_reason_keeps_it() -> None:
    class BudgetError(Exception):
        public_reason = "budget_exhausted"

    async def loop(turn: TurnState) -> AsyncGenerator[Event, None]:
        yield TextChunk("a")
        raise BudgetError

    async with aclosing(run_turn(ask(), MemoryServices(), loop=loop)) as events:
        error = only_error([event async for event in events])
    assert (error.code, error.message) == ("budget_exhausted", PUBLIC_MESSAGES["budget_exhausted"])


class FailingStore(MemoryStore):
    def __init__(self, *, opening: bool = False, closing: bool = False) -> None:
        super().__init__()
        self.fails = {"open": opening, "close": closing}

    async def open_turn(self, request: TurnRequest, turn_id: str, *, max_messages: int) -> OpenedTurn:
        if self.fails["open"]:
            raise OSError("database is down")
        return await super().open_turn(request, turn_id, max_messages=max_messages)

    async def close_turn(self, turn: ClosedTurn) -> None:
        await super().close_turn(turn)
        if self.fails["close"]:
            raise OSError("database is down")


async def test_a_store_that_cannot_open_the_turn() -> None:
    services = MemoryServices(store=FailingStore(opening=True))
    turn = await play_turn(services, ["never said"])
    assert only_error(turn.events).code == "chat_error"
    assert len(turn.events) == 1
    assert services.store.closed == []
    assert services.observer.log == ["failed"]


async def test_a_store_that_cannot_close_the_turn_fails_it() -> None:
    services = MemoryServices(store=FailingStore(closing=True))
    turn = await play_turn(services, ["Hello."])
    assert turn.events[0] == TextChunk("Hello.")
    assert only_error(turn.events).code == "chat_error"
    assert len(services.store.closed) == 1
    assert services.observer.log == ["started", "failed", "finished failed"]


async def test_a_provider_that_cannot_be_built_fails_the_opened_turn() -> None:
    class NoProvider(MemoryServices):
        async def provider_for(self, context: TurnContext) -> ProviderHandle:
            raise LookupError("no such provider")

    services = NoProvider()
    turn = await play_turn(services)
    assert only_error(turn.events).code == "chat_error"
    assert turn.closed is not None
    assert turn.closed.messages == ()


# --- turns that are cancelled -------------------------------------------------------------------------------------


async def cancel_at(services: MemoryServices, ready: asyncio.Event, *rounds: Any) -> list[Event]:
    """Cancel the turn's task once ``ready`` is set; return the events that had come."""
    seen: list[Event] = []

    async def consume() -> None:
        async with aclosing(run_turn(ask(), services, loop=legacy_loop)) as events:
            async for event in events:
                seen.append(event)  # noqa: PERF401 (what had come must be kept when the task is cancelled)

    with ScriptedProvider.playing(*rounds) as script:
        task = asyncio.create_task(consume())
        await asyncio.wait_for(ready.wait(), 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 1)
        assert script.open_streams == 0
    return seen


async def test_cancelled_while_the_provider_streams() -> None:
    services = MemoryServices()
    ready = asyncio.Event()

    async def hang() -> None:
        ready.set()
        await asyncio.sleep(60)

    assert await cancel_at(services, ready, ["Half", hang]) == [TextChunk("Half")]
    (closed,) = services.store.closed
    assert [row.content for row in closed.messages] == ["Half"]
    assert closed.outcome == TurnOutcome("cancelled", "cancelled", 0, 0, "Half")
    assert closed.events == (TextChunk("Half"), Error("cancelled", "The answer was cancelled."))
    assert closed.usage == TokenUsage(reported=False)
    assert services.observer.log == ["started", "finished cancelled"]


async def test_cancelled_while_a_tool_runs_the_next_turn_sees_an_interrupted_call() -> None:
    ready = asyncio.Event()
    stopped: list[str] = []

    async def slow(args: Mapping[str, Any], context: ToolContext) -> Any:
        ready.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.append("tool")
            raise

    services = MemoryServices(tools=[tool(slow)])
    await cancel_at(services, ready, [call("slow")])
    assert stopped == ["tool"]
    turn = await play_turn(services, ["Again?"], text="Go on")
    roles = [message.role for message in turn.requests[0].messages]
    assert roles == ["system", "user", "assistant", "tool", "user"]
    assert turn.requests[0].messages[3].tool_result["error"]["code"] == "interrupted"


class SlowStore(MemoryStore):
    """Takes its time, and tells when it is at work."""

    def __init__(self, slow: str) -> None:
        super().__init__()
        self.slow = slow
        self.at_work = asyncio.Event()

    async def _work(self, step: str) -> None:
        if step == self.slow:
            self.at_work.set()
            await asyncio.sleep(0.03)

    async def open_turn(self, request: TurnRequest, turn_id: str, *, max_messages: int) -> OpenedTurn:
        await self._work("open")
        return await super().open_turn(request, turn_id, max_messages=max_messages)

    async def close_turn(self, turn: ClosedTurn) -> None:
        await self._work("close")
        await super().close_turn(turn)


@pytest.mark.parametrize(("slow", "state"), [("open", "cancelled"), ("close", "done")])
async def test_a_turn_cancelled_while_the_store_works_is_still_closed_once(slow: str, state: str) -> None:
    store = SlowStore(slow)
    services = MemoryServices(store=store)
    await cancel_at(services, store.at_work, ["Hello."])
    (closed,) = store.closed
    assert closed.outcome.state == state


async def test_leaving_early_closes_the_turn_as_cancelled() -> None:
    services = MemoryServices()
    with ScriptedProvider.playing(["Half", 60]) as script:
        async with aclosing(run_turn(ask(), services, loop=legacy_loop)) as events:
            await anext(events)
        assert script.open_streams == 0
    assert services.store.closed[0].outcome.state == "cancelled"


class BrokenObserver(Recorder):
    """Breaks its contract at one step, as a required audit sink may."""

    def __init__(self, step: str) -> None:
        super().__init__()
        self.step = step

    async def turn_started(self, context: TurnContext) -> None:
        await super().turn_started(context)
        self._break("started")

    async def turn_failed(self, context: TurnContext, error: BaseException, public: Error) -> None:
        await super().turn_failed(context, error, public)
        self._break("failed")

    async def turn_finished(self, context: TurnContext, outcome: TurnOutcome) -> None:
        await super().turn_finished(context, outcome)
        self._break("finished")

    def _break(self, step: str) -> None:
        if step == self.step:
            raise RuntimeError(f"the observer broke at {step}")


@pytest.mark.parametrize("step", ["started", "failed", "finished"])
async def test_an_observer_that_raises_fails_the_turn_once(step: str, caplog: pytest.LogCaptureFixture) -> None:
    services = MemoryServices(observer=BrokenObserver(step))
    turn = await play_turn(services, ["Hello.", *([RuntimeError("boom")] if step == "failed" else [])])
    assert only_error(turn.events).code == "chat_error"
    assert len(services.store.closed) == 1
    assert f"the observer broke at {step}" in caplog.text


# --- permission to write ------------------------------------------------------------------------------------------


PARTS = ManagerInfo(
    name="PartManager",
    description="Components.",
    fields=(FieldInfo(name="name", type="string"), FieldInfo(name="cost", type="decimal")),
)
RIGHTS = ManagerVisibility(frozenset({"name"}), frozenset(), frozenset())


class Managers:
    """A manager service that notes what reaches it."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def view(self, actor: Actor) -> Any:
        return MaskedView(SchemaIndex.build([PARTS]), Visibility("all", {"PartManager": RIGHTS}))

    async def query(self, plan: Any, actor: Actor, *, deadline: float | None) -> Any:
        self.calls.append("query")

    async def mutate(self, call: MutationCall, actor: Actor, *, deadline: float | None) -> Mapping[str, Any]:
        self.calls.append(call.mutation.name)
        return {"status": "executed"}


CREATE = MutationCall(MutationInfo(name="createPart", manager="PartManager", kind="create"), {"name": "Bolt"})


async def _write(args: Mapping[str, Any], context: ToolContext) -> Any:
    await context.managers.view(context.actor)
    await context.managers.query(None, context.actor, deadline=None)  # type: ignore[arg-type]  # never looked at
    return await context.managers.mutate(CREATE, context.actor, deadline=None)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("mutate", ["message", "tool mutate", "mutation createPart"]),
        ("reset_stock", ["message", "tool reset_stock", "mutation reset_stock", "mutation createPart"]),
    ],
)
async def test_a_mutation_is_asked_about_when_it_is_about_to_run(name: str, asked: list[str]) -> None:
    managers = Managers()
    services = MemoryServices(tools=[tool(_write, name=name, write=True)], managers=managers)
    turn = await play_turn(services, [call(name)], ["Done."])
    assert services.asked == asked
    assert managers.calls == ["query", "createPart"]
    assert turn.requests[1].results == [{"status": "executed"}]


@pytest.mark.parametrize("denied", ["mutation createPart", "mutation reset_stock", "tool reset_stock"])
async def test_a_denied_mutation_does_not_run(denied: str) -> None:
    managers = Managers()
    tools = [tool(_write, name="reset_stock", write=True)]
    services = MemoryServices(tools=tools, managers=managers, denied=frozenset({denied}))
    turn = await play_turn(services, [call("reset_stock")], ["No."])
    assert turn.requests[1].results[0]["error"]["code"] == "permission_denied"
    assert "denied by the test" not in repr(turn.events)
    assert "createPart" not in managers.calls
