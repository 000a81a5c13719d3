"""Processes that share a store and a bus: what one does, the others hear of; what they do not hear, they find.

Where looking is put off by a minute, nothing but a message can bring the events.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
from testproject.local_bus import LocalBus

from gm_chat.engine import TurnRunner
from gm_chat.engine.events import Done, Event, TextChunk
from gm_chat.engine.failures import CANCELLED
from gm_chat.engine.following import follow_store
from gm_chat.engine.ports import StoredTurn
from gm_chat.loops import legacy_loop
from gm_chat.providers.base import TokenUsage
from gm_chat.testing.scripted import ScriptedProvider
from gm_chat.testing.services import OWNER, MemoryServices, MemoryStore, ask

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from gm_chat.engine.bus import TurnBus
    from gm_chat.engine.ports import Pulse
    from gm_chat.plugin import Actor

DONE = Done(TokenUsage(10, 5))
MINUTE = 60.0


class CountingStore(MemoryStore):
    """Counts its pulses and reads."""

    pulses = reads = 0

    async def pulse(self, turn_id: str, events: Sequence[Event]) -> Pulse:
        self.pulses += 1
        return await super().pulse(turn_id, events)

    async def read_turn(self, turn_id: str, actor: Actor, *, after_seq: int) -> StoredTurn | None:
        self.reads += 1
        return await super().read_turn(turn_id, actor, after_seq=after_seq)


@pytest.fixture
def bus() -> LocalBus:
    return LocalBus()


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


@pytest.fixture
def a(bus: LocalBus, store: CountingStore) -> TurnRunner:
    return process(bus, store)


@pytest.fixture
def b(bus: LocalBus, store: CountingStore) -> TurnRunner:
    return process(bus, store)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody look by himself."""
    for name in ("pulse.PULSE_SECONDS", "following.FOLLOW_SECONDS", "following.TOLD_SECONDS"):
        monkeypatch.setattr(f"gm_chat.engine.{name}", MINUTE)


def process(bus: TurnBus, store: MemoryStore) -> TurnRunner:
    return TurnRunner(MemoryServices(store=store), legacy_loop, bus=bus)


async def follow(runner: TurnRunner, turn_id: str, after_seq: int = 0) -> list[Event]:
    async with asyncio.timeout(5), aclosing(runner.subscribe(turn_id, after_seq, actor=OWNER)) as events:
        return [logged.event async for logged in events]


@pytest.mark.usefixtures("patient")
class TestOverTheBus:
    async def test_a_turn_is_followed_as_it_happens(self, a: TurnRunner, b: TurnRunner) -> None:
        gates = [asyncio.Event() for _ in range(3)]
        first, second, third = gates
        with ScriptedProvider.playing(["a", first.wait, "b", second.wait, "c", third.wait]):
            turn_id = await a.start(ask())
            async with asyncio.timeout(5), aclosing(b.subscribe(turn_id, actor=OWNER)) as events:
                seen = []
                async for logged in events:
                    seen.append(logged.event)
                    if gates:
                        gates.pop(0).set()  # each event is made when the one before it has been seen at the other end
        assert seen == [TextChunk("a"), TextChunk("b"), TextChunk("c"), DONE]

    async def test_many_follow_from_anywhere_and_miss_nothing(self, a: TurnRunner, b: TurnRunner) -> None:
        words = [str(number) for number in range(300)]
        paced = [step for word in words for step in (word, 0.001)]
        with ScriptedProvider.playing(paced):
            turn_id = await a.start(ask())
            seen = await asyncio.gather(*(follow(b, turn_id, after) for after in (0, 0, 3, 7)), follow(a, turn_id))
        whole = [*map(TextChunk, words), DONE]
        assert seen == [whole, whole, whole[3:], whole[7:], whole]

    async def test_a_turn_is_cancelled(self, a: TurnRunner, b: TurnRunner) -> None:
        with ScriptedProvider.playing(["Half", MINUTE]) as script:
            turn_id = await a.start(ask())
            following = asyncio.create_task(follow(a, turn_id))
            await asyncio.sleep(0)
            assert await b.cancel(turn_id, actor=OWNER) is True
            assert await following == [TextChunk("Half"), CANCELLED]
            assert script.open_streams == 0

    async def test_a_follower_that_comes_back_is_heard_again(self, a: TurnRunner, b: TurnRunner) -> None:
        gate = asyncio.Event()
        with ScriptedProvider.playing(["a", gate.wait, "b"]):
            turn_id = await a.start(ask())
            for _ in range(3):
                async with asyncio.timeout(5), aclosing(b.subscribe(turn_id, actor=OWNER)) as events:
                    assert (await anext(events)).event == TextChunk("a")
            gate.set()
            assert await follow(b, turn_id, 1) == [TextChunk("b"), DONE]


class TestTheBusIsLeftAlone:
    async def test_by_turns_that_nobody_follows_elsewhere(
        self, a: TurnRunner, bus: LocalBus, store: CountingStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("gm_chat.engine.pulse.PULSE_SECONDS", 0.02)
        with ScriptedProvider.playing(["a", 0.1, "b"]):
            await follow(a, await a.start(ask()))
        assert store.pulses > 1
        assert bus.sent == []

    async def test_by_followers_of_what_has_ended(self, a: TurnRunner, b: TurnRunner, bus: LocalBus) -> None:
        with ScriptedProvider.playing(["a"]):
            turn_id = await a.start(ask())
            await follow(a, turn_id)
        assert await follow(b, turn_id) == [TextChunk("a"), DONE]
        assert await b.cancel(turn_id, actor=OWNER) is False
        assert bus.sent == []

    async def test_once_all_is_shown(self, a: TurnRunner, b: TurnRunner, bus: LocalBus) -> None:
        """A turn that says nothing for a while announces nothing meanwhile."""
        with ScriptedProvider.playing(["a", 1.0]):
            turn_id = await a.start(ask())
            await follow(b, turn_id)
        assert [message for message in bus.sent if message[0] == "announced"] == [
            ("announced", turn_id, 1),
            ("announced", turn_id, 2),
        ]


class TestWithoutMessages:
    async def test_everything_is_found_by_looking(self, a: TurnRunner, b: TurnRunner, bus: LocalBus) -> None:
        bus.cut = True
        with ScriptedProvider.playing(["a", 0.6, "b", 0.6]):
            turn_id = await a.start(ask())
            assert await follow(b, turn_id) == [TextChunk("a"), TextChunk("b"), DONE]

    async def test_a_bus_that_breaks_while_it_is_relied_on_loses_nothing(
        self, a: TurnRunner, b: TurnRunner, bus: LocalBus
    ) -> None:
        gate = asyncio.Event()
        with ScriptedProvider.playing(["a", gate.wait, "b", 0.5, "c", 0.5, "d"]):
            turn_id = await a.start(ask())
            async with asyncio.timeout(5), aclosing(b.subscribe(turn_id, actor=OWNER)) as events:
                seen = [(await anext(events)).event]
                bus.cut = True
                gate.set()
                seen += [logged.event async for logged in events]
        assert seen == [*map(TextChunk, "abcd"), DONE]

    async def test_a_wish_to_stop_is_found(self, a: TurnRunner, b: TurnRunner, bus: LocalBus) -> None:
        bus.cut = True
        with ScriptedProvider.playing(["Half", MINUTE]):
            turn_id = await a.start(ask())
            following = asyncio.create_task(follow(a, turn_id))
            await asyncio.sleep(0)
            assert await b.cancel(turn_id, actor=OWNER) is True
            assert await following == [TextChunk("Half"), CANCELLED]


class Piecemeal(MemoryStore):
    """Gives a turn's log in parts of two events."""

    async def read_turn(self, turn_id: str, actor: Actor, *, after_seq: int) -> StoredTurn | None:
        whole = await super().read_turn(turn_id, actor, after_seq=after_seq)
        if whole is None:
            return None
        return StoredTurn(whole.running, whole.events[:2], has_more=len(whole.events) > 2)


async def test_a_log_that_comes_in_parts_comes_whole(bus: LocalBus) -> None:
    services = MemoryServices(store=Piecemeal())
    a, b = (TurnRunner(services, legacy_loop, bus=bus) for _ in range(2))
    gate = asyncio.Event()
    with ScriptedProvider.playing([*"abcde", gate.wait, *"fghij"]):
        turn_id = await a.start(ask())
        following = asyncio.create_task(follow(b, turn_id))
        await asyncio.sleep(0.05)
        gate.set()
        assert await following == [*map(TextChunk, "abcdefghij"), DONE]
    assert await follow(b, turn_id) == [*map(TextChunk, "abcdefghij"), DONE]


class Silent(CountingStore):
    """Holds a turn that runs and says nothing, until it has been read ten times."""

    async def read_turn(self, turn_id: str, actor: Actor, *, after_seq: int) -> StoredTurn | None:
        self.reads += 1
        return StoredTurn(self.reads < 10, ())


@pytest.mark.usefixtures("patient")
async def test_a_message_of_more_than_there_is_costs_one_look(bus: LocalBus) -> None:
    store = Silent()
    following: AsyncGenerator[Any, None] = follow_store(store, bus, "t1", 5, OWNER)
    end = asyncio.create_task(anext(following, None))
    for looks in range(1, 10):
        await asyncio.sleep(0.01)
        assert store.reads == looks
        bus.announce("t1", 5)  # known
        bus.announce("t1", 10**9)
    assert await end is None


async def test_shutdown_leaves_the_bus_when_all_turns_have_ended(a: TurnRunner, bus: LocalBus) -> None:
    await a.wait_closed()
    with ScriptedProvider.playing(["a", MINUTE]):
        await a.start(ask())
        await a.wait_closed(grace_seconds=0)
    assert bus.closed == 2
