"""What holds for a turn whatever its loop does: admitted once, closed once, one terminal event, nothing leaked."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import re
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from gm_chat.engine import TurnRunner
from gm_chat.engine.events import Done, Error, Event, TextChunk, ToolCall, ToolResult
from gm_chat.engine.failures import CANCELLED
from gm_chat.engine.ports import ClosedTurn, JoinedTurn, OpenedTurn, ProviderHandle, StoredMessage, TurnRequest
from gm_chat.engine.turn import TurnTimeoutError
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
from gm_chat.testing.services import OWNER, MemoryServices, MemoryStore, Recorder, ask, play_turn, tool

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
        spent={"scripted": TokenUsage(10, 5)},
    )


async def test_the_turn_is_stored_before_its_last_event_is_released() -> None:
    services = MemoryServices()
    runner = TurnRunner(services, legacy_loop)
    gate = asyncio.Event()
    with ScriptedProvider.playing(["Hello.", gate.wait]):
        turn_id = await runner.start(ask())
        async with aclosing(runner.subscribe(turn_id, actor=OWNER)) as events:
            assert (await anext(events)).event == TextChunk("Hello.")
            assert services.store.closed == []
            gate.set()
            assert isinstance((await anext(events)).event, Done)
            assert len(services.store.closed) == 1
            assert services.observer.log[-1] == "finished done"


async def test_the_next_turn_sees_the_one_before() -> None:
    async def query(args: Mapping[str, Any], context: ToolContext) -> Any:
        return ["Bolt"]

    services = MemoryServices(tools=[tool(query)])
    await play_turn(services, ["Look: ", call("query", call_id="theirs", n=1)], ["A bolt."], text="Parts?")
    turn = await play_turn(services, ["You are welcome."], text="Thanks!")
    mark = re.compile(r"</?data-[0-9a-f]{8}>")
    shown = [(message.role, mark.sub("", message.content)) for message in turn.requests[0].messages[1:]]
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
    assert turn.requests[0].system.endswith("\n- PartManager: name")
    assert turn.requests[0].messages[1].content == "What do parts cost?"
    services.tools = []
    turn = await play_turn(services, ["ok"])
    assert "PartManager" not in turn.requests[0].system


async def test_of_much_data_each_question_brings_what_fits_it_and_the_prompt_stays_as_it_was() -> None:
    async def query(args: Mapping[str, Any], context: ToolContext) -> Any:
        return 1

    fields = tuple(FieldInfo(name=f"field_{number}", type="string") for number in range(30))
    others = [ManagerInfo(name=f"M{number}Manager", description="", fields=fields) for number in range(20)]
    services = MemoryServices(tools=[tool(query)], managers=Managers(*others))
    first = await play_turn(services, [call("query")], ["ok"], text="What do parts cost?")
    asked = first.requests[0].messages[1].content
    assert asked.startswith("<managers>\nManagers: M0Manager, ")
    assert asked.endswith("\n- PartManager: name\n</managers>\n\nWhat do parts cost?")
    assert first.requests[1].messages[1].content == asked
    second = await play_turn(services, ["ok"], text="And projects?")
    assert second.requests[0].system == first.requests[0].system
    assert "PartManager" not in second.requests[0].system
    assert second.requests[0].messages[1].content == "What do parts cost?"


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
    assert str(failure) in record.getMessage()
    assert not record.exc_info


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


class _Odd(BaseException):
    """No ``Exception``, as some libraries' own ways of stopping."""


@pytest.mark.parametrize("odd", [SystemExit(2), _Odd(), BaseExceptionGroup("several", [_Odd()])])
async def test_whatever_a_provider_raises_the_turn_is_closed(odd: BaseException) -> None:
    """Else its user could not go on before it is taken for dead; and a ``SystemExit`` would stop the server."""
    services = MemoryServices()
    turn = await play_turn(services, ["Half", odd])
    assert only_error(turn.events).code == "chat_error"
    assert turn.closed is not None
    assert turn.closed.outcome.state == "failed"
    assert (await play_turn(services, ["Again."])).events[-1] == Done(TokenUsage(10, 5))


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

    turn = await play_turn(MemoryServices(), loop=loop)
    error = only_error(turn.events)
    assert (error.code, error.message) == ("budget_exhausted", PUBLIC_MESSAGES["budget_exhausted"])


class FailingStore(MemoryStore):
    def __init__(self, *, opening: bool = False, closing: bool = False) -> None:
        super().__init__()
        self.fails = {"open": opening, "close": closing}

    async def open_turn(self, request: TurnRequest, turn_id: str, *, max_messages: int) -> OpenedTurn | JoinedTurn:
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
    """Cancel the turn once ``ready`` is set; return all its events."""
    runner = TurnRunner(services, legacy_loop)
    with ScriptedProvider.playing(*rounds) as script:
        turn_id = await runner.start(ask())
        await asyncio.wait_for(ready.wait(), 1)
        assert await asyncio.wait_for(runner.cancel(turn_id, actor=OWNER), 1) is True
        assert script.open_streams == 0
    async with aclosing(runner.subscribe(turn_id, actor=OWNER)) as events:
        return [logged.event async for logged in events]


async def test_cancelled_while_the_provider_streams() -> None:
    services = MemoryServices()
    ready = asyncio.Event()

    async def hang() -> None:
        ready.set()
        await asyncio.sleep(60)

    assert await cancel_at(services, ready, ["Half", hang]) == [TextChunk("Half"), CANCELLED]
    (closed,) = services.store.closed
    assert [row.content for row in closed.messages] == ["Half"]
    assert closed.outcome == TurnOutcome("cancelled", "cancelled", 0, 0, "Half")
    assert closed.events == (TextChunk("Half"), CANCELLED)
    assert closed.usage == TokenUsage(reported=False)
    assert services.observer.log == ["started", "finished cancelled"]


async def test_a_provider_that_swallows_the_cancellation_is_not_listened_to_any_longer() -> None:
    """As ``asyncio.wait_for()`` does up to Python 3.11, when what it waits for comes at the same time."""
    ready = asyncio.Event()

    async def deaf() -> None:
        ready.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)

    said = await cancel_at(MemoryServices(), ready, ["Half", deaf, " of it", 60, " and more"])
    assert said == [TextChunk("Half"), TextChunk(" of it"), CANCELLED]


async def test_a_provider_that_never_waits_lets_others_run_and_can_be_cancelled() -> None:
    ready = asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, ready.set)
    endless = itertools.chain.from_iterable(itertools.repeat(["more "]))
    *said, last = await cancel_at(MemoryServices(), ready, endless)
    assert last == CANCELLED
    assert set(said) == {TextChunk("more ")}


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
    """Takes its time to close a turn, and tells when it is at work."""

    def __init__(self) -> None:
        super().__init__()
        self.at_work = asyncio.Event()

    async def close_turn(self, turn: ClosedTurn) -> None:
        self.at_work.set()
        await asyncio.sleep(0.03)
        await super().close_turn(turn)


async def test_cancelled_while_it_is_closed_a_turn_ends_as_the_store_has_it() -> None:
    store = SlowStore()
    services = MemoryServices(store=store)
    assert await cancel_at(services, store.at_work, ["Hello."]) == [TextChunk("Hello."), Done(TokenUsage(10, 5))]
    (closed,) = store.closed
    assert closed.outcome.state == "done"


async def test_a_write_that_has_begun_is_not_torn_by_a_cancellation() -> None:
    ready = asyncio.Event()

    async def mutate(args: Mapping[str, Any], context: ToolContext) -> Any:
        ready.set()
        await asyncio.sleep(0.03)
        return {"status": "executed", "data": 1}

    services = MemoryServices(tools=[tool(mutate, write=True)])
    events = await cancel_at(services, ready, [call("mutate")])
    assert events == [ToolCall("id-2", "mutate", {}), CANCELLED]
    assert services.observer.tools == [("mutate", {}, {"status": "executed", "data": 1})]
    (closed,) = services.store.closed
    assert closed.messages[1].tool_result == {"status": "executed", "data": 1}


async def test_a_write_that_hangs_does_not_keep_a_turn_from_being_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gm_chat.engine.state.WRITE_PATIENCE", 0.05)
    ready = asyncio.Event()

    async def mutate(args: Mapping[str, Any], context: ToolContext) -> Any:
        ready.set()
        await asyncio.sleep(60)

    services = MemoryServices(tools=[tool(mutate, write=True)])
    assert await cancel_at(services, ready, [call("mutate")]) == [ToolCall("id-2", "mutate", {}), CANCELLED]
    turn = await play_turn(services, ["Hm."], text="Well?")
    assert turn.requests[0].messages[3].tool_result["error"]["code"] == "interrupted"


# --- time --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["provider", "tool", "building"])
async def test_a_turn_is_bounded_as_a_whole(where: str) -> None:
    async def look(args: Mapping[str, Any], context: ToolContext) -> Any:
        await asyncio.sleep(60)

    class SlowToBuild(MemoryServices):
        async def provider_for(self, context: TurnContext) -> ProviderHandle:
            await asyncio.sleep(60 if where == "building" else 0)
            return await super().provider_for(context)

    services = SlowToBuild(tools=[tool(look)], settings=ChatSettings(turn_timeout_seconds=0.05))
    turn = await asyncio.wait_for(play_turn(services, [call("look")] if where == "tool" else ["Half", 60]), 2)
    assert only_error(turn.events).code == "chat_error"
    assert turn.closed is not None
    assert turn.closed.outcome.state == "failed"
    ((error, _),) = services.observer.failures
    assert isinstance(error, TurnTimeoutError)
    assert "longer than 0.05 s" in str(error)


async def test_time_is_no_matter_unless_it_is_limited() -> None:
    services = MemoryServices(settings=ChatSettings(turn_timeout_seconds=5))
    assert (await play_turn(services, ["Hello."])).events[-1] == Done(TokenUsage(10, 5))


@pytest.mark.parametrize("limit", [None, 30.0])
async def test_a_provider_may_know_how_much_time_is_left(limit: float | None) -> None:
    async def look(args: Mapping[str, Any], context: ToolContext) -> Any:
        return {}

    services = MemoryServices(tools=[tool(look)], settings=ChatSettings(turn_timeout_seconds=limit))
    turn = await play_turn(services, [0.01, call("look")], ["Hello."])
    left = [request.options.deadline for request in turn.requests]
    if limit is None:
        assert left == [None, None]
    else:
        assert limit > left[0] > left[1] > 0


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

    def __init__(self, *others: ManagerInfo) -> None:
        self.infos = [PARTS, *others]
        self.calls: list[str] = []

    async def view(self, actor: Actor) -> Any:
        seen = {info.name: frozenset(field.name for field in info.fields) for info in self.infos}
        rights = {name: ManagerVisibility(fields, frozenset(), frozenset()) for name, fields in seen.items()}
        return MaskedView(SchemaIndex.build(self.infos), Visibility("all", rights | {"PartManager": RIGHTS}))

    async def query(self, plan: Any, actor: Actor, *, deadline: float | None) -> Any:
        self.calls.append("query")

    async def mutate(self, call: MutationCall, actor: Actor, *, deadline: float | None) -> Mapping[str, Any]:
        self.calls.append(call.mutation.name)
        return {"status": "executed"}

    async def preview(self, call: MutationCall, actor: Actor, *, deadline: float | None) -> Mapping[str, Any]:
        self.calls.append(f"preview {call.mutation.name}")
        return {"tried": True}


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


async def test_a_preview_is_asked_about_like_the_mutation() -> None:
    async def preview(args: Mapping[str, Any], context: ToolContext) -> Any:
        return await context.managers.preview(CREATE, context.actor, deadline=None)

    managers = Managers()
    services = MemoryServices(tools=[tool(preview, write=True)], managers=managers)
    turn = await play_turn(services, [call("preview")], ["Done."])
    assert services.asked[-1] == "mutation createPart"
    assert (managers.calls, turn.requests[1].results) == (["preview createPart"], [{"tried": True}])
    services.denied = frozenset({"mutation createPart"})
    turn = await play_turn(services, [call("preview")], ["No."])
    assert turn.requests[1].results[0]["error"]["code"] == "permission_denied"
    assert managers.calls == ["preview createPart"]


@pytest.mark.parametrize("denied", ["mutation createPart", "mutation reset_stock", "tool reset_stock"])
async def test_a_denied_mutation_does_not_run(denied: str) -> None:
    managers = Managers()
    tools = [tool(_write, name="reset_stock", write=True)]
    services = MemoryServices(tools=tools, managers=managers, denied=frozenset({denied}))
    turn = await play_turn(services, [call("reset_stock")], ["No."])
    assert turn.requests[1].results[0]["error"]["code"] == "permission_denied"
    assert "denied by the test" not in repr(turn.events)
    assert "createPart" not in managers.calls
