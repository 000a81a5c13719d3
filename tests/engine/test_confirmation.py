"""Turns that pause for their user's word, and what the word comes to: exact events, store, observer, provider."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from gm_chat.engine import TurnRunner
from gm_chat.engine.events import ConfirmMutation, Done, Error, Event, TextChunk, ToolCall, ToolResult
from gm_chat.engine.failures import CANCELLED, TurnStopped
from gm_chat.engine.ports import TurnRequest
from gm_chat.errors import PUBLIC_MESSAGES
from gm_chat.loops import legacy_loop
from gm_chat.plugin import Actor, ToolContext, ToolError, TurnContext
from gm_chat.providers.base import TokenUsage
from gm_chat.settings import ChatSettings
from gm_chat.testing.scripted import ScriptedProvider, call
from gm_chat.testing.services import OWNER, MemoryServices, MemoryStore, Recorder, ask, tool, word

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gm_chat.engine.ports import ClosedTurn, ConfirmRequest, ProviderHandle, ResumedTurn, StoredMessage
    from gm_chat.plugin import ToolSpec

OTHER = Actor("8")
INPUT = {"name": "Bolt", "price": "9.90"}
ARGS: Any = {"mutation": "createPart", "input": INPUT}
ASKS = call("mutate", call_id="theirs", **ARGS)
EXECUTED = {"status": "executed", "data": {"id": 1}}
REJECTED = {"status": "cancelled", "reason": "user_rejected"}
TIMED_OUT = {"status": "cancelled", "reason": "confirmation_timed_out"}


def times(rounds: int) -> TokenUsage:
    return TokenUsage(10 * rounds, 5 * rounds)


def stop(code: str) -> Error:
    return Error(code, PUBLIC_MESSAGES[code])


class Desk:
    """A chat of one user in one process, with a ``mutate`` that asks for approval and a clock to turn."""

    def __init__(self, **settings: Any) -> None:
        self.now = datetime.now(tz=UTC)
        self.written: list[Mapping[str, Any]] = []
        self.contexts: list[ToolContext] = []
        self.breaks: Exception | None = None
        self.preview: dict[str, Any] = {}
        self.takes = 0.0
        self.services = MemoryServices(
            tools=[tool(self.mutate, write=True), tool(self.query)],
            store=MemoryStore(now=lambda: self.now),
            settings=ChatSettings(**settings),
        )
        self.runner = TurnRunner(self.services, legacy_loop)

    async def mutate(self, args: Mapping[str, Any], context: ToolContext) -> Any:
        if not context.approved and not args["mutation"].startswith("free"):
            return {"status": "confirmation_required", **args, **({"preview": self.preview} if self.preview else {})}
        self.contexts.append(context)
        await asyncio.sleep(self.takes)
        if self.breaks is not None:
            raise self.breaks
        self.written.append(args)
        return {"status": "executed", "data": {"id": len(self.written)}}

    async def query(self, args: Mapping[str, Any], context: ToolContext) -> Any:
        return ["Bolt"]

    @property
    def store(self) -> MemoryStore:
        return self.services.store

    @property
    def observer(self) -> Recorder:
        return self.services.observer

    @property
    def closed(self) -> ClosedTurn:
        return self.store.closed[-1]

    def another_process(self) -> TurnRunner:
        return TurnRunner(self.services, legacy_loop)

    async def events(self, turn_id: str, after_seq: int = 0, *, runner: TurnRunner | None = None) -> list[Event]:
        source = (runner or self.runner).subscribe(turn_id, after_seq, actor=OWNER)
        async with asyncio.timeout(5), aclosing(source) as events:
            return [logged.event async for logged in events]

    async def say(self, text: str = "Create it", *, transport: Any = "sse") -> list[Event]:
        return await self.events(await self.runner.start(ask(text, transport=transport)))

    async def pause(self) -> tuple[str, ConfirmMutation]:
        """Get a turn to its pause; return its id and what it asks."""
        turn_id = await self.runner.start(ask("Create it", transport="sse"))
        last = (await self.events(turn_id))[-1]
        assert isinstance(last, ConfirmMutation)
        return turn_id, last

    async def confirm(self, confirmation_id: str, *, runner: TurnRunner | None = None, **how: Any) -> list[Event]:
        runner = runner or self.runner
        turn_id, after_seq = await runner.confirm(word(confirmation_id, **how))
        return await self.events(turn_id, after_seq, runner=runner)

    async def refusal(self, request: ConfirmRequest | TurnRequest) -> str:
        asked = self.runner.start(request) if isinstance(request, TurnRequest) else self.runner.confirm(request)
        with pytest.raises(TurnStopped) as caught:
            await asked
        return caught.value.event.code


# --- pausing ------------------------------------------------------------------------------------------------------


async def test_a_mutation_that_needs_approval_pauses_the_turn() -> None:
    desk = Desk(confirm_timeout_seconds=30)
    with ScriptedProvider.playing(["I will. ", ASKS]):
        events = await desk.say()
    pause = ConfirmMutation("id-2", "createPart", INPUT)
    assert events == [TextChunk("I will. "), ToolCall("id-2", "mutate", ARGS), pause]
    closed = desk.closed
    assert closed.outcome.state == "paused"
    assert closed.outcome.text == "I will. "
    assert closed.events == tuple(events)
    assert [row.role for row in closed.messages] == ["assistant"]
    assert closed.messages[0].tool_calls == [{"id": "id-2", "name": "mutate", "args": ARGS}]
    assert closed.pending is not None
    assert (closed.pending.id, closed.pending.mutation, closed.pending.input) == ("id-2", "createPart", INPUT)
    assert 29 < (closed.pending.expires_at - datetime.now(tz=UTC)).total_seconds() <= 30
    assert closed.pending.turn_id == "id-1"
    progress = closed.pending.progress
    assert (progress.rounds, progress.failed_rounds, progress.mutations, progress.usage) == (1, 0, 1, times(1))
    assert 0 < progress.seconds < 5
    assert desk.observer.log == ["started", "paused"]
    assert desk.written == []
    assert [item.id for item in await desk.runner.pending(OWNER)] == ["id-2"]
    assert await desk.runner.pending(OTHER) == []
    assert all(task.done() for task in asyncio.all_tasks() if task is not asyncio.current_task())


@pytest.mark.parametrize("transport", ["websocket", "terminal"])
async def test_what_can_ask_pauses(transport: str) -> None:
    desk = Desk()
    with ScriptedProvider.playing([ASKS]):
        assert isinstance((await desk.say(transport=transport))[-1], ConfirmMutation)


async def test_plain_http_cannot_ask() -> None:
    desk = Desk()
    with ScriptedProvider.playing([ASKS]):
        assert await desk.say(transport="http") == [
            ToolCall("id-2", "mutate", ARGS),
            stop("confirmation_required_transport"),
        ]
    assert await desk.runner.pending(OWNER) == []
    assert desk.closed.messages[1].tool_result["error"]["code"] == "confirmation_required_transport"


async def test_the_next_message_waits_for_the_word() -> None:
    desk = Desk()
    with ScriptedProvider.playing([ASKS]):
        await desk.pause()
        assert await desk.refusal(ask("Hello?")) == "confirmation_pending"


async def test_a_pause_that_cannot_be_kept_fails_the_turn() -> None:
    class Down(MemoryStore):
        async def close_turn(self, turn: ClosedTurn) -> None:
            raise OSError("database is down")

    desk = Desk()
    desk.services.store = Down()
    with ScriptedProvider.playing([ASKS]):
        *_, last = await desk.say()
    assert isinstance(last, Error)
    assert last.code == "chat_error"
    assert desk.observer.log == ["started", "failed", "finished failed"]


# --- the user's word ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same process", "another process"])
async def test_an_approved_mutation_runs_once_and_the_provider_goes_on(elsewhere: bool) -> None:
    desk = Desk()
    runner = desk.another_process() if elsewhere else desk.runner
    with ScriptedProvider.playing(["I will. ", ASKS], ["Done."]) as script:
        turn_id, asked = await desk.pause()
        events = await desk.confirm(asked.id, runner=runner)
        assert events == [ToolResult("id-2", "mutate", EXECUTED), TextChunk("Done."), Done(times(2))]
        assert await desk.refusal(word(asked.id)) == "confirmation_unavailable"
    assert desk.written == [ARGS]
    assert desk.contexts[0].approved is True
    assert desk.contexts[0].call_id == "id-2"
    assert desk.contexts[0].turn == TurnContext("id-1", "user:7", OWNER, "Create it", "http")
    assert desk.store.confirmation_state("id-2") == "executed"
    assert desk.services.asked[1:] == ["tool mutate", "confirm createPart", "tool mutate"]
    # one log, whole: for the store and for whoever comes late, wherever it ran
    assert desk.closed.events == (TextChunk("I will. "), ToolCall("id-2", "mutate", ARGS), asked, *events)
    for process in (desk.runner, desk.another_process(), runner):
        assert await desk.events(turn_id, runner=process) == list(desk.closed.events)
        assert await desk.events(turn_id, 3, runner=process) == events
    assert desk.closed.usage == times(2)
    assert desk.closed.outcome.text == "Done."
    assert [row.role for row in desk.closed.messages] == ["assistant"], "the answer was kept when it was settled"
    assert [row.role for row in desk.store.rows["user:7"]] == ["user", "assistant", "tool", "assistant"]
    # the model sees its own call again, answered
    *_, question, said, answered = script.requests[1].messages
    assert (question.role, question.content) == ("user", "Create it")
    assert (said.content, said.tool_calls[0].id) == ("I will. ", "theirs")
    assert (answered.tool_call_id, answered.tool_result) == ("theirs", EXECUTED)
    assert desk.observer.log == ["started", "paused", "tool mutate", "finished done"]
    assert desk.observer.tools == [("mutate", ARGS, EXECUTED)]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same process", "another process"])
async def test_what_it_would_do_is_shown_kept_and_bound(elsewhere: bool) -> None:
    desk = Desk()
    desk.preview = {"changes": [{"field": "price", "old": Decimal("9.90")}]}
    told = {"changes": [{"field": "price", "old": "9.90"}]}
    with ScriptedProvider.playing([ASKS], ["Done."]):
        _, asked = await desk.pause()
        assert asked == ConfirmMutation("id-2", "createPart", INPUT, told)
        assert [item.preview for item in await desk.runner.pending(OWNER)] == [told]
        desk.preview["changes"] = []
        await desk.confirm(asked.id, runner=desk.another_process() if elsewhere else desk.runner)
    assert (desk.contexts[0].approved, desk.contexts[0].shown) == (True, told)


async def test_an_approved_mutation_that_does_not_run_is_told_as_failed() -> None:
    desk = Desk()
    desk.breaks = ToolError("conflict", "the price is another by now", fields={"price": {}})
    with ScriptedProvider.playing([ASKS], ["Shall I?"]) as script:
        _, asked = await desk.pause()
        result, *_, last = await desk.confirm(asked.id)
    told = {
        "error": {"code": "conflict", "message": "the price is another by now", "fields": {"price": {}}},
        "status": "failed",
    }
    assert result == ToolResult("id-2", "mutate", told)
    assert last == Done(times(2))
    assert script.requests[1].results == [told]
    assert desk.observer.tools == [("mutate", ARGS, told)]
    assert desk.store.confirmation_state(asked.id) == "failed"
    assert desk.store.rows["user:7"][2].tool_result == told


async def test_a_rejected_mutation_never_runs() -> None:
    desk = Desk()
    with ScriptedProvider.playing([ASKS], ["As you like."]) as script:
        _, asked = await desk.pause()
        events = await desk.confirm(asked.id, approved=False)
    assert events == [ToolResult("id-2", "mutate", REJECTED), TextChunk("As you like."), Done(times(2))]
    assert desk.written == []
    assert script.requests[1].results == [REJECTED]
    assert desk.store.confirmation_state(asked.id) == "rejected"
    assert desk.observer.tools == [("mutate", ARGS, REJECTED)]


async def test_of_many_words_at_once_one_counts() -> None:
    desk = Desk()
    desk.takes = 0.01
    with ScriptedProvider.playing([ASKS], ["Done."]):
        _, asked = await desk.pause()
        runners = [desk.runner, *(desk.another_process() for _ in range(7))]
        answers = await asyncio.gather(
            *(desk.confirm(asked.id, runner=runner) for runner in runners), return_exceptions=True
        )
    refused = [answer.event.code for answer in answers if isinstance(answer, TurnStopped)]
    assert refused == ["confirmation_unavailable"] * 7
    assert desk.written == [ARGS]


@pytest.mark.parametrize(("id", "actor"), [("id-2", OTHER), ("nope", OWNER), ("", OWNER)])
async def test_unknown_and_foreign_confirmations_are_alike(id: str, actor: Actor) -> None:
    desk = Desk()
    with ScriptedProvider.playing([ASKS]):
        await desk.pause()
    assert await desk.refusal(word(id, actor=actor)) == "bad_event"
    assert desk.store.confirmation_state("id-2") == "pending"


async def test_a_store_that_fails_to_claim_is_told_as_chat_error() -> None:
    class Down(MemoryStore):
        async def claim(self, request: ConfirmRequest, *, max_messages: int, lease_seconds: float) -> ResumedTurn:
            raise OSError("database is down")

    desk = Desk()
    desk.services.store = Down()
    assert await desk.refusal(word("id-2")) == "chat_error"
    assert len(desk.observer.failures) == 1


async def test_what_was_stored_is_what_runs() -> None:
    """The tool's own answer names the arguments; whatever happens to that object later changes nothing."""
    desk = Desk()
    answer = {"status": "confirmation_required", "mutation": "createPart", "input": {"tags": ["a"]}}

    async def mutate(args: Mapping[str, Any], context: ToolContext) -> Any:
        desk.written.append(args)
        return {"status": "executed"} if context.approved else answer

    desk.services.tools = [tool(mutate, write=True)]
    with ScriptedProvider.playing([call("mutate", mutation="createPart", input={"tags": ["other"]})], ["Done."]):
        _, asked = await desk.pause()
        answer["input"]["tags"].append("smuggled")  # type: ignore[index]  # it is a dict
        assert asked.input == {"tags": ["a"]}
        await desk.confirm(asked.id)
    assert desk.written[-1] == {"mutation": "createPart", "input": {"tags": ["a"]}}


# --- what can have changed meanwhile ------------------------------------------------------------------------------


async def test_whoever_may_not_confirm_any_more_ends_the_turn() -> None:
    desk = Desk()
    with ScriptedProvider.playing([ASKS], ["never said"]) as script:
        _, asked = await desk.pause()
        desk.services.denied = frozenset({"confirm createPart"})
        result, last = await desk.confirm(asked.id)
        assert len(script.requests) == 1
    assert isinstance(result, ToolResult)
    assert result.result["error"]["code"] == "permission_denied"
    assert last == stop("permission_denied")
    assert desk.written == []
    assert desk.store.confirmation_state(asked.id) == "failed"
    assert desk.closed.usage == times(1)


async def test_whoever_may_not_confirm_may_still_reject() -> None:
    desk = Desk()
    with ScriptedProvider.playing([ASKS]):
        _, asked = await desk.pause()
        desk.services.denied = frozenset({"confirm createPart"})
        events = await desk.confirm(asked.id, approved=False)
    assert events == [ToolResult("id-2", "mutate", REJECTED), stop("permission_denied")]


async def test_a_tool_that_is_not_permitted_any_more_does_not_run_and_the_model_learns_why() -> None:
    desk = Desk()
    with ScriptedProvider.playing([ASKS], ["Sorry."]) as script:
        _, asked = await desk.pause()
        desk.services.denied = frozenset({"tool mutate"})
        assert (await desk.confirm(asked.id))[1:] == [TextChunk("Sorry."), Done(times(2))]
    assert script.requests[1].results[0]["error"]["code"] == "permission_denied"
    assert desk.store.confirmation_state(asked.id) == "failed"


async def test_a_mutation_that_fails_now_is_told_to_the_model_and_counts_as_a_failed_round() -> None:
    desk = Desk(max_retries_per_message=0)
    desk.breaks = ToolError("not_found", "gone")
    with ScriptedProvider.playing([ASKS]):
        _, asked = await desk.pause()
        result, last = await desk.confirm(asked.id)
    assert isinstance(result, ToolResult)
    assert result.result["error"]["code"] == "not_found"
    assert last == stop("tool_retry_limit")
    assert desk.store.confirmation_state(asked.id) == "failed"


async def test_a_mutation_that_breaks_ends_the_turn_without_detail() -> None:
    desk = Desk()
    desk.breaks = RuntimeError("secret")
    with ScriptedProvider.playing([ASKS]):
        _, asked = await desk.pause()
        result, last = await desk.confirm(asked.id)
    assert isinstance(result, ToolResult)
    assert result.result["error"]["code"] == "internal_error"
    assert isinstance(last, Error)
    assert last.code == "chat_error"
    assert "secret" not in repr([result, last])
    assert desk.store.confirmation_state(asked.id) == "failed"


async def test_tools_that_cannot_be_had_settle_the_claim() -> None:
    desk = Desk()
    with ScriptedProvider.playing([ASKS]):
        _, asked = await desk.pause()

        class Broken(MemoryServices):
            async def tools_for(self, context: TurnContext) -> Sequence[ToolSpec]:
                raise LookupError("no tools")

        runner = TurnRunner(Broken(store=desk.store), legacy_loop)
        result, last = await desk.confirm(asked.id, runner=runner)
    assert isinstance(result, ToolResult)
    assert isinstance(last, Error)
    assert last.code == "chat_error"
    assert desk.store.confirmation_state(asked.id) == "failed"


async def test_a_provider_that_cannot_be_had_leaves_the_mutation_executed() -> None:
    desk = Desk()
    with ScriptedProvider.playing([ASKS]):
        _, asked = await desk.pause()

        class Broken(MemoryServices):
            async def provider_for(self, context: TurnContext) -> ProviderHandle:
                raise LookupError("no provider")

        runner = TurnRunner(Broken(store=desk.store, tools=desk.services.tools), legacy_loop)
        result, last = await desk.confirm(asked.id, runner=runner)
    assert result == ToolResult("id-2", "mutate", EXECUTED)
    assert isinstance(last, Error)
    assert desk.store.confirmation_state(asked.id) == "executed"
    assert desk.closed.usage == times(1)


async def test_a_tool_that_asks_again_for_what_it_was_given_is_broken() -> None:
    async def mutate(args: Mapping[str, Any], context: ToolContext) -> Any:
        return {"status": "confirmation_required", **args}

    desk = Desk()
    desk.services.tools = [tool(mutate, write=True)]
    with ScriptedProvider.playing([ASKS]):
        _, asked = await desk.pause()
        *_, last = await desk.confirm(asked.id)
    assert isinstance(last, Error)
    assert last.code == "chat_error"


async def test_an_outcome_that_cannot_be_recorded_reads_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise OSError("database is down")

    time = 0.0
    desk = Desk(claim_lease_seconds=60)
    desk.store._clock = lambda: time
    with ScriptedProvider.playing([ASKS], ["New."]):
        _, asked = await desk.pause()
        monkeypatch.setattr(MemoryStore, "settle", fail)
        (last,) = await desk.confirm(asked.id)
        assert isinstance(last, Error)
        assert last.code == "chat_error"
        assert desk.store.confirmation_state(asked.id) == "claimed"
        time = 61.0
        assert desk.store.confirmation_state(asked.id) == "unknown"
        assert await desk.refusal(word(asked.id)) == "confirmation_unavailable"
        assert (await desk.say("Well?"))[-1] == Done(times(1))
    assert desk.written == [ARGS]


# --- limits -------------------------------------------------------------------------------------------------------


async def test_a_resumed_turn_may_ask_again_also_over_http() -> None:
    desk = Desk()
    second = call("mutate", mutation="deletePart", input={"id": 1})
    with ScriptedProvider.playing([ASKS], ["Next. ", second], ["All done."]):
        turn_id, first = await desk.pause()
        again = await desk.confirm(first.id, transport="http")
        assert again[-1] == ConfirmMutation("id-3", "deletePart", {"id": 1})
        assert desk.closed.pending is not None
        assert desk.closed.pending.progress.mutations == 2
        events = await desk.confirm("id-3", transport="http")
    assert events[-1] == Done(times(3))
    assert len(desk.written) == 2
    assert await desk.events(turn_id, runner=desk.another_process()) == list(desk.closed.events)
    terminals = [type(event) for event in desk.closed.events if isinstance(event, Done | Error | ConfirmMutation)]
    assert terminals == [ConfirmMutation, ConfirmMutation, Done]


@pytest.mark.parametrize(
    ("settings", "end"),
    [
        ({"max_mutations_per_message": 1}, "mutation_limit"),
        ({"max_total_rounds_per_message": 1}, "turn_limit"),
    ],
)
async def test_limits_count_on_over_a_pause(settings: dict[str, Any], end: str) -> None:
    desk = Desk(**settings)
    with ScriptedProvider.playing([ASKS], [call("mutate", mutation="freePart", input={})]):
        _, asked = await desk.pause()
        assert (await desk.confirm(asked.id))[-1] == stop(end)
    assert desk.written == [ARGS]


async def test_no_mutation_is_asked_about_where_none_is_allowed() -> None:
    desk = Desk(max_mutations_per_message=0)
    with ScriptedProvider.playing([ASKS]):
        assert await desk.say() == [stop("mutation_limit")]


@pytest.mark.parametrize("second", [call("query"), ASKS])
async def test_a_mutation_is_never_asked_about_in_a_batch(second: Any) -> None:
    desk = Desk()
    with ScriptedProvider.playing([ASKS, second]):
        assert await desk.say() == [stop("mutation_batch_unsupported")]


async def test_the_time_of_a_turn_counts_on_over_a_pause_but_not_that_of_waiting() -> None:
    desk = Desk(turn_timeout_seconds=0.3)
    with ScriptedProvider.playing([0.2, ASKS], [0.2, "too late"], ["fresh"]):
        _, asked = await desk.pause()
        await asyncio.sleep(0.3)
        result, last = await desk.confirm(asked.id)
    assert result == ToolResult("id-2", "mutate", EXECUTED)
    assert isinstance(last, Error)
    assert last.code == "chat_error"


async def test_a_resumed_turn_is_not_told_to_use_its_tools() -> None:
    desk = Desk(recover_missing_tool_calls=True)
    with ScriptedProvider.playing([ASKS], ["Done."]):
        _, asked = await desk.pause()
        assert (await desk.confirm(asked.id))[-1] == Done(times(2))


# --- expiry -------------------------------------------------------------------------------------------------------


async def lapse(desk: Desk) -> tuple[str, ConfirmMutation]:
    turn_id, asked = await desk.pause()
    assert desk.closed.pending is not None
    desk.now = desk.closed.pending.expires_at
    return turn_id, asked


ENDS = [ToolResult("id-2", "mutate", TIMED_OUT), Done(times(1))]


@pytest.mark.parametrize("who", ["timer", "next turn", "late confirm", "cleanup"])
async def test_whoever_comes_first_ends_what_nobody_confirmed_in_time_once(who: str) -> None:
    desk = Desk()
    with ScriptedProvider.playing([ASKS], ["New."]) as script:
        turn_id, asked = await lapse(desk)
        assert await desk.runner.pending(OWNER) == []
        match who:
            case "timer":
                (expired,) = await desk.runner.expire(OWNER)
                assert (expired.turn_id, expired.pending.id) == (turn_id, asked.id)
            case "next turn":
                assert (await desk.say("And now?"))[-1] == Done(times(1))
                roles = [message.role for message in script.requests[-1].messages]
                assert roles == ["system", "user", "assistant", "tool", "user"]
            case "late confirm":
                assert await desk.refusal(word(asked.id)) == "confirmation_unavailable"
            case "cleanup":
                assert len(await desk.another_process().expire()) == 1
        assert desk.observer.tools == [("mutate", ARGS, TIMED_OUT)]
        assert await desk.runner.expire() == []
        assert await desk.refusal(word(asked.id)) == "confirmation_unavailable"
        for process in (desk.runner, desk.another_process()):
            assert await desk.events(turn_id, 2, runner=process) == ENDS
    assert desk.written == []
    assert len(desk.observer.tools) == 1
    assert desk.observer.outcomes[1].state == "done"
    assert desk.store.confirmation_state(asked.id) == "expired"


async def test_another_s_confirmations_are_not_expired_with_one_s_own() -> None:
    desk = Desk()
    with ScriptedProvider.playing([ASKS]):
        await lapse(desk)
        assert await desk.runner.expire(OTHER) == []
        assert len(await desk.runner.expire(OWNER)) == 1


async def test_an_observer_that_fails_does_not_keep_others_from_learning(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Recorder):
        async def tool_finished(self, *args: Any) -> None:
            raise RuntimeError("sink is down")

    desk = Desk()
    with ScriptedProvider.playing([ASKS]):
        await lapse(desk)
        desk.services.observer = Broken()
        assert len(await desk.runner.expire()) == 1
    assert "the observer of turn id-1 failed" in caplog.text


async def test_whoever_leaves_while_confirmations_expire_has_still_told_of_them() -> None:
    class Slow(MemoryStore):
        async def expire(self, *args: Any, **kwargs: Any) -> Any:
            expired = await super().expire(*args, **kwargs)
            await asyncio.sleep(0.02)
            return expired

    desk = Desk()
    desk.services.store = Slow(now=lambda: desk.now)
    with ScriptedProvider.playing([ASKS]):
        await lapse(desk)
        leaving = asyncio.create_task(desk.runner.expire())
        await asyncio.sleep(0.01)
        leaving.cancel()
        await asyncio.wait({leaving})
    assert leaving.cancelled()
    assert desk.observer.tools == [("mutate", ARGS, TIMED_OUT)]


async def test_what_lapses_again_and_again_is_pending() -> None:
    """Somebody else ends it at this moment and has not told the store yet."""

    class Busy(MemoryStore):
        async def expire(self, *_: Any, **__: Any) -> list[Any]:
            return []

    desk = Desk()
    desk.services.store = Busy(now=lambda: desk.now)
    with ScriptedProvider.playing([ASKS]):
        await lapse(desk)
        assert await desk.refusal(ask("Hello?")) == "confirmation_pending"


# --- cancelling, leaving ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same process", "another process"])
async def test_cancelling_a_paused_turn_rejects_its_mutation_and_ends_it(elsewhere: bool) -> None:
    desk = Desk()
    runner = desk.another_process() if elsewhere else desk.runner
    with ScriptedProvider.playing([ASKS]) as script:
        turn_id, asked = await desk.pause()
        assert await runner.cancel(turn_id, actor=OTHER) is False
        assert await runner.cancel(turn_id, actor=OWNER) is True
        assert len(script.requests) == 1
    assert await desk.events(turn_id, 2) == [ToolResult("id-2", "mutate", REJECTED), CANCELLED]
    assert desk.closed.outcome.state == "cancelled"
    assert desk.closed.usage == times(1)
    assert desk.store.confirmation_state(asked.id) == "rejected"
    assert desk.observer.tools == [("mutate", ARGS, REJECTED)]
    assert await runner.cancel(turn_id, actor=OWNER) is False


async def test_cancelled_while_it_pauses_a_turn_ends() -> None:
    class Slow(MemoryStore):
        async def close_turn(self, turn: ClosedTurn) -> None:
            at_work.set()
            await asyncio.sleep(0.03)
            await super().close_turn(turn)

    at_work = asyncio.Event()
    desk = Desk()
    desk.services.store = Slow(now=lambda: desk.now)
    with ScriptedProvider.playing([ASKS]):
        turn_id = await desk.runner.start(ask(transport="sse"))
        await at_work.wait()
        assert await desk.runner.cancel(turn_id, actor=OWNER) is True
    assert (await desk.events(turn_id, 2))[1:] == [CANCELLED]
    assert desk.written == []
    assert await desk.runner.pending(OWNER) == []


async def test_cancelled_while_the_mutation_runs_its_outcome_is_recorded() -> None:
    desk = Desk()
    desk.takes = 0.05
    with ScriptedProvider.playing([ASKS], ["never said"]) as script:
        turn_id, asked = await desk.pause()
        _, after_seq = await desk.runner.confirm(word(asked.id))
        await asyncio.sleep(0.01)
        assert await desk.runner.cancel(turn_id, actor=OWNER) is True
        assert len(script.requests) == 1
    assert await desk.events(turn_id, after_seq) == [ToolResult("id-2", "mutate", EXECUTED), CANCELLED]
    assert desk.store.confirmation_state(asked.id) == "executed"
    assert len(desk.written) == 1


async def test_another_process_that_cancels_again_and_again_does_not_tear_a_mutation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gm_chat.engine.pulse.PULSE_SECONDS", 0.01)
    desk = Desk()
    desk.takes = 0.1
    with ScriptedProvider.playing([ASKS]):
        turn_id, asked = await desk.pause()
        _, after_seq = await desk.runner.confirm(word(asked.id))
        assert await desk.another_process().cancel(turn_id, actor=OWNER) is True
        events = await desk.events(turn_id, after_seq)
    assert events == [ToolResult("id-2", "mutate", EXECUTED), CANCELLED]
    assert desk.store.confirmation_state(asked.id) == "executed"


async def test_a_mutation_that_hangs_is_given_up_and_stays_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gm_chat.engine.turn.WRITE_PATIENCE", 0.05)
    desk = Desk()
    desk.takes = 60
    with ScriptedProvider.playing([ASKS]):
        turn_id, asked = await desk.pause()
        _, after_seq = await desk.runner.confirm(word(asked.id))
        await asyncio.sleep(0.01)
        assert await desk.runner.cancel(turn_id, actor=OWNER) is True
    assert await desk.events(turn_id, after_seq) == [CANCELLED]
    assert desk.store.confirmation_state(asked.id) == "claimed"


async def test_a_client_that_leaves_while_its_word_is_taken_has_given_it() -> None:
    desk = Desk()
    desk.takes = 0.02
    with ScriptedProvider.playing([ASKS], ["Done."]):
        turn_id, asked = await desk.pause()
        client = asyncio.create_task(desk.runner.confirm(word(asked.id)))
        await asyncio.sleep(0)
        client.cancel()
        await asyncio.wait({client})
        await asyncio.sleep(0.1)
    assert desk.written == [ARGS]
    assert (await desk.events(turn_id))[-1] == Done(times(2))


async def test_a_paused_turn_needs_no_follower() -> None:
    desk = Desk(resume_grace_seconds=0)
    with ScriptedProvider.playing([ASKS], ["Done."]):
        _, asked = await desk.pause()
        await asyncio.sleep(0.05)
        assert (await desk.confirm(asked.id))[-1] == Done(times(2))


async def test_a_word_beats_the_stop_that_came_with_it() -> None:
    """Cancel looks, then the user's word arrives: nothing is rejected, the running turn is asked to stop."""
    desk = Desk()
    desk.takes = 0.05
    other = desk.another_process()
    with ScriptedProvider.playing([ASKS], ["never said", 60]):
        turn_id, asked = await desk.pause()
        look = desk.store.pending

        async def look_slowly(actor: Actor) -> Any:
            found = await look(actor)
            await desk.runner.confirm(word(asked.id))
            return found

        desk.store.pending = look_slowly  # type: ignore[method-assign]  # the race, made certain
        assert await other.cancel(turn_id, actor=OWNER) is True
        assert (await desk.events(turn_id))[-1] == CANCELLED
    assert len(desk.written) == 1


# --- keys ---------------------------------------------------------------------------------------------------------


async def test_a_repeated_request_joins_a_paused_turn() -> None:
    desk = Desk()
    with ScriptedProvider.playing([ASKS], ["Done."]):
        turn_id = await desk.runner.start(ask(transport="sse", key="k"))
        events = await desk.events(turn_id)
        assert await desk.runner.start(ask(transport="sse", key="k")) == turn_id
        assert await desk.events(turn_id) == events
        await desk.confirm("id-2")
        assert await desk.runner.start(ask(transport="sse", key="k")) == turn_id
        assert (await desk.events(turn_id))[-1] == Done(times(2))


async def test_rows_of_a_turn_that_waits_are_those_that_it_goes_on_from() -> None:
    """The window may be shorter than the turn: it is whole all the same."""
    desk = Desk(max_recent_messages=1)
    with ScriptedProvider.playing([call("query")], ["So. ", ASKS], ["Done."]) as script:
        _, asked = await desk.pause()
        await desk.confirm(asked.id)
    roles = [message.role for message in script.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool"]
    rows: list[StoredMessage] = desk.store.rows["user:7"]
    assert [row.role for row in rows] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
