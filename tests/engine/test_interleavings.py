"""Whatever comes at the same time: a mutation runs once at most, and every turn has one log with one end.

One user with several clients asks, confirms, cancels, and goes away, and the time for confirmations runs out, in any
order and at any moment, in two processes that share a store whose every call takes a while.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st
from testproject.local_bus import LocalBus

from gm_chat.engine import TurnRunner
from gm_chat.engine.bus import SILENCE
from gm_chat.engine.events import ConfirmMutation, Done, Error, Event, ToolCall, ToolResult
from gm_chat.engine.failures import TurnStopped
from gm_chat.loops import legacy_loop
from gm_chat.settings import ChatSettings
from gm_chat.testing.scripted import ScriptedProvider, ScriptedRequest, Step, call
from gm_chat.testing.services import OWNER, MemoryServices, MemoryStore, ask, tool, word

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from gm_chat.engine.bus import TurnBus
    from gm_chat.plugin import ToolContext

SLOW = {"open_turn", "close_turn", "claim", "settle", "expire", "pending", "request_cancel"}


class SlowStore(MemoryStore):
    """Anything may happen before a call reaches the store, and before its answer arrives."""

    def __init__(self, chance: random.Random, **options: Any) -> None:
        super().__init__(**options)
        self._chance = chance

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name not in SLOW:
            return value

        async def slowly(*args: Any, **kwargs: Any) -> Any:
            await ticks(self._chance.randrange(4))
            result = await value(*args, **kwargs)
            await ticks(self._chance.randrange(4))
            return result

        return slowly


async def ticks(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def rounds(request: ScriptedRequest) -> Sequence[Step]:
    """Ask for a mutation, for another one when the first was executed, then answer."""
    if not request.results or (len(request.results) < 2 and request.results[-1].get("status") == "executed"):
        return ["Now. ", 0, call("mutate", mutation="createPart", input={"n": len(request.messages)})]
    return [0, "Done.", 0]


class Storm:
    """What happens, and what is noted of it."""

    def __init__(self, chance: random.Random, grace: float, bus: TurnBus = SILENCE) -> None:
        self.chance = chance
        self.now = datetime.now(tz=UTC)
        self.written: list[str] = []
        self.shown: list[str] = []
        self.turns: list[str] = []
        self.refusals: set[str] = set()
        self.clients: list[asyncio.Task[None]] = []
        self.store = SlowStore(chance, now=lambda: self.now)
        self.services = MemoryServices(
            tools=[tool(self.mutate, write=True)],
            store=self.store,
            settings=ChatSettings(resume_grace_seconds=grace),
        )
        self.processes = [TurnRunner(self.services, legacy_loop, bus=bus) for _ in range(2)]

    async def mutate(self, args: Mapping[str, Any], context: ToolContext) -> Any:
        if not context.approved:
            return {"status": "confirmation_required", **args}
        await ticks(self.chance.randrange(4))
        self.written.append(context.call_id)
        await ticks(self.chance.randrange(4))
        return {"status": "executed", "data": 1}

    async def blow(self, steps: int) -> None:
        """Let things happen, a few ticks of the event loop apart, and then come to their end."""
        happenings = [self.start, self.confirm, self.confirm, self.cancel, self.expire, self.leave]
        for _ in range(steps):
            self.chance.choices(happenings, [4, 4, 4, 3, 2, 4])[0]()
            await ticks(self.chance.choice([0, 1, 2, 5, 10, 40]))
        async with asyncio.timeout(10):
            for outcome in await asyncio.gather(*self.clients, return_exceptions=True):
                assert outcome is None or isinstance(outcome, asyncio.CancelledError), outcome
            for runner in self.processes:
                await runner.wait_closed()
            self.now += timedelta(hours=1)
            await self.processes[0].expire()
            for runner in self.processes:  # one may have begun a turn after it was looked at
                await runner.wait_closed()
        assert all(task.done() for task in asyncio.all_tasks() if task is not asyncio.current_task())

    @property
    def process(self) -> TurnRunner:
        return self.chance.choice(self.processes)

    def client(self, work: Coroutine[Any, Any, None]) -> None:
        self.clients.append(asyncio.create_task(work))

    def start(self) -> None:
        runner, at_most, key = self.process, self.chance.choice([1, 2, 1000, 1000]), self.chance.choice([None, "k"])

        async def client() -> None:
            try:
                turn_id = await runner.start(ask(transport="sse", key=key))
            except TurnStopped as refusal:
                self.refusals.add(refusal.event.code)
            else:
                self.turns.append(turn_id)
                await self.follow(runner, turn_id, 0, at_most)

        self.client(client())

    def confirm(self) -> None:
        if not self.shown:
            return
        runner, confirmation_id = self.process, self.chance.choice(self.shown[-2:])
        approved = self.chance.random() < 0.75

        async def client() -> None:
            try:
                turn_id, after_seq = await runner.confirm(word(confirmation_id, approved=approved))
            except TurnStopped as refusal:
                self.refusals.add(refusal.event.code)
            else:
                await self.follow(runner, turn_id, after_seq, 1000)

        self.client(client())

    def cancel(self) -> None:
        runner = self.process

        async def client() -> None:
            for turn_id in self.turns[-1:] * 2:
                await runner.cancel(turn_id, actor=OWNER)

        self.client(client())

    def expire(self) -> None:
        runner = self.process
        self.now += timedelta(seconds=self.chance.choice([0, 31]))

        async def client() -> None:
            await runner.expire()

        self.client(client())

    def leave(self) -> None:
        """A client goes away, wherever it is."""
        if self.clients:
            self.chance.choice(self.clients).cancel()

    async def follow(self, runner: TurnRunner, turn_id: str, after_seq: int, at_most: int) -> None:
        async with aclosing(runner.subscribe(turn_id, after_seq, actor=OWNER)) as events:
            async for logged in events:
                after_seq += 1
                assert logged.seq == after_seq
                if isinstance(logged.event, ConfirmMutation) and logged.event.id not in self.shown:
                    self.shown.append(logged.event.id)
                at_most -= 1
                if not at_most:
                    return

    def check(self) -> None:
        assert len(self.written) == len(set(self.written)), "a mutation ran twice"
        assert self.refusals <= {"turn_in_progress", "confirmation_pending", "confirmation_unavailable"}
        states: dict[str, str] = {}
        for turn in self.store._turns.values():
            assert turn.state in {"done", "cancelled"}
            check_log(turn.events)
            states |= {id: confirmation.state for id, confirmation in turn.confirmations.items()}
        assert {id for id, state in states.items() if state == "executed"} == set(self.written)
        assert set(states.values()) <= {"executed", "rejected", "expired"}
        assert len(self.services.observer.tools) == len(states), "each outcome is told once"
        ends = [outcome.state for outcome in self.services.observer.outcomes if outcome.state != "paused"]
        assert sorted(ends) == sorted(turn.state for turn in self.store._turns.values()), "so is each end"
        assert len(self.store.closed) == len(self.store._turns) + sum(
            state in {"executed", "rejected"} for state in states.values()
        ), "a turn is closed once for each time that it was opened or taken up again"


def check_log(events: Sequence[Event]) -> None:
    """One end, and the answers belong to the calls that the user was asked about."""
    assert [event for event in events if isinstance(event, Done | Error)] == [events[-1]]
    asked = [event.id for event in events if isinstance(event, ConfirmMutation)]
    called = [event.id for event in events if isinstance(event, ToolCall)]
    assert [event.id for event in events if isinstance(event, ToolResult)] == asked
    assert called[: len(asked)] == asked
    assert len(called) - len(asked) in {0, 1}, "a call may be cancelled before the user is asked"


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), grace=st.sampled_from([0, 10]))
def test_a_storm_leaves_everything_in_order(seed: int, grace: float) -> None:
    storm = Storm(random.Random(seed), grace)  # noqa: S311 (no secret: a failing seed must fail again)
    with ScriptedProvider.playing(rounds, repeat=True) as script:
        asyncio.run(storm.blow(50))
        assert script.open_streams == 0
    storm.check()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), cut=st.booleans())
def test_so_does_one_in_which_the_processes_wake_each_other(seed: int, cut: bool) -> None:
    bus = LocalBus()
    bus.cut = cut
    storm = Storm(random.Random(seed), 10, bus)  # noqa: S311 (as above)
    with ScriptedProvider.playing(rounds, repeat=True) as script:
        asyncio.run(storm.blow(50))
        assert script.open_streams == 0
    storm.check()
    assert not any(bus.ears.values())
