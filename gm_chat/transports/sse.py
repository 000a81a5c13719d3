"""Events as they happen, as server-sent events.

``POST /chat/stream/``: one message in, the events of its turn out. ``GET /chat/turns/<id>/events``: the same for a
turn that was begun elsewhere, from the event on that a client has not seen. (Specification: "SSE".)
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse, StreamingHttpResponse

from gm_chat.engine import UnknownTurnError
from gm_chat.engine.events import Error
from gm_chat.transports.budget_headers import budget_headers
from gm_chat.transports.checked import Unusable
from gm_chat.transports.frames import Frames, frame
from gm_chat.transports.request import admit, read_turn_request
from gm_chat.transports.turns import answer, begin, follow
from gm_chat.transports.views import chat_view, json_response, not_found
from gm_chat.transports.wire import event_object
from gm_chat.wiring import get_runtime

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    from gm_chat.transports.turns import Begun
    from gm_chat.wiring import Runtime

__all__ = ["stream", "turn_events"]

FIRST_EVENT_SECONDS: Final = 1.0
"""What headers wait for: for a turn to begin, or for one that is asked for by its id to say whether it exists."""

NEEDS_ASGI: Final = "Streaming needs an ASGI server, such as uvicorn. Under WSGI use the endpoint without stream/."
# "identity" keeps GZipMiddleware from compressing, and thereby holding back, the stream; the others tell proxies.
HEADERS: Final = {
    "Cache-Control": "no-cache, no-transform",
    "Content-Encoding": "identity",
    "X-Accel-Buffering": "no",
}


@chat_view("POST")
async def stream(request: HttpRequest) -> HttpResponseBase:
    """Stream the turn's events. A client that goes away has ``resume_grace_seconds`` to come back.

    Needs an ASGI server: WSGI would hold the whole stream back until it is complete, and is refused.
    """
    if not isinstance(request, ASGIRequest):
        return json_response({"detail": NEEDS_ASGI}, status=501)
    runtime = get_runtime()
    try:
        turn_request = await read_turn_request(request, "sse", runtime)
    except Unusable as error:
        return _response(_only(event_object(error.event)))
    beginning = asyncio.create_task(begin(runtime.runner, turn_request))
    try:
        await asyncio.wait({beginning}, timeout=FIRST_EVENT_SECONDS)
    except asyncio.CancelledError:  # the client is gone
        beginning.cancel()
        raise
    frames = Frames(answer(runtime.runner, beginning, turn_request.actor))
    return _response(frames, _budgets(beginning.result(), runtime) if beginning.done() else None)


@chat_view("GET")
async def turn_events(request: HttpRequest, turn_id: str) -> HttpResponseBase:
    """Stream a turn of one's own after ``Last-Event-ID``, else ``?after=``, else from its beginning.

    204 when it has ended and nothing is left, which keeps a browser's ``EventSource`` from asking again.
    """
    if not isinstance(request, ASGIRequest):
        return json_response({"detail": NEEDS_ASGI}, status=501)
    runtime = get_runtime()
    actor, _ = await admit(request, runtime)
    after = request.headers.get("Last-Event-ID") or request.GET.get("after") or "0"
    if not (after.isascii() and after.isdigit() and len(after) < 10):
        return json_response({"detail": "Give the id of the last event that came, a number from 0 on."}, status=400)
    frames = Frames(follow(runtime.runner, turn_id, int(after), actor))
    try:
        if await frames.has_ended(FIRST_EVENT_SECONDS):
            return HttpResponse(status=204, headers={"Cache-Control": "no-store"})
    except UnknownTurnError:
        return not_found()
    return _response(frames)


def _response(frames: AsyncIterator[bytes], headers: Mapping[str, str] | None = None) -> StreamingHttpResponse:
    kind = "text/event-stream; charset=utf-8"
    return StreamingHttpResponse(frames, content_type=kind, headers={**HEADERS, **(headers or {})})


def _budgets(begun: Begun, runtime: Runtime) -> dict[str, str]:
    seconds = begun.place.details.get("retry_after_seconds") if isinstance(begun.place, Error) else None
    window = runtime.settings.rate_limit.window_seconds
    return budget_headers(begun.budgets, window_seconds=window, retry_after_seconds=seconds)


async def _only(event: dict[str, Any]) -> AsyncGenerator[bytes, None]:
    yield frame(event)
