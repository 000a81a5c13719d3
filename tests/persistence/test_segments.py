"""Logs of long turns, which are stored in pieces: on SQLite and on the servers that there are."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from django.core.management import call_command
from django.db import OperationalError
from django.utils import timezone
from testproject.stored import ANONYMOUS, answer, closed, confirmation, opened, waiting

from gm_chat.engine.events import Done, Event, TextChunk
from gm_chat.engine.failures import INTERRUPTED
from gm_chat.engine.ports import ClosedTurn, Pulse, StoredTurn
from gm_chat.models import ChatConversation, ChatEventSegment, ChatTurn
from gm_chat.persistence import database, following
from gm_chat.persistence.cleanup import prune
from gm_chat.persistence.conversations import DjangoTurnStore
from gm_chat.persistence.segments import MOST_EVENTS, MOST_READ, whole_log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gm_chat.engine.ports import OpenedTurn

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")


@pytest.fixture(autouse=True)
def chat(alias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the chat in that database."""
    monkeypatch.setattr(database.router, "db_for_write", lambda *_, **__: alias)


def words(count: int) -> list[Event]:
    return [TextChunk(f"{number} ") for number in range(1, count + 1)]


def ended(turn: OpenedTurn, events: Sequence[Event]) -> ClosedTurn:
    return closed("t1", turn, events=(*events, Done(closed("t1", turn).usage)))


def pause(turn: OpenedTurn, events: Sequence[Event]) -> ClosedTurn:
    """Leave the turn after ``events`` with a question to the user."""
    paused = waiting("t1", "c1", turn)
    return closed(
        "t1", turn, *paused.messages, outcome=paused.outcome, events=(*events, *paused.events), pending=paused.pending
    )


async def read(store: DjangoTurnStore, after_seq: int = 0) -> StoredTurn:
    found = await store.read_turn("t1", ANONYMOUS, after_seq=after_seq)
    assert found is not None
    assert [logged.seq for logged in found.events] == list(range(after_seq + 1, after_seq + 1 + len(found.events)))
    return found


async def log(store: DjangoTurnStore, after_seq: int = 0) -> list[Event]:
    found = await read(store, after_seq)
    rest = await log(store, found.events[-1].seq) if found.has_more else []
    return [*(logged.event for logged in found.events), *rest]


async def pieces(alias: str) -> list[tuple[int, int]]:
    """The first and last numbers of what lies in the turn's row, and in each segment."""
    row = await ChatTurn.objects.using(alias).aget()
    segments = ChatEventSegment.objects.using(alias).order_by("first_seq")
    found = [(1, len(row.events))] if row.events else []
    async for segment in segments:
        assert segment.last_seq - segment.first_seq + 1 == len(segment.events)
        found.append((segment.first_seq, segment.last_seq))
    assert all(before[1] + 1 == after[0] for before, after in pairwise(found))
    return found


def kinds(statements: list[str]) -> list[str]:
    return [f"{sql.split(None, 1)[0]} {'segment' if 'segment' in sql else 'other'}" for sql in statements]


async def test_a_pulse_of_a_long_turn_adds_what_is_new(alias: str, store: DjangoTurnStore) -> None:
    turn = await opened(store, "t1")
    events = words(900)
    for count in (0, 3, 150, 350, 350, 360, 800):
        assert not (await store.pulse("t1", events[:count])).cancel
        assert await log(store) == events[:count]
    assert await pieces(alias) == [(1, 200), (201, 350), (351, 360), (361, 560), (561, 760), (761, 800)]
    await store.close_turn(ended(turn, events))
    assert (await pieces(alias))[-1] == (801, 901)
    found = await read(store)
    assert not found.running
    assert [logged.event for logged in found.events] == list(ended(turn, events).events)


@pytest.mark.parametrize("after", [1, 199, 200, 201, 349, 350, 351, 899, 900, 901, 10**9, 10**30])
async def test_is_read_from_any_place(store: DjangoTurnStore, after: int) -> None:
    turn = await opened(store, "t1")
    events = words(900)
    await store.pulse("t1", events[:350])
    await store.close_turn(ended(turn, events))
    assert await log(store, after) == list(ended(turn, events).events)[after:]


async def test_of_a_turn_that_ends_before_its_first_pulse(alias: str, store: DjangoTurnStore) -> None:
    turn = await opened(store, "t1")
    await store.close_turn(ended(turn, words(6000)))
    assert await log(store) == list(ended(turn, words(6000)).events)
    assert max(last - first + 1 for first, last in await pieces(alias)) == MOST_EVENTS


async def test_the_log_goes_on_after_a_pause(alias: str, store: DjangoTurnStore) -> None:
    turn = await opened(store, "t1")
    events = words(450)
    await store.pulse("t1", events[:300])
    await store.close_turn(pause(turn, events))
    elsewhere = DjangoTurnStore()
    resumed = await elsewhere.claim(confirmation(), max_messages=20, lease_seconds=60)
    assert list(resumed.events) == list(pause(turn, events).events)
    await elsewhere.settle(resumed, state="executed", answer=answer())
    whole = [*resumed.events, *words(250)]
    await elsewhere.pulse("t1", whole[:500])
    assert await log(store) == whole[:500]
    assert await log(store, 470) == whole[470:500]
    await elsewhere.close_turn(ended(turn, whole))
    assert await log(store) == list(ended(turn, whole).events)
    assert await pieces(alias)


@pytest.mark.parametrize("shown", [30, 200, 201, 300])
async def test_of_a_turn_whose_process_died(alias: str, store: DjangoTurnStore, shown: int) -> None:
    dying = DjangoTurnStore(alive_seconds=0)
    await opened(dying, "t1")
    for count in range(10, shown + 1, 10):
        await dying.pulse("t1", words(count))
    await dying.pulse("t1", words(shown))
    found = await read(store)
    assert not found.running
    assert [logged.event for logged in found.events] == [*words(shown), INTERRUPTED]
    assert await store.pulse("t1", words(shown + 90)) == Pulse(cancel=True)
    await dying.close_turn(closed("t1", await opened(store, "t2"), events=words(shown + 99)))
    assert await log(store) == [*words(shown), INTERRUPTED]
    assert await ChatTurn.objects.using(alias).filter(pk="t1", error_code="interrupted").aexists()


@pytest.mark.parametrize("said", [3, 199, 500])
async def test_of_a_turn_that_was_not_confirmed_in_time(store: DjangoTurnStore, said: int) -> None:
    turn = await opened(store, "t1")
    await store.pulse("t1", words(said))
    await store.close_turn(pause(turn, words(said)))
    (expired,) = await DjangoTurnStore().expire(now=timezone.now() + timedelta(hours=1))
    assert expired.turn_id == "t1"
    whole = await log(store)
    assert whole[:-2] == list(pause(turn, words(said)).events)
    assert [type(event).__name__ for event in whole[-2:]] == ["ToolResult", "Done"]


async def test_is_what_was_shown_and_said_however_it_was_cut(alias: str, store: DjangoTurnStore) -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    for number in range(6):
        await ChatConversation.objects.using(alias).all().adelete()
        turn = await opened(store, "t1")
        events = words(chance.choice([190, 201, 420, 1300]))
        for count in sorted(chance.choices(range(len(events)), k=number * 3)):
            await store.pulse("t1", events[:count])
            after = chance.randrange(len(events))
            assert await log(store, after) == events[after:count]
        await store.close_turn(ended(turn, events))
        assert await log(store) == list(ended(turn, events).events)
        await pieces(alias)


class TestAPulseThatFails:
    @pytest.mark.parametrize("came_through", [False, True])
    async def test_leaves_no_gap_and_nothing_twice(
        self, store: DjangoTurnStore, came_through: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        turn = await opened(store, "t1")
        events = words(900)
        await store.pulse("t1", events[:250])
        real = following.pulse

        def broken(*args: Any, **options: Any) -> Pulse:
            if came_through:
                real(*args, **options)
            raise OperationalError("the connection is gone")

        for count in (300, 400):
            monkeypatch.setattr(following, "pulse", broken)
            with pytest.raises(OperationalError):
                await store.pulse("t1", events[:count])
            monkeypatch.setattr(following, "pulse", real)
            await store.pulse("t1", events[: count + 50])
            assert await log(store) == events[: count + 50]
        monkeypatch.setattr(following, "pulse", broken)
        with pytest.raises(OperationalError):
            await store.pulse("t1", events[:700])
        await store.close_turn(ended(turn, events))
        assert await log(store) == list(ended(turn, events).events)

    @pytest.mark.parametrize("shown", [0, 250])
    async def test_and_comes_through_when_the_turn_is_being_closed(self, store: DjangoTurnStore, shown: int) -> None:
        turn = await opened(store, "t1")
        events = words(900)
        await store.pulse("t1", events[:shown])
        given_up = DjangoTurnStore()
        given_up._shown["t1"] = shown
        await given_up.pulse("t1", events[:500])
        await store.close_turn(ended(turn, events))
        assert await log(store) == list(ended(turn, events).events)

    async def test_when_it_is_cancelled(self, store: DjangoTurnStore, monkeypatch: pytest.MonkeyPatch) -> None:
        turn = await opened(store, "t1")
        events = words(900)
        pulse = asyncio.create_task(store.pulse("t1", events[:500]))
        await asyncio.sleep(0)
        pulse.cancel()
        await asyncio.wait({pulse})
        await store.close_turn(ended(turn, events))
        assert await log(store) == list(ended(turn, events).events)


class TestStatements:
    """What a turn costs that is not long is as before; these are counted where they are recorded."""

    @pytest.fixture
    def alias(self) -> str:
        return "default"

    async def test_of_a_turn_that_fits_into_its_row(
        self, alias: str, store: DjangoTurnStore, statements: list[str]
    ) -> None:
        turn = await opened(store, "t1")
        statements.clear()
        for count in (10, 10, 199):
            await store.pulse("t1", words(count))
        assert kinds(statements) == ["UPDATE other", "SELECT other"] * 3
        statements.clear()
        await store.close_turn(ended(turn, words(199)))
        assert kinds(statements) == ["UPDATE other", "INSERT other"]
        assert await pieces(alias) == [(1, 200)]

    async def test_of_a_long_one(self, store: DjangoTurnStore, statements: list[str]) -> None:
        turn = await opened(store, "t1")
        await store.pulse("t1", words(300))
        statements.clear()
        await store.pulse("t1", words(300))
        assert kinds(statements) == ["UPDATE other", "SELECT other"]
        statements.clear()
        await store.pulse("t1", words(310))
        assert kinds(statements) == ["UPDATE other", "INSERT segment", "SELECT other"]
        assert '"events"' not in statements[0]
        statements.clear()
        await store.close_turn(ended(turn, words(320)))
        assert kinds(statements) == ["UPDATE other", "INSERT segment", "INSERT other"]

    async def test_of_reading(self, store: DjangoTurnStore, statements: list[str]) -> None:
        turn = await opened(store, "t1")
        await store.pulse("t1", words(300))
        await store.close_turn(ended(turn, words(310)))
        for after, expected in ((0, 2), (250, 2), (310, 2), (311, 1), (400, 1)):
            statements.clear()
            await store.read_turn("t1", ANONYMOUS, after_seq=after)
            assert len(statements) == expected


async def test_a_very_long_one_is_read_in_parts(store: DjangoTurnStore) -> None:
    said = words(3 * MOST_READ)
    turn = await opened(store, "t1")
    await store.pulse("t1", said)
    found = await read(store)
    assert (len(found.events), found.has_more, found.running) == (MOST_READ, True, True)
    await store.close_turn(ended(turn, said))
    seen: list[Event] = []
    parts = 0
    while not seen or found.has_more:
        found = await read(store, len(seen))
        seen += [logged.event for logged in found.events]
        parts += 1
        assert not found.running
    assert (seen[:-1], parts) == (said, 4)
    for after in (len(seen) - 1, len(seen), len(seen) + 1):
        assert not (await read(store, after)).has_more


async def test_goes_with_its_conversation(alias: str, store: DjangoTurnStore) -> None:
    await store.close_turn(ended(await opened(store, "t1"), words(500)))
    assert await ChatEventSegment.objects.using(alias).aexists()
    later = timezone.now() + timedelta(days=2)
    assert (await sync_to_async(prune)(stale_before=later, now=later)).conversations == 1
    assert not await ChatEventSegment.objects.using(alias).aexists()


async def test_is_shown_whole(alias: str, store: DjangoTurnStore) -> None:
    await store.close_turn(ended(await opened(store, "t1"), words(500)))
    row = await ChatTurn.objects.using(alias).aget()
    assert len(await sync_to_async(whole_log)(row)) == 501


async def test_is_kept_by_going_back_to_the_migration_before(alias: str, store: DjangoTurnStore) -> None:
    turn = await opened(store, "t1")
    await store.pulse("t1", words(300))
    await store.close_turn(ended(turn, words(500)))
    await store.close_turn(closed("t2", await opened(store, "t2")))
    migrate = sync_to_async(call_command)
    try:
        await migrate("migrate", "gm_chat", "0001", database=alias, verbosity=0)
        rows = {pk: events async for pk, events in ChatTurn.objects.using(alias).values_list("pk", "events")}
    finally:
        await migrate("migrate", "gm_chat", database=alias, verbosity=0)
    assert [len(rows["t1"]), len(rows["t2"])] == [501, 2]
    assert await log(store) == list(ended(turn, words(500)).events)
