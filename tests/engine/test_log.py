from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from gm_chat.engine.events import ConfirmMutation, Done, Event, TextChunk
from gm_chat.engine.log import EventLog
from gm_chat.providers.base import TokenUsage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

DONE = Done(TokenUsage())


def log_of(*events: Event) -> EventLog:
    log = EventLog("t")
    for event in events:
        log.append(event)
    return log


async def read(log: EventLog, after_seq: int = 0) -> list[tuple[int, Event]]:
    return [(logged.seq, logged.event) async for logged in log.read(after_seq)]


async def test_numbers_events_from_one_without_gaps() -> None:
    log = log_of(TextChunk("a"), TextChunk("b"), DONE)
    assert await read(log) == [(1, TextChunk("a")), (2, TextChunk("b")), (3, DONE)]
    assert len(log) == 3


@pytest.mark.parametrize(("after", "seqs"), [(0, [1, 2]), (1, [2]), (2, []), (9, [])])
async def test_reads_what_comes_after_a_seq(after: int, seqs: list[int]) -> None:
    assert [seq for seq, _ in await read(log_of(TextChunk("a"), DONE), after)] == seqs


async def test_many_readers_follow_a_running_log_each_from_its_place() -> None:
    log = log_of(TextChunk("a"))
    readers = [asyncio.create_task(read(log, after)) for after in (0, 0, 1)]
    await asyncio.sleep(0)
    log.append(TextChunk("b"))
    await asyncio.sleep(0)
    log.append(DONE)
    all_events, again, later = await asyncio.wait_for(asyncio.gather(*readers), 1)
    assert all_events == again == [(1, TextChunk("a")), (2, TextChunk("b")), (3, DONE)]
    assert later == all_events[1:]


@pytest.mark.parametrize("after", [0, 1, 9])
async def test_collects_what_a_reader_reads_at_the_end(after: int) -> None:
    log = log_of(TextChunk("a"))
    collecting = asyncio.create_task(log.collect(after))
    await asyncio.sleep(0)
    log.append(TextChunk("b"))
    await asyncio.sleep(0)
    assert not collecting.done()
    log.append(DONE)
    events = await asyncio.wait_for(collecting, 1)
    assert [(logged.seq, logged.event) for logged in events] == await read(log, after)
    assert await log.collect(after) == events


async def test_a_reader_that_leaves_disturbs_nobody() -> None:
    log = log_of(TextChunk("a"))
    leaving = log.read()
    assert (await anext(leaving)).seq == 1
    await leaving.aclose()
    log.append(DONE)
    assert len(await read(log)) == 2


async def test_a_pause_ends_the_stream_and_a_new_log_continues_it() -> None:
    pause = ConfirmMutation("1", "createPart", {})
    log = log_of(pause)
    assert log.is_finished
    assert log.is_paused
    assert await read(log) == [(1, pause)]
    later = EventLog("t", log.events)
    assert not later.is_finished
    reader, latecomer = (asyncio.create_task(read(later, after)) for after in (0, 1))
    collector = asyncio.create_task(later.collect(1))
    await asyncio.sleep(0)
    later.append(DONE)
    assert [logged.event for logged in await collector] == [DONE]
    assert later.events == [pause, DONE]
    assert not later.is_paused
    assert await reader == [(1, pause), (2, DONE)]
    assert await latecomer == [(2, DONE)]


@pytest.mark.parametrize("end", [DONE, ConfirmMutation("1", "createPart", {})])
def test_nothing_follows_the_end(end: Event) -> None:
    log = log_of(end)
    with pytest.raises(RuntimeError, match="turn 't' has ended"):
        log.append(TextChunk("late"))


@pytest.mark.parametrize("reading", [read, EventLog.collect])
async def test_a_negative_seq_is_refused(reading: Callable[[EventLog, int], Awaitable[Any]]) -> None:
    with pytest.raises(ValueError, match="after_seq must be 0 or"):
        await reading(log_of(DONE), -1)
