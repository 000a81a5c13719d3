"""``POST /chat/``: one message in, all events of its turn out, in one JSON body.

(Specification: "Non-streaming HTTP".)
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse

from gm_chat.encoding import to_json
from gm_chat.transports.request import Forbidden, chat_view, read_turn_request
from gm_chat.transports.turns import follow
from gm_chat.transports.wire import BadMessage, envelope, event_object, logged_object
from gm_chat.wiring import get_runtime

if TYPE_CHECKING:
    from django.http import HttpRequest

__all__ = ["chat", "forbidden", "json_response"]


@chat_view
async def chat(request: HttpRequest) -> HttpResponse:
    """Answer ``{"events": [...], "answer": "...", "turn_id": "..."}``, with status 200 also when the turn failed.

    A client that goes away cancels its turn.
    """
    runtime = get_runtime()
    try:
        turn_request = await read_turn_request(request, "http", runtime)
    except Forbidden:
        return forbidden()
    except BadMessage as error:
        return json_response(envelope([event_object(error.event)]))
    async with aclosing(follow(runtime.runner, turn_request)) as events:
        return json_response(envelope([logged_object(logged) async for logged in events]))


def forbidden() -> HttpResponse:
    """The answer to whom a permission check refused."""
    return json_response({"detail": "Forbidden"}, status=403)


def json_response(value: Any, *, status: int = 200) -> HttpResponse:
    """A response in the chat's own JSON, which caches keep away from."""
    return HttpResponse(
        to_json(value), status=status, content_type="application/json", headers={"Cache-Control": "no-store"}
    )
