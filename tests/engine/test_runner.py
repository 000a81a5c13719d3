from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from gm_chat.engine import TurnRunner, UnknownTurnError
from gm_chat.engine.events import Done, Error, Event, LoggedEvent, TextChunk
from gm_chat.loops import legacy_loop
from gm_chat.providers.base import TokenUsage
from gm_chat.testing.scripted import ScriptedProvider
from gm_chat.testing.services import MemoryServices, ask

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from gm_chat.engine.state import TurnState
    from gm_chat.plugin import Action, Actor, Decision

DONE = Done(TokenUsage(10, 5))
CANCELLED = Error("cancelled", "The answer was cancelled.")


def make(**options: float) -> TurnRunner:
    return TurnRunner(MemoryServices(), legacy_loop, **options)  # type: ignore[arg-type]  # numbers of either kind


async def follow(runner: TurnRunner, turn_id: str, after_seq: int = 0) -> list[LoggedEvent]:
    return [logged async for logged in runner.subscribe(turn_id, after_seq)]


async def events(runner: TurnRunner, turn_id: str) -> list[Event]:
    return [logged.event for logged in await asyncio.wait_for(follow(runner, turn_id), 2)]


async def test_starts_a_turn_and_follows_it() -> None:
    runner = make()
    with ScriptedProvider.playing(["a", "b"]):
        turn_id = await runner.start(ask())
        logged = await follow(runner, turn_id)
    assert logged == [
        LoggedEvent(turn_id, 1, TextChunk("a")),
        LoggedEvent(turn_id, 2, TextChunk("b")),
        LoggedEvent(turn_id, 3, DONE),
    ]


async def test_subscribers_come_and_go_while_the_turn_runs_on() -> None:
    runner = make()
    gate = asyncio.Event()
    with ScriptedProvider.playing(["a", gate.wait, "b"]):
        turn_id = await runner.start(ask())
        first = runner.subscribe(turn_id)
        assert (await anext(first)).event == TextChunk("a")
        await first.aclose()
        gate.set()
        assert await events(runner, turn_id) == [TextChunk("a"), TextChunk("b"), DONE]
        assert [logged.seq for logged in await follow(runner, turn_id, 2)] == [3]


async def test_when_the_last_event_arrives_the_task_is_over() -> None:
    """Under WSGI the loop is closed then: nothing may be left to do."""
    runner = make()
    with ScriptedProvider.playing(["a"]):
        turn_id = await runner.start(ask())
        await events(runner, turn_id)
    assert all(task.done() for task in asyncio.all_tasks() if task is not asyncio.current_task())


def test_serves_a_loop_per_request() -> None:
    runner = make()
    with ScriptedProvider.playing(["a"], ["b"]):
        for text in ("a", "b"):

            async def view() -> list[Event]:
                return await events(runner, await runner.start(ask()))

            assert asyncio.run(view()) == [TextChunk(text), DONE]


async def test_cancel_stops_the_turn_closes_it_and_ends_its_log() -> None:
    runner = make()
    services = runner._services
    assert isinstance(services, MemoryServices)
    with ScriptedProvider.playing(["Half", 60]) as script:
        turn_id = await runner.start(ask())
        follower = asyncio.create_task(events(runner, turn_id))
        await anext(runner.subscribe(turn_id))
        assert await asyncio.wait_for(runner.cancel(turn_id), 1) is True
        assert script.open_streams == 0
        assert services.store.closed[0].outcome.state == "cancelled"
        assert await follower == [TextChunk("Half"), CANCELLED]
        assert services.store.closed[0].events == (TextChunk("Half"), CANCELLED)
    assert await runner.cancel(turn_id) is False
    assert await runner.cancel("unknown") is False


async def test_a_turn_cancelled_before_its_first_step_still_ends_its_log() -> None:
    runner = make()
    turn_id = await runner.start(ask())
    assert await runner.cancel(turn_id) is True
    assert await events(runner, turn_id) == [CANCELLED]


async def test_cancel_from_another_thread() -> None:
    runner = make()
    with ScriptedProvider.playing(["Half", 60]):
        turn_id = await runner.start(ask())
        await anext(runner.subscribe(turn_id))
        answers: list[bool] = []
        thread = threading.Thread(target=lambda: answers.append(asyncio.run(runner.cancel(turn_id))))
        thread.start()
        assert await events(runner, turn_id) == [TextChunk("Half"), CANCELLED]
        thread.join()
    assert answers == [True]


async def test_an_unknown_turn_is_named() -> None:
    with pytest.raises(UnknownTurnError, match="turn 'nope' is not running here"):
        make().subscribe("nope")


async def test_ended_turns_are_forgotten_after_a_while() -> None:
    now = 0.0
    runner = TurnRunner(MemoryServices(), legacy_loop, keep_seconds=60, clock=lambda: now)
    with ScriptedProvider.playing(["a"], repeat=True):
        old = await runner.start(ask())
        await events(runner, old)
        now = 59.0
        await events(runner, await runner.start(ask()))
        assert len(await follow(runner, old)) == 2
        now = 61.0
        await events(runner, await runner.start(ask()))
    with pytest.raises(UnknownTurnError):
        runner.subscribe(old)


async def test_only_so_many_ended_turns_are_kept_and_running_ones_always() -> None:
    runner = make(keep_turns=2)
    with ScriptedProvider.playing(["a", 60]):
        running = await runner.start(ask())
        await anext(runner.subscribe(running))
        with ScriptedProvider.playing(["b"], repeat=True):
            ended = [await runner.start(ask()) for _ in range(4)]
            for turn_id in ended:
                await events(runner, turn_id)
            await events(runner, await runner.start(ask()))
        for turn_id in ended[:2]:
            with pytest.raises(UnknownTurnError):
                runner.subscribe(turn_id)
        assert len(await follow(runner, ended[3])) == 2
        assert await runner.cancel(running) is True


async def test_wait_closed_lets_turns_end_and_cancels_the_late() -> None:
    runner = make()
    await runner.wait_closed()
    with ScriptedProvider.playing(["quick", 0.02], ["late", 60]) as script:
        quick, late = await runner.start(ask()), await runner.start(ask())
        await asyncio.wait_for(runner.wait_closed(grace_seconds=0.2), 2)
        assert script.open_streams == 0
        assert await events(runner, quick) == [TextChunk("quick"), DONE]
        assert await events(runner, late) == [TextChunk("late"), CANCELLED]


async def test_what_escapes_even_run_turn_ends_the_log(caplog: pytest.LogCaptureFixture) -> None:
    class Abort(BaseException):
        """Neither an Exception nor a cancellation."""

    class Broken(MemoryServices):
        async def permit(self, action: Action, actor: Actor, context: object) -> Decision:
            raise Abort

    runner = TurnRunner(Broken(), legacy_loop)
    turn_id = await runner.start(ask())
    (event,) = await events(runner, turn_id)
    assert isinstance(event, Error)
    assert event.code == "chat_error"


async def test_the_loop_is_the_caller_s_choice() -> None:
    async def echo(turn: TurnState) -> AsyncGenerator[Event, None]:
        yield TextChunk(turn.context.text.upper())

    runner = TurnRunner(MemoryServices(), echo)
    assert await events(runner, await runner.start(ask("hi"))) == [TextChunk("HI"), Done(TokenUsage())]
