"""A stream of events as bytes that Django can send: one frame for each event, and a comment in every silence."""

from __future__ import annotations

import asyncio
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
    """An async iterator over frames.

    Not a generator: Django leaves those to the garbage collector when a client goes away while a chunk is being
    sent, and the provider would go on for as long as that takes. :meth:`close` is what Django calls in every case.
    """

    def __init__(self, events: AsyncGenerator[dict[str, Any], None]) -> None:
        """Frame ``events``, which are closed with this object."""
        self._events = events
        self._upcoming: asyncio.Future[dict[str, Any]] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None  # set as long as there may be something to close

    async def has_ended(self, within: float) -> bool:
        """Whether nothing will come, as far as that shows ``within`` seconds; raises what the first event raises."""
        if not await self._wait(within):
            return False
        error = self._next().exception()
        if error is None:
            return False
        self._loop = None
        if isinstance(error, StopAsyncIteration):
            return True
        raise error

    def __aiter__(self) -> Frames:
        return self

    async def __anext__(self) -> bytes:
        if not await self._wait(HEARTBEAT_SECONDS):
            return HEARTBEAT
        upcoming, self._upcoming = self._next(), None
        try:
            return frame(upcoming.result())
        except BaseException:
            self._loop = None
            raise

    def close(self) -> None:
        """Leave the turn. Django calls this in a thread, when the response is over."""
        if self._loop is not None and not self._loop.is_closed():
            asyncio.run_coroutine_threadsafe(self._aclose(), self._loop)

    def _next(self) -> asyncio.Future[dict[str, Any]]:
        # The event is awaited in a task of its own, since a timeout around it would end the generator.
        self._upcoming = self._upcoming or asyncio.ensure_future(anext(self._events))
        return self._upcoming

    async def _wait(self, seconds: float) -> bool:
        self._loop = asyncio.get_running_loop()
        upcoming = self._next()
        try:
            await asyncio.wait({upcoming}, timeout=seconds)
        except asyncio.CancelledError:
            await self._aclose()
            raise
        return upcoming.done()

    async def _aclose(self) -> None:
        upcoming, self._upcoming = self._upcoming, None
        if upcoming is not None:
            upcoming.cancel()
            await asyncio.gather(upcoming, return_exceptions=True)
        await self._events.aclose()
        self._loop = None
