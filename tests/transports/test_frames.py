from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from gm_chat.transports.frames import Frames, frame

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

ONE, TWO = {"seq": 1}, {"seq": 2}


class Source:
    """A stream of events with waits of so many seconds between them; remembers how far it was read."""

    def __init__(self, *steps: Any) -> None:
        self._steps = steps
        self.read: list[Any] = []
        self.is_closed = False

    async def events(self) -> AsyncGenerator[dict[str, Any], None]:
        try:
            for step in self._steps:
                self.read.append(step)
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, float):
                    await asyncio.sleep(step)
                else:
                    yield step
        finally:
            self.is_closed = True


async def chunks(frames: Frames) -> list[bytes]:
    return [chunk async for chunk in frames]


async def test_what_is_there_at_once_goes_out_at_once() -> None:
    assert await chunks(Frames(Source(ONE, TWO, 0.01, {"seq": 3}).events())) == [
        frame(ONE) + frame(TWO),
        frame({"seq": 3}),
    ]


async def test_nothing_is_read_before_the_first_chunk_is_asked_for() -> None:
    source = Source(ONE)
    frames = Frames(source.events())
    await asyncio.sleep(0)
    assert source.read == []
    assert await chunks(frames) == [frame(ONE)]


async def test_an_error_comes_after_the_frames_before_it() -> None:
    frames = Frames(Source(ONE, LookupError("gone")).events())
    assert await anext(frames) == frame(ONE)
    with pytest.raises(LookupError, match="gone"):
        await anext(frames)


@pytest.mark.parametrize(("steps", "has_ended"), [((), True), ((ONE,), False), ((1.0, ONE), False)])
async def test_tells_early_whether_anything_will_come(steps: tuple[Any, ...], has_ended: bool) -> None:
    source = Source(*steps)
    frames = Frames(source.events())
    assert await frames.has_ended(0.02) is has_ended
    frames.close()
    await asyncio.sleep(0.02)
    assert source.is_closed


async def test_an_error_instead_of_the_first_event_is_told_early() -> None:
    with pytest.raises(LookupError):
        await Frames(Source(LookupError()).events()).has_ended(0.02)


async def test_who_stops_waiting_ends_the_stream() -> None:
    source = Source(ONE, 60.0)
    reading = asyncio.create_task(chunks(Frames(source.events())))
    await asyncio.sleep(0.01)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert source.is_closed


async def test_a_stream_is_closed_from_another_thread_between_two_chunks() -> None:
    source = Source(ONE, 60.0)
    frames = Frames(source.events())
    await anext(frames)
    await asyncio.to_thread(frames.close)
    async with asyncio.timeout(1):
        while not source.is_closed:  # noqa: ASYNC110 - a fact of the generator
            await asyncio.sleep(0.01)
