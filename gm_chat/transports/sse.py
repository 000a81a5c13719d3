"""``POST /chat/stream/``: one message in, the events of its turn out as server-sent events, as they happen.

(Specification: "SSE".)
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from django.core.handlers.asgi import ASGIRequest
from django.http import StreamingHttpResponse
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_POST

from gm_chat.encoding import to_json
from gm_chat.transports.http import forbidden, json_response
from gm_chat.transports.request import Forbidden, read_turn_request
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


@require_POST
@csrf_protect
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
    return _response(_frames(follow(runtime.runner, turn_request)))


def _response(frames: AsyncIterator[bytes]) -> StreamingHttpResponse:
    return StreamingHttpResponse(frames, content_type="text/event-stream; charset=utf-8", headers=HEADERS)


async def _only(error: Error) -> AsyncGenerator[bytes, None]:
    yield f"data: {to_json(event_object(error))}\n\n".encode()


async def _frames(events: AsyncGenerator[LoggedEvent, None]) -> AsyncGenerator[bytes, None]:
    """One frame for each event, and a comment whenever nothing happened for a while.

    The next event is awaited in a task of its own, since a timeout around it would end the generator.
    """
    upcoming: asyncio.Future[LoggedEvent] | None = None
    try:
        while True:
            upcoming = upcoming or asyncio.ensure_future(anext(events))
            await asyncio.wait({upcoming}, timeout=HEARTBEAT_SECONDS)
            if not upcoming.done():
                yield HEARTBEAT
                continue
            try:
                logged = upcoming.result()
            except StopAsyncIteration:
                return
            upcoming = None
            yield f"data: {to_json(logged_object(logged))}\nid: {logged.seq}\n\n".encode()
    finally:
        if upcoming is not None:
            upcoming.cancel()
            await asyncio.gather(upcoming, return_exceptions=True)
        await events.aclose()
