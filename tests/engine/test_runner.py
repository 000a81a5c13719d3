from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from gm_chat.engine import TurnRunner, UnknownTurnError
from gm_chat.engine.events import Done, Error, Event, LoggedEvent, TextChunk
from gm_chat.engine.failures import CANCELLED, TurnStopped
from gm_chat.engine.runner import UNCLAIMED_SECONDS
from gm_chat.engine.turn import BREATH
from gm_chat.loops import legacy_loop
from gm_chat.plugin import Actor
from gm_chat.providers.base import TokenUsage
from gm_chat.settings import ChatSettings
from gm_chat.testing.scripted import ScriptedProvider
from gm_chat.testing.services import OWNER, MemoryServices, MemoryStore, ask

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from gm_chat.engine.ports import ClosedTurn, JoinedTurn, OpenedTurn, TurnRequest
    from gm_chat.engine.state import TurnState
    from gm_chat.plugin import Action, Decision

DONE = Done(TokenUsage(10, 5))
OTHER = Actor("8")


@pytest.fixture
def services() -> MemoryServices:
    return MemoryServices()


@pytest.fixture
def runner(services: MemoryServices) -> TurnRunner:
    return TurnRunner(services, legacy_loop)


def another_process(runner: TurnRunner) -> TurnRunner:
    """A runner that shares nothing with the first one but the store."""
    return TurnRunner(runner._services, legacy_loop)


async def follow(runner: TurnRunner, turn_id: str, after_seq: int = 0, *, actor: Actor = OWNER) -> list[LoggedEvent]:
    async with asyncio.timeout(2), aclosing(runner.subscribe(turn_id, after_seq, actor=actor)) as events:
        return [logged async for logged in events]


async def events(runner: TurnRunner, turn_id: str, *, actor: Actor = OWNER) -> list[Event]:
    return [logged.event for logged in await follow(runner, turn_id, actor=actor)]


async def see_one(runner: TurnRunner, turn_id: str) -> None:
    """Follow a turn for one event, then go away."""
    async with aclosing(runner.subscribe(turn_id, actor=OWNER)) as seen:
        await anext(seen)


async def refusal(runner: TurnRunner, request: TurnRequest) -> Error:
    with pytest.raises(TurnStopped) as caught:
        await runner.start(request)
    return caught.value.event


# --- starting and following ---------------------------------------------------------------------------------------


async def test_starts_a_turn_and_follows_it(runner: TurnRunner) -> None:
    with ScriptedProvider.playing(["a", "b"]):
        turn_id = await runner.start(ask())
        logged = await follow(runner, turn_id)
    assert logged == [
        LoggedEvent(turn_id, 1, TextChunk("a")),
        LoggedEvent(turn_id, 2, TextChunk("b")),
        LoggedEvent(turn_id, 3, DONE),
    ]
    assert [item.seq for item in await follow(runner, turn_id, 2)] == [3]


async def test_subscribers_come_and_go_while_the_turn_runs_on(runner: TurnRunner) -> None:
    gate = asyncio.Event()
    with ScriptedProvider.playing(["a", gate.wait, "b"]):
        turn_id = await runner.start(ask())
        await see_one(runner, turn_id)
        gate.set()
        assert await events(runner, turn_id) == [TextChunk("a"), TextChunk("b"), DONE]


async def test_when_the_last_event_arrives_the_task_is_over(runner: TurnRunner) -> None:
    """Under WSGI the loop is closed then: nothing may be left to do."""
    with ScriptedProvider.playing(["a"]):
        await events(runner, await runner.start(ask()))
    assert all(task.done() for task in asyncio.all_tasks() if task is not asyncio.current_task())


async def test_who_reads_a_long_log_lets_others_run(runner: TurnRunner) -> None:
    with ScriptedProvider.playing(["a"] * 10 * BREATH):
        turn_id = await runner.start(ask())
        await events(runner, turn_id)
    runs = 0

    async def other() -> None:
        nonlocal runs
        while True:
            runs += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    await follow(runner, turn_id)
    beside.cancel()
    assert runs >= 10


def test_serves_a_loop_per_request(runner: TurnRunner) -> None:
    with ScriptedProvider.playing(["a"], ["b"]):
        for text in ("a", "b"):

            async def view() -> list[Event]:
                return await events(runner, await runner.start(ask()))

            assert asyncio.run(view()) == [TextChunk(text), DONE]


async def test_what_escapes_even_a_turn_ends_the_log() -> None:
    class Abort(BaseException):
        """Neither an Exception nor a cancellation."""

    async def loop(turn: TurnState) -> AsyncGenerator[Event, None]:
        yield TextChunk("a")
        raise Abort

    runner = TurnRunner(MemoryServices(), loop)
    said, error = await events(runner, await runner.start(ask()))
    assert said == TextChunk("a")
    assert isinstance(error, Error)
    assert error.code == "chat_error"


async def test_the_loop_is_the_caller_s_choice() -> None:
    async def echo(turn: TurnState) -> AsyncGenerator[Event, None]:
        yield TextChunk(turn.context.text.upper())

    runner = TurnRunner(MemoryServices(), echo)
    assert await events(runner, await runner.start(ask("hi"))) == [TextChunk("HI"), Done(TokenUsage())]


# --- admission ----------------------------------------------------------------------------------------------------


async def test_refusals_are_known_before_start_returns(services: MemoryServices, runner: TurnRunner) -> None:
    services.denied = frozenset({"message"})
    assert (await refusal(runner, ask())).code == "permission_denied"
    assert services.store.opened == []
    assert services.observer.log == []


async def test_one_turn_of_an_actor_at_a_time(services: MemoryServices, runner: TurnRunner) -> None:
    with ScriptedProvider.playing(["a", 60], ["b"]):
        turn_id = await runner.start(ask())
        assert (await refusal(runner, ask("Again?"))).code == "turn_in_progress"
        assert (await refusal(another_process(runner), ask("Again?"))).code == "turn_in_progress"
        assert await events(runner, await runner.start(ask(actor=OTHER)), actor=OTHER) == [TextChunk("b"), DONE]
        await runner.cancel(turn_id, actor=OWNER)
    with ScriptedProvider.playing(["c"]):
        assert await events(runner, await runner.start(ask("Again?"))) == [TextChunk("c"), DONE]


async def test_a_repeated_request_joins_its_turn(runner: TurnRunner) -> None:
    with ScriptedProvider.playing(["a", 0.1, "b"]) as script:
        first = await runner.start(ask(key="k"))
        again = await runner.start(ask(key="k"))
        elsewhere = await another_process(runner).start(ask(key="k"))
        assert first == again == elsewhere
        seen = await asyncio.gather(*(events(each, first) for each in (runner, runner, another_process(runner))))
        assert seen == [[TextChunk("a"), TextChunk("b"), DONE]] * 3
        assert await runner.start(ask(key="k")) == first
        assert len(script.requests) == 1
    assert (await refusal(runner, ask("Another text", key="k"))).code == "idempotency_conflict"


async def test_a_store_that_fails_is_told_as_chat_error() -> None:
    class Down(MemoryStore):
        async def open_turn(self, request: TurnRequest, turn_id: str, *, max_messages: int) -> OpenedTurn:
            raise OSError("database is down")

    services = MemoryServices(store=Down())
    error = await refusal(TurnRunner(services, legacy_loop), ask())
    ((_, public),) = services.observer.failures
    assert error == public
    assert error.code == "chat_error"
    assert error.details["correlation_id"]


async def test_what_escapes_admission_reaches_the_caller() -> None:
    class Abort(BaseException):
        """Neither an Exception nor a cancellation."""

    class Broken(MemoryServices):
        async def permit(self, action: Action, actor: Actor, context: object) -> Decision:
            raise Abort

    with pytest.raises(Abort):
        await TurnRunner(Broken(), legacy_loop).start(ask())


class SlowToOpen(MemoryStore):
    """Waits with each new turn for the test's word."""

    def __init__(self) -> None:
        super().__init__()
        self.at_work, self.gate = asyncio.Event(), asyncio.Event()

    async def open_turn(self, request: TurnRequest, turn_id: str, *, max_messages: int) -> OpenedTurn | JoinedTurn:
        self.at_work.set()
        await self.gate.wait()
        return await super().open_turn(request, turn_id, max_messages=max_messages)


@pytest.mark.parametrize("grace", [0, 10])
async def test_a_client_that_leaves_while_its_message_is_accepted(grace: float) -> None:
    store = SlowToOpen()
    runner = TurnRunner(MemoryServices(store=store, settings=ChatSettings(resume_grace_seconds=grace)), legacy_loop)
    with ScriptedProvider.playing(["a", 0.05, "b"]):
        client = asyncio.create_task(runner.start(ask(key="k")))
        await store.at_work.wait()
        client.cancel()
        await asyncio.wait({client})
        store.gate.set()
        await asyncio.sleep(0.1)
        turn_id = await runner.start(ask(key="k"))
        last = (await events(runner, turn_id))[-1]
    assert last == (DONE if grace else CANCELLED)


async def test_a_client_that_leaves_before_it_is_refused_leaves_nothing() -> None:
    class Refusing(SlowToOpen):
        async def open_turn(self, request: TurnRequest, turn_id: str, *, max_messages: int) -> OpenedTurn | JoinedTurn:
            await super().open_turn(request, turn_id, max_messages=max_messages)
            raise TurnStopped("turn_in_progress")

    store = Refusing()
    runner = TurnRunner(MemoryServices(store=store), legacy_loop)
    client = asyncio.create_task(runner.start(ask()))
    await store.at_work.wait()
    client.cancel()
    await asyncio.wait({client})
    store.gate.set()
    await asyncio.sleep(0.01)
    assert runner._tasks == set()
    assert runner._runs == {}


# --- clients that go away -----------------------------------------------------------------------------------------


def with_grace(seconds: float) -> tuple[TurnRunner, MemoryServices]:
    services = MemoryServices(settings=ChatSettings(resume_grace_seconds=seconds))
    return TurnRunner(services, legacy_loop), services


async def test_without_grace_a_turn_stops_when_its_last_client_leaves() -> None:
    runner, services = with_grace(0)
    with ScriptedProvider.playing(["Half", 60]) as script:
        turn_id = await runner.start(ask())
        async with aclosing(runner.subscribe(turn_id, actor=OWNER)) as second:
            await anext(second)
            await see_one(runner, turn_id)
            await asyncio.sleep(0.02)
            assert script.open_streams == 1
        await asyncio.sleep(0.02)
        assert script.open_streams == 0
    (closed,) = services.store.closed
    assert closed.outcome.state == "cancelled"
    assert closed.outcome.text == "Half"
    assert await events(runner, turn_id) == [TextChunk("Half"), CANCELLED]


async def test_within_the_grace_period_a_client_can_come_back_and_misses_nothing() -> None:
    runner, _ = with_grace(0.3)
    with ScriptedProvider.playing(["a", 0.1, "b", 0.3, "c"]):
        turn_id = await runner.start(ask())
        await see_one(runner, turn_id)
        await asyncio.sleep(0.2)
        assert [logged.event for logged in await follow(runner, turn_id, 1)] == [TextChunk("b"), TextChunk("c"), DONE]


async def test_when_the_grace_period_is_over_the_turn_is_cancelled() -> None:
    runner, services = with_grace(0.1)
    with ScriptedProvider.playing(["Half", 60]) as script:
        turn_id = await runner.start(ask())
        await see_one(runner, turn_id)
        await asyncio.sleep(0.05)
        assert script.open_streams == 1
        await asyncio.sleep(0.1)
        assert script.open_streams == 0
    assert services.store.closed[0].outcome.state == "cancelled"


async def test_a_client_that_never_came_gets_some_time_even_without_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    assert UNCLAIMED_SECONDS > 1
    monkeypatch.setattr("gm_chat.engine.runner.UNCLAIMED_SECONDS", 0.1)
    runner, _ = with_grace(0)
    with ScriptedProvider.playing(["a", 0.05], ["a", 60]) as script:
        late = await runner.start(ask())
        await asyncio.sleep(0.07)
        assert await events(runner, late) == [TextChunk("a"), DONE]
        never = await runner.start(ask())
        await asyncio.sleep(0.15)
        assert script.open_streams == 0
        assert await events(runner, never) == [TextChunk("a"), CANCELLED]


@pytest.mark.parametrize("grace", [0, 0.1])
async def test_a_client_that_follows_from_another_process_keeps_the_turn(
    grace: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gm_chat.engine.pulse.PULSE_SECONDS", 0.03)
    monkeypatch.setattr("gm_chat.engine.following.FOLLOW_SECONDS", 0.02)
    monkeypatch.setattr("gm_chat.engine.runner.FOLLOWED_ELSEWHERE_SECONDS", 0.15)
    monkeypatch.setattr("gm_chat.engine.memory_store.FOLLOWED_SECONDS", 0.05)
    runner, services = with_grace(grace)
    with ScriptedProvider.playing(["a", 0.5, "b", 60]) as script:
        turn_id = await runner.start(ask())
        async with aclosing(runner.subscribe(turn_id, actor=OWNER)) as here:
            await anext(here)
            there = another_process(runner).subscribe(turn_id, actor=OWNER)
            await anext(there)
            waiting = asyncio.ensure_future(anext(there))
            await asyncio.sleep(0.1)
        assert (await asyncio.wait_for(waiting, 2)).event == TextChunk("b")
        await there.aclose()
        assert script.open_streams == 1
        await asyncio.sleep(0.4)
        assert script.open_streams == 0
    assert services.store.closed[0].outcome.state == "cancelled"


# --- other processes ----------------------------------------------------------------------------------------------


async def test_another_process_reads_a_turn_while_it_runs(runner: TurnRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gm_chat.engine.pulse.PULSE_SECONDS", 0.02)
    with ScriptedProvider.playing(["a", 0.1, "b", 0.1]):
        turn_id = await runner.start(ask())
        assert await events(another_process(runner), turn_id) == [TextChunk("a"), TextChunk("b"), DONE]


async def test_another_process_cancels_a_turn(
    services: MemoryServices, runner: TurnRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gm_chat.engine.pulse.PULSE_SECONDS", 0.02)
    with ScriptedProvider.playing(["Half", 60]) as script:
        turn_id = await runner.start(ask())
        await see_one(runner, turn_id)
        assert await another_process(runner).cancel(turn_id, actor=OTHER) is False
        assert await another_process(runner).cancel(turn_id, actor=OWNER) is True
        assert await events(runner, turn_id) == [TextChunk("Half"), CANCELLED]
        assert script.open_streams == 0
        assert await another_process(runner).cancel(turn_id, actor=OWNER) is False


async def test_a_turn_of_a_process_that_died_is_interrupted(services: MemoryServices) -> None:
    now = 0.0
    services.store = MemoryStore(clock=lambda: now)
    runner = TurnRunner(services, legacy_loop)
    with ScriptedProvider.playing(["Half", 60], ["b"]):
        lost = await runner.start(ask())
        await see_one(runner, lost)
        now = 16.0
        assert await events(another_process(runner), await another_process(runner).start(ask())) == [
            TextChunk("b"),
            DONE,
        ]
        (error,) = await events(another_process(runner), lost)
        assert isinstance(error, Error)
        assert error.code == "interrupted"
        await runner.cancel(lost, actor=OWNER)
    assert (await events(another_process(runner), lost)) == [error]


async def test_pulses_that_fail_disturb_nothing(
    runner: TurnRunner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gm_chat.engine.pulse.PULSE_SECONDS", 0.02)

    async def fail(*_: Any) -> None:
        raise OSError("database is down")

    monkeypatch.setattr(MemoryStore, "pulse", fail)
    with ScriptedProvider.playing(["a", 0.1]):
        assert await events(runner, await runner.start(ask())) == [TextChunk("a"), DONE]
    assert "could not be shown to other processes" in caplog.text


async def test_no_pulse_is_under_way_when_a_turn_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gm_chat.engine.pulse.PULSE_SECONDS", 0.01)
    log: list[str] = []

    class Slow(MemoryStore):
        async def pulse(self, turn_id: str, events: Any) -> Any:
            log.append("pulse begins")
            await asyncio.sleep(0.05)
            log.append("pulse ends")
            return await super().pulse(turn_id, events)

        async def close_turn(self, turn: ClosedTurn) -> None:
            log.append("close")
            await super().close_turn(turn)

    runner = TurnRunner(MemoryServices(store=Slow()), legacy_loop)
    with ScriptedProvider.playing(["a", 0.03]):
        await events(runner, await runner.start(ask()))
    assert log == ["pulse begins", "pulse ends", "close"]


# --- strangers ----------------------------------------------------------------------------------------------------


async def test_another_s_turn_does_not_exist(runner: TurnRunner) -> None:
    with ScriptedProvider.playing(["a", 60]):
        turn_id = await runner.start(ask())
        for process in (runner, another_process(runner)):
            with pytest.raises(UnknownTurnError, match=f"turn {turn_id!r} is unknown"):
                await follow(process, turn_id, actor=OTHER)
            assert await process.cancel(turn_id, actor=OTHER) is False
        await runner.cancel(turn_id, actor=OWNER)


async def test_an_unknown_turn_is_named(runner: TurnRunner) -> None:
    with pytest.raises(UnknownTurnError, match="turn 'nope' is unknown"):
        await follow(runner, "nope")
    assert await runner.cancel("nope", actor=OWNER) is False


# --- cancelling ---------------------------------------------------------------------------------------------------


async def test_cancel_stops_the_turn_closes_it_and_ends_its_log(services: MemoryServices, runner: TurnRunner) -> None:
    with ScriptedProvider.playing(["Half", 60]) as script:
        turn_id = await runner.start(ask())
        follower = asyncio.create_task(events(runner, turn_id))
        await see_one(runner, turn_id)
        assert await asyncio.wait_for(runner.cancel(turn_id, actor=OWNER), 1) is True
        assert script.open_streams == 0
        assert services.store.closed[0].outcome.state == "cancelled"
        assert await follower == [TextChunk("Half"), CANCELLED]
        assert services.store.closed[0].events == (TextChunk("Half"), CANCELLED)
    assert await runner.cancel(turn_id, actor=OWNER) is False


async def test_a_turn_cancelled_at_once_is_closed_too(services: MemoryServices, runner: TurnRunner) -> None:
    with ScriptedProvider.playing([60]):
        turn_id = await runner.start(ask())
        assert await runner.cancel(turn_id, actor=OWNER) is True
    assert await events(runner, turn_id) == [CANCELLED]
    assert services.store.closed[0].outcome.state == "cancelled"


class SlowToClose(MemoryStore):
    """Takes its time to close a turn, and tells when it is at work."""

    def __init__(self) -> None:
        super().__init__()
        self.at_work = asyncio.Event()

    async def close_turn(self, turn: ClosedTurn) -> None:
        self.at_work.set()
        await asyncio.sleep(0.03)
        await super().close_turn(turn)


async def test_cancelling_twice_is_cancelling_once() -> None:
    store = SlowToClose()
    runner = TurnRunner(MemoryServices(store=store), legacy_loop)
    with ScriptedProvider.playing(["Half", 60]):
        turn_id = await runner.start(ask())
        await see_one(runner, turn_id)
        first = asyncio.create_task(runner.cancel(turn_id, actor=OWNER))
        await store.at_work.wait()
        assert await runner.cancel(turn_id, actor=OWNER) is True
        assert [closed.outcome.state for closed in store.closed] == ["cancelled"]
        assert await first is True
    assert await events(runner, turn_id) == [TextChunk("Half"), CANCELLED]


async def test_cancel_from_another_thread(runner: TurnRunner) -> None:
    with ScriptedProvider.playing(["Half", 60]):
        turn_id = await runner.start(ask())
        await see_one(runner, turn_id)
        answers: list[bool] = []
        thread = threading.Thread(
            target=lambda: answers.append(asyncio.run(runner.cancel(turn_id, actor=OWNER))), daemon=True
        )
        thread.start()
        assert await events(runner, turn_id) == [TextChunk("Half"), CANCELLED]
        thread.join()
    assert answers == [True]


async def test_another_thread_follows_a_running_turn_and_an_ended_one(
    runner: TurnRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gm_chat.engine.pulse.PULSE_SECONDS", 0.02)
    with ScriptedProvider.playing(["a", 0.1]):
        turn_id = await runner.start(ask())
        running = await asyncio.to_thread(lambda: asyncio.run(events(runner, turn_id)))
    ended = await asyncio.to_thread(lambda: asyncio.run(events(runner, turn_id)))
    assert running == ended == [TextChunk("a"), DONE]


def test_a_loop_that_is_closed_cancels_its_turns(services: MemoryServices, runner: TurnRunner) -> None:
    async def view() -> str:
        turn_id = await runner.start(ask())
        await see_one(runner, turn_id)
        return turn_id

    with ScriptedProvider.playing(["Half", 60]) as script:
        turn_id = asyncio.run(view())
        assert script.open_streams == 0
    assert services.store.closed[0].outcome.state == "cancelled"
    assert asyncio.run(runner.cancel(turn_id, actor=OWNER)) is False
    assert asyncio.run(events(runner, turn_id)) == [TextChunk("Half"), CANCELLED]


# --- memory and shutdown ------------------------------------------------------------------------------------------


async def test_ended_turns_are_forgotten_after_a_while(services: MemoryServices) -> None:
    now = 0.0
    runner = TurnRunner(services, legacy_loop, keep_seconds=60, clock=lambda: now)
    with ScriptedProvider.playing(["a"], repeat=True):
        old = await runner.start(ask())
        await events(runner, old)
        now = 59.0
        await events(runner, await runner.start(ask()))
        assert old in runner._runs
        now = 61.0
        await events(runner, await runner.start(ask()))
    assert old not in runner._runs
    assert len(await follow(runner, old)) == 2, "the store has it still"


async def test_only_so_many_ended_turns_are_kept_and_running_ones_always(services: MemoryServices) -> None:
    runner = TurnRunner(services, legacy_loop, keep_turns=2)
    with ScriptedProvider.playing(["a", 60]):
        running = await runner.start(ask(actor=OTHER))
        await asyncio.sleep(0.01)
        with ScriptedProvider.playing(["b"], repeat=True):
            ended = [await runner.start(ask()) for _ in range(1)]
            for _ in range(4):
                await events(runner, ended[-1])
                ended.append(await runner.start(ask()))
            await events(runner, ended[-1])
        assert running in runner._runs
        assert [turn_id in runner._runs for turn_id in ended] == [False, False, True, True, True]
        assert await runner.cancel(running, actor=OTHER) is True


async def test_wait_closed_lets_turns_end_and_cancels_the_late(runner: TurnRunner) -> None:
    await runner.wait_closed()
    with ScriptedProvider.playing(["quick", 0.02], ["late", 60]) as script:
        quick, late = await runner.start(ask()), await runner.start(ask(actor=OTHER))
        await asyncio.wait_for(runner.wait_closed(grace_seconds=0.2), 2)
        assert script.open_streams == 0
        assert await events(runner, quick) == [TextChunk("quick"), DONE]
        assert await events(runner, late, actor=OTHER) == [TextChunk("late"), CANCELLED]
