"""The routes that answer with one JSON body.

``POST /chat/``: one message in, all events of its turn out. ``POST /chat/confirm/``: the user's word on a mutation,
and the rest of its turn. ``POST /chat/cancel/``. ``GET /chat/confirmations/``: what waits for the user's word.
(Specification: "Non-streaming HTTP", "SSE".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gm_chat.engine.ports import ConfirmRequest
from gm_chat.transports.budget_headers import budget_headers
from gm_chat.transports.checked import BadEvent, BadMessage, Unusable
from gm_chat.transports.incoming import read_confirm
from gm_chat.transports.request import admit, read_body, read_turn_request
from gm_chat.transports.turns import exists, whole_answer
from gm_chat.transports.views import chat_view, json_response, not_found
from gm_chat.transports.wire import envelope, event_object, pending_object
from gm_chat.wiring import get_runtime

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from gm_chat.engine.ports import TurnRequest
    from gm_chat.wiring import Runtime

__all__ = ["cancel", "chat", "confirm", "confirmations"]


@chat_view("POST")
async def chat(request: HttpRequest) -> HttpResponse:
    """Answer ``{"events": [...], "answer": "...", "turn_id": "..."}``, with status 200 also when the turn failed."""
    runtime = get_runtime()
    try:
        turn_request = await read_turn_request(request, "http", runtime)
    except Unusable as error:
        return json_response(envelope([event_object(error.event)]))
    return await _whole(runtime, turn_request)


@chat_view("POST")
async def confirm(request: HttpRequest) -> HttpResponse:
    """Approve or reject a mutation; answer with the rest of its turn, in the form of :func:`chat`."""
    runtime = get_runtime()
    actor, scope = await admit(request, runtime)
    try:
        said = read_confirm(_event_body(request, runtime))
    except Unusable as error:
        return json_response(envelope([event_object(error.event)]))
    word = ConfirmRequest(
        actor=actor, confirmation_id=said.confirmation_id, approved=said.confirmed, transport="http", scope=scope
    )
    return await _whole(runtime, word)


@chat_view("POST")
async def cancel(request: HttpRequest) -> HttpResponse:
    """Stop a turn of one's own: ``{"cancelled": true}``, or false if it had ended."""
    runtime = get_runtime()
    actor, _ = await admit(request, runtime)
    try:
        turn_id = _event_body(request, runtime).get("turn_id")
        if not isinstance(turn_id, str):
            raise BadEvent('Send the id of the turn, as {"turn_id": "..."}.')
    except Unusable as error:
        return json_response({"detail": str(error), "code": error.code}, status=400)
    cancelled = await runtime.runner.cancel(turn_id, actor=actor)
    if not cancelled and not await exists(runtime.runner, turn_id, actor):
        return not_found()
    return json_response({"cancelled": cancelled})


@chat_view("GET")
async def confirmations(request: HttpRequest) -> HttpResponse:
    """List the visitor's own mutations that wait for a word, oldest first, e.g. after a page was loaded again."""
    runtime = get_runtime()
    actor, _ = await admit(request, runtime)
    pending = await runtime.runner.pending(actor)
    return json_response({"confirmations": [pending_object(item) for item in pending]})


async def _whole(runtime: Runtime, request: TurnRequest | ConfirmRequest) -> HttpResponse:
    events, budgets = await whole_answer(runtime.runner, request)
    seconds = events[-1].get("retry_after_seconds")
    window = runtime.settings.rate_limit.window_seconds
    headers = budget_headers(budgets, window_seconds=window, retry_after_seconds=seconds)
    return json_response(envelope(events), headers=headers)


def _event_body(request: HttpRequest, runtime: Runtime) -> dict[str, object]:
    """The body of what is no message: whatever is wrong with it makes it a bad event."""
    try:
        return read_body(request, runtime)
    except BadMessage as error:
        raise BadEvent(str(error)) from None
