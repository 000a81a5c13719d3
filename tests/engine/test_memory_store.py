"""What the runner's tests do not show of the store in memory: what it forgets, and what a lost process leaves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gm_chat.engine.events import ConfirmMutation, Done, Event, TextChunk
from gm_chat.engine.failures import INTERRUPTED, TurnStopped
from gm_chat.engine.memory_store import ALIVE_SECONDS, FOLLOWED_SECONDS, MemoryTurnStore
from gm_chat.engine.ports import (
    ClosedTurn,
    ConfirmationLapsed,
    JoinedTurn,
    OpenedTurn,
    PendingMutation,
    Pulse,
    StoredMessage,
    StoredTurn,
)
from gm_chat.plugin import Actor, TurnOutcome
from gm_chat.providers.base import TokenUsage
from gm_chat.testing.services import OWNER, ask, word

OTHER = Actor("8")
DONE = Done(TokenUsage())
SAID = StoredMessage(role="assistant", content="Hello.")


class Clocks:
    """Two clocks to turn: one for lives and leases, one for confirmations."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.now = datetime(2030, 1, 1, tzinfo=UTC)

    def store(self, **options: Any) -> MemoryTurnStore:
        return MemoryTurnStore(clock=lambda: self.seconds, now=lambda: self.now, **options)


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def store(clocks: Clocks) -> MemoryTurnStore:
    return clocks.store()


async def opened(store: MemoryTurnStore, turn_id: str, text: str = "Hi", *, actor: Actor = OWNER) -> OpenedTurn:
    result = await store.open_turn(ask(text, actor=actor), turn_id, max_messages=20)
    assert isinstance(result, OpenedTurn)
    return result


async def close(store: MemoryTurnStore, turn_id: str, *events: Event, pending: PendingMutation | None = None) -> None:
    await store.close_turn(
        ClosedTurn(
            turn_id=turn_id,
            conversation_id=OWNER.key,
            messages=[SAID],
            outcome=TurnOutcome("done" if pending is None else "paused"),
            usage=TokenUsage(),
            events=events or (DONE,),
            pending=pending,
        )
    )


async def pause(store: MemoryTurnStore, clocks: Clocks, turn_id: str, *, actor: Actor = OWNER) -> str:
    await opened(store, turn_id, actor=actor)
    id = f"c-{turn_id}"
    expires_at = clocks.now + timedelta(seconds=30)
    pending = PendingMutation(id=id, mutation="createPart", input={}, expires_at=expires_at)
    await close(store, turn_id, ConfirmMutation(id, "createPart", {}), pending=pending)
    return id


async def refused(store: MemoryTurnStore, **request: Any) -> str:
    with pytest.raises(TurnStopped) as caught:
        await store.open_turn(ask(**request), "next", max_messages=20)
    return caught.value.event.code


async def test_the_next_turn_gets_the_window(store: MemoryTurnStore) -> None:
    assert (await opened(store, "1")).history == ()
    await close(store, "1")
    assert (await opened(store, "2")).history == (StoredMessage(role="user", content="Hi"), SAID)
    assert (await opened(store, "3", actor=OTHER)).history == ()


async def test_a_turn_lives_by_its_pulses(store: MemoryTurnStore, clocks: Clocks) -> None:
    await opened(store, "1")
    for _ in range(3):
        clocks.seconds += ALIVE_SECONDS - 1
        assert await store.pulse("1", [TextChunk("a")]) == Pulse()
        assert await refused(store) == "turn_in_progress"
    clocks.seconds += ALIVE_SECONDS
    await opened(store, "2")
    assert await store.pulse("1", []) == Pulse(cancel=True)
    await close(store, "1")
    stored = await store.read_turn("1", OWNER, after_seq=0)
    assert stored is not None
    assert [logged.event for logged in stored.events] == [TextChunk("a"), INTERRUPTED]


async def test_whoever_reads_a_lost_turn_sees_its_end(store: MemoryTurnStore, clocks: Clocks) -> None:
    await opened(store, "1")
    assert await store.read_turn("1", OWNER, after_seq=0) == StoredTurn(True, [])
    clocks.seconds = ALIVE_SECONDS
    stored = await store.read_turn("1", OWNER, after_seq=0)
    assert stored is not None
    assert (stored.running, [logged.seq for logged in stored.events]) == (False, [1])
    assert await store.read_turn("1", OWNER, after_seq=1) == StoredTurn(False, [])
    assert await store.read_turn("1", OTHER, after_seq=0) is None
    assert await store.request_cancel("1", OWNER) is False


async def test_a_pulse_brings_what_others_want(store: MemoryTurnStore, clocks: Clocks) -> None:
    await opened(store, "1")
    assert await store.pulse("1", []) == Pulse()
    await store.read_turn("1", OWNER, after_seq=0)
    assert await store.pulse("1", []) == Pulse(followed=True)
    clocks.seconds += FOLLOWED_SECONDS
    assert await store.request_cancel("1", OTHER) is False
    assert await store.request_cancel("1", OWNER) is True
    assert await store.pulse("1", []) == Pulse(cancel=True)
    assert await store.pulse("unknown", []) == Pulse()


async def test_keys_are_each_actor_s_own(store: MemoryTurnStore) -> None:
    await store.open_turn(ask(key="k"), "1", max_messages=20)
    assert await store.open_turn(ask(key="k"), "2", max_messages=20) == JoinedTurn("1")
    assert await refused(store, text="Other", key="k") == "idempotency_conflict"
    assert isinstance(await store.open_turn(ask(key="k", actor=OTHER), "3", max_messages=20), OpenedTurn)


async def test_a_confirmation_is_good_until_its_time_and_no_longer(store: MemoryTurnStore, clocks: Clocks) -> None:
    id = await pause(store, clocks, "1")
    clocks.now += timedelta(seconds=29)
    assert await refused(store) == "confirmation_pending"
    assert await store.expire() == []
    assert [pending.id for pending in await store.pending(OWNER)] == [id]
    clocks.now += timedelta(seconds=1)
    assert await store.pending(OWNER) == []
    with pytest.raises(ConfirmationLapsed):
        await store.open_turn(ask(), "2", max_messages=20)
    with pytest.raises(ConfirmationLapsed):
        await store.claim(word(id), max_messages=20, lease_seconds=60)
    assert store.confirmation_state(id) == "pending"
    assert [item.turn_id for item in await store.expire(now=clocks.now)] == ["1"]
    assert (await opened(store, "2")).history[-1].role == "tool"


async def test_a_claim_that_is_settled_late_is_known_after_all(store: MemoryTurnStore, clocks: Clocks) -> None:
    id = await pause(store, clocks, "1")
    resumed = await store.claim(word(id), max_messages=20, lease_seconds=60)
    clocks.seconds = 61
    assert store.confirmation_state(id) == "unknown"
    await store.settle(resumed, state="executed", answer=StoredMessage(role="tool", tool_call_id=id))
    assert store.confirmation_state(id) == "executed"


async def test_where_nothing_is_remembered_a_turn_ends_without_a_trace_in_the_next(clocks: Clocks) -> None:
    store = clocks.store(remember=False)
    id = await pause(store, clocks, "1")
    resumed = await store.claim(word(id), max_messages=20, lease_seconds=60)
    assert [row.role for row in resumed.history] == ["user", "assistant"]
    await store.settle(resumed, state="rejected", answer=StoredMessage(role="tool", tool_call_id=id))
    await close(store, "1")
    assert store.rows == {}
    assert (await opened(store, "2")).history == ()
    clocks.seconds = ALIVE_SECONDS
    assert (await opened(store, "3")).history == ()


async def test_only_so_many_turns_are_kept_and_running_ones_always(clocks: Clocks) -> None:
    store = clocks.store(remember=False, keep_turns=2)
    await opened(store, "running", actor=OTHER)
    waiting = await pause(store, clocks, "waiting", actor=Actor("9"))
    for number in range(3):
        await opened(store, f"{number}")
        await close(store, f"{number}")
    assert [await store.read_turn(id, OWNER, after_seq=0) is None for id in ("0", "1", "2")] == [True, False, False]
    assert (await store.pulse("running", [])) == Pulse()
    assert set(store.rows) == {OTHER.key}
    with pytest.raises(TurnStopped, match="bad_event"):
        await store.claim(word(waiting, actor=Actor("9")), max_messages=20, lease_seconds=60)
