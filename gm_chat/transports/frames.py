"""A stream of events as bytes that Django can send: a frame for each event, and a comment in every silence."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from gm_chat.encoding import to_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

__all__ = ["Frames", "frame"]

HEARTBEAT_SECONDS: Final = 15.0
HEARTBEAT: Final = b": heartbeat\n\n"


def frame(event: dict[str, Any]) -> bytes:
    """Encode an event; its ``id`` is what the client gives as ``Last-Event-ID`` when it comes back."""
    mark = f"\nid: {event['seq']}" if "seq" in event else ""
    return f"data: {to_json(event)}{mark}\n\n".encode()


class Frames:
    """An async iterator over chunks of whole frames: each brings what has come since the last one.

    A task of its own reads the events, since a timeout around them would end the generator. The iterator itself is
    no generator: Django leaves those to the garbage collector when a client goes away while a chunk is being sent,
    and the provider would go on for as long as that takes. :meth:`close` is what Django calls in every case.
    """

    def __init__(self, events: AsyncGenerator[dict[str, Any], None]) -> None:
        """Frame ``events``, which are closed with this object; none is asked for before the first chunk is."""
        self._events = events
        self._frames: list[bytes] = []
        self._reader: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None  # set as long as there may be something to close

    async def has_ended(self, within: float) -> bool:
        """Whether nothing will come, as far as that shows ``within`` seconds; raises what the first event raises."""
        reader = self._started()
        if not await self._wait(reader, within) or self._frames:
            return False
        self._loop = None
        await reader
        return True

    def __aiter__(self) -> Frames:
        return self

    async def __anext__(self) -> bytes:
        reader = self._started()
        if not await self._wait(reader, HEARTBEAT_SECONDS):
            return HEARTBEAT
        if self._frames:
            chunk = b"".join(self._frames)
            self._frames.clear()
            return chunk
        self._loop = None
        await reader
        raise StopAsyncIteration

    def close(self) -> None:
        """Leave the turn. Django calls this in a thread, when the response is over."""
        loop = self._loop  # the loop's own thread may set it to None at any time
        if loop is not None and not loop.is_closed():
            asyncio.run_coroutine_threadsafe(self._aclose(), loop)

    def _started(self) -> asyncio.Task[None]:
        if self._reader is None:
            self._loop = asyncio.get_running_loop()
            self._reader = self._loop.create_task(self._read())
        return self._reader

    async def _read(self) -> None:
        try:
            async with aclosing(self._events) as events:
                async for event in events:
                    self._frames.append(frame(event))
                    self._news.set()
        finally:
            self._news.set()

    async def _wait(self, reader: asyncio.Task[None], seconds: float) -> bool:
        """Whether there are frames, or will be no more, within so many seconds."""
        if self._frames or reader.done():
            return True
        self._news.clear()
        try:
            async with asyncio.timeout(seconds):
                return await self._news.wait()
        except TimeoutError:
            return False
        except asyncio.CancelledError:
            await self._aclose()
            raise

    async def _aclose(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        self._loop = None
