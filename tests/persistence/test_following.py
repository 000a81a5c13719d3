"""A turn seen from other processes."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest
from django.utils import timezone
from testproject.stored import ANONYMOUS, STRANGER, closed, confirmation, opened, paused

from gm_chat.engine.events import LoggedEvent, TextChunk
from gm_chat.engine.failures import INTERRUPTED
from gm_chat.engine.ports import Pulse, StoredTurn
from gm_chat.models import ChatTurn
from gm_chat.persistence.conversations import DjangoTurnStore
from gm_chat.persistence.threads import POOL_SIZE, run_db
from gm_chat.plugin import Actor

pytestmark = pytest.mark.django_db(transaction=True)

SAID = [TextChunk("One"), TextChunk(" bolt"), TextChunk(".")]


def logged(*events: TextChunk, after: int = 0) -> tuple[LoggedEvent, ...]:
    return tuple(LoggedEvent("t1", seq, event) for seq, event in enumerate(events, after + 1))


async def test_a_running_turn_is_read_as_its_process_last_showed_it(store: DjangoTurnStore) -> None:
    turn = await opened(store, "t1")
    assert await store.read_turn("t1", ANONYMOUS, after_seq=0) == StoredTurn(True, ())
    await store.pulse("t1", SAID[:2])
    assert await store.read_turn("t1", ANONYMOUS, after_seq=0) == StoredTurn(True, logged(*SAID[:2]))
    await store.pulse("t1", SAID)
    assert await store.read_turn("t1", ANONYMOUS, after_seq=2) == StoredTurn(True, logged(SAID[2], after=2))
    assert await store.read_turn("t1", ANONYMOUS, after_seq=9) == StoredTurn(True, ())
    ended = closed("t1", turn)
    await store.close_turn(ended)
    found = await store.read_turn("t1", ANONYMOUS, after_seq=1)
    assert found == StoredTurn(False, (LoggedEvent("t1", 2, ended.events[1]),))
    assert found.events[0].is_last


async def test_a_paused_turn_adds_nothing_by_itself(store: DjangoTurnStore) -> None:
    await paused(store)
    found = await store.read_turn("t1", ANONYMOUS, after_seq=2)
    assert found is not None
    assert (found.running, [logged.seq for logged in found.events]) == (False, [3])
    await store.claim(confirmation(), max_messages=20, lease_seconds=60)
    assert await store.read_turn("t1", ANONYMOUS, after_seq=3) == StoredTurn(True, ())


@pytest.mark.parametrize("actor", [STRANGER, Actor(user_id="1"), Actor(), Actor(address="10.0.0.1")])
async def test_anothers_turn_does_not_exist(store: DjangoTurnStore, actor: Actor) -> None:
    await opened(store, "t1")
    assert await store.read_turn("t1", actor, after_seq=0) is None
    assert await store.request_cancel("t1", actor) is False
    row = await ChatTurn.objects.aget()
    assert (row.cancel_requested, row.followed_at) == (False, None)


@pytest.mark.parametrize("id", ["", "t2", "\x00", "\ud800", "t" * 5000])
async def test_ids_that_no_turn_has(store: DjangoTurnStore, id: str) -> None:
    await opened(store, "t1")
    assert await store.read_turn(id, ANONYMOUS, after_seq=0) is None
    assert await store.request_cancel(id, ANONYMOUS) is False


async def test_a_pulse_keeps_the_turn_alive(store: DjangoTurnStore) -> None:
    await opened(DjangoTurnStore(alive_seconds=0), "t1")
    await store.pulse("t1", [])
    found = await store.read_turn("t1", ANONYMOUS, after_seq=0)
    assert found == StoredTurn(True, ())


async def test_a_pulse_comes_through_while_slow_queries_keep_the_pool_busy(store: DjangoTurnStore) -> None:
    await opened(store, "t1")
    gate = threading.Event()
    slow = [asyncio.create_task(run_db(gate.wait, 10)) for _ in range(POOL_SIZE)]
    try:
        async with asyncio.timeout(5):
            await store.pulse("t1", SAID)
    finally:
        gate.set()
        await asyncio.gather(*slow)


async def test_a_resumed_turn_shows_its_whole_log(store: DjangoTurnStore) -> None:
    turn = await paused(store)
    await store.claim(confirmation(), max_messages=20, lease_seconds=60)
    log = [*turn.events, *SAID]
    for length in range(len(turn.events), len(log) + 1):
        await store.pulse("t1", log[:length])
        found = await store.read_turn("t1", ANONYMOUS, after_seq=0)
        assert found is not None
        assert [logged.event for logged in found.events] == log[:length]


async def test_a_turn_whose_process_died_ends_for_its_followers(store: DjangoTurnStore) -> None:
    dying = DjangoTurnStore(alive_seconds=0)
    await opened(dying, "t1")
    await dying.pulse("t1", SAID)
    found = await store.read_turn("t1", ANONYMOUS, after_seq=2)
    assert found is not None
    assert (found.running, [logged.event for logged in found.events]) == (False, [SAID[2], INTERRUPTED])
    assert await store.read_turn("t1", ANONYMOUS, after_seq=2) == found  # once
    assert await store.pulse("t1", SAID) == Pulse(cancel=True)


async def test_a_pulse_brings_the_wish_to_stop(store: DjangoTurnStore) -> None:
    turn = await opened(store, "t1")
    assert await store.pulse("t1", []) == Pulse()
    assert await DjangoTurnStore().request_cancel("t1", ANONYMOUS) is True
    assert await store.pulse("t1", []) == Pulse(cancel=True)
    await store.close_turn(closed("t1", turn))
    assert await store.request_cancel("t1", ANONYMOUS) is False


async def test_a_wish_to_stop_does_not_outlive_the_pause(store: DjangoTurnStore) -> None:
    await paused(store)
    await ChatTurn.objects.aupdate(cancel_requested=True)
    await store.claim(confirmation(), max_messages=20, lease_seconds=60)
    assert await store.pulse("t1", []) == Pulse()


async def test_nobody_stops_a_paused_or_dead_turn_this_way(store: DjangoTurnStore) -> None:
    await paused(store)
    assert await store.request_cancel("t1", ANONYMOUS) is False
    await opened(DjangoTurnStore(alive_seconds=0), "t2", actor=STRANGER)
    assert await store.request_cancel("t2", STRANGER) is False
    assert (await ChatTurn.objects.aget(pk="t2")).error_code == "interrupted"


async def test_a_pulse_tells_of_followers_elsewhere_as_long_as_they_follow(
    store: DjangoTurnStore, statements: list[str]
) -> None:
    await opened(store, "t1")
    assert (await store.pulse("t1", [])).followed is False
    statements.clear()
    for _ in range(3):
        await store.read_turn("t1", ANONYMOUS, after_seq=0)
    assert len(statements) == 4  # only the first of them is written down
    assert (await store.pulse("t1", [])).followed is True
    await ChatTurn.objects.aupdate(followed_at=timezone.now() - timedelta(seconds=3))
    assert (await store.pulse("t1", [])).followed is False


async def test_reading_what_has_ended_writes_nothing(store: DjangoTurnStore, statements: list[str]) -> None:
    await store.close_turn(closed("t1", await opened(store, "t1")))
    statements.clear()
    await store.read_turn("t1", ANONYMOUS, after_seq=0)
    assert len(statements) == 1
