"""``POST /chat/stream/``: one message in, the events of its turn out as server-sent events, as they happen.

(Specification: "SSE".)
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from django.core.handlers.asgi import ASGIRequest
from django.http import StreamingHttpResponse

from gm_chat.encoding import to_json
from gm_chat.transports.http import forbidden, json_response
from gm_chat.transports.request import Forbidden, chat_view, read_turn_request
from gm_chat.transports.turns import follow
from gm_chat.transports.wire import BadMessage, event_object, logged_object
from gm_chat.wiring import get_runtime

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    from gm_chat.engine.events import Error, LoggedEvent

__all__ = ["stream"]

HEARTBEAT_SECONDS: Final = 15.0
HEARTBEAT: Final = b": heartbeat\n\n"
NEEDS_ASGI: Final = "Streaming needs an ASGI server, such as uvicorn. Under WSGI use the endpoint without stream/."
# "identity" keeps GZipMiddleware from compressing, and thereby holding back, the stream; the others tell proxies.
HEADERS: Final = {
    "Cache-Control": "no-cache, no-transform",
    "Content-Encoding": "identity",
    "X-Accel-Buffering": "no",
}


@chat_view
async def stream(request: HttpRequest) -> HttpResponseBase:
    """Stream the turn's events. A client that goes away cancels its turn.

    Needs an ASGI server: WSGI would hold the whole stream back until it is complete, and is refused.
    """
    if not isinstance(request, ASGIRequest):
        return json_response(
            {"detail": "Streaming needs an ASGI server. Use the endpoint without stream/."}, status=501
        )
    runtime = get_runtime()
    try:
        turn_request = await read_turn_request(request, "sse", runtime)
    except Forbidden:
        return forbidden()
    except BadMessage as error:
        return _response(_only(error.event))
    return _response(_Frames(follow(runtime.runner, turn_request)))


def _response(frames: AsyncIterator[bytes]) -> StreamingHttpResponse:
    return StreamingHttpResponse(frames, content_type="text/event-stream; charset=utf-8", headers=HEADERS)


async def _only(error: Error) -> AsyncGenerator[bytes, None]:
    yield f"data: {to_json(event_object(error))}\n\n".encode()


class _Frames:
    """One frame for each event, and a comment whenever nothing happened for a while.

    Not a generator: Django leaves those to the garbage collector when a client goes away while a chunk is being
    sent, and the provider would go on for as long as that takes. :meth:`close` is what Django calls in every case.
    """

    def __init__(self, events: AsyncGenerator[LoggedEvent, None]) -> None:
        self._events = events
        self._upcoming: asyncio.Future[LoggedEvent] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None  # set as long as the turn may be running

    def __aiter__(self) -> _Frames:
        return self

    async def __anext__(self) -> bytes:
        self._loop = asyncio.get_running_loop()
        # The event is awaited in a task of its own, since a timeout around it would end the generator.
        self._upcoming = upcoming = self._upcoming or asyncio.ensure_future(anext(self._events))
        try:
            await asyncio.wait({upcoming}, timeout=HEARTBEAT_SECONDS)
        except asyncio.CancelledError:
            await self._aclose()
            raise
        if not upcoming.done():
            return HEARTBEAT
        self._upcoming = None
        try:
            logged = upcoming.result()
        except StopAsyncIteration:
            self._loop = None
            raise
        return f"data: {to_json(logged_object(logged))}\nid: {logged.seq}\n\n".encode()

    def close(self) -> None:
        """Stop the turn if it still runs. Django calls this in a thread, when the response is over."""
        if self._loop is not None and not self._loop.is_closed():
            asyncio.run_coroutine_threadsafe(self._aclose(), self._loop)

    async def _aclose(self) -> None:
        upcoming, self._upcoming = self._upcoming, None
        if upcoming is not None:
            upcoming.cancel()
            await asyncio.gather(upcoming, return_exceptions=True)
        await self._events.aclose()
        self._loop = None
