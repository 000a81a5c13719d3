"""From Django's request to the engine's: who asks, whether they may, and what they say. HTTP and SSE share it."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import RequestDataTooBig
from django.db import connections, transaction
from django.http.request import RawPostDataException
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_POST

from gm_chat.engine.ports import TurnRequest
from gm_chat.persistence.threads import run_db
from gm_chat.plugin import Action, Actor, Verdict
from gm_chat.transports.wire import BadMessage, message_text

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from django.contrib.sessions.backends.base import SessionBase
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    from gm_chat.plugin import Transport
    from gm_chat.wiring import Runtime

    View = Callable[[HttpRequest], Coroutine[Any, Any, HttpResponseBase]]

__all__ = ["Forbidden", "chat_view", "read_turn_request", "scope_of"]

SESSION_MARK: Final = "_gm_chat_session"


class Forbidden(Exception):  # noqa: N818 - a decision, told to the client as 403
    """A permission check denied the connection."""


def chat_view(view: View) -> View:
    """Make a view a route of the chat: POST only, protected against CSRF whatever the project's middleware.

    A request's own transaction (``ATOMIC_REQUESTS``), which Django refuses to async views, is declined: a turn may
    last minutes, and keeps what it needs in short transactions.
    """
    route = require_POST(csrf_protect(view))
    for alias in connections:
        route = transaction.non_atomic_requests(using=alias)(route)
    return route


async def read_turn_request(request: HttpRequest, transport: Transport, runtime: Runtime) -> TurnRequest:
    """Identify, admit and read a request, in this order; raise :class:`Forbidden` or :class:`BadMessage`.

    The user and the session are loaded in one hop to a database thread; an anonymous visitor without a session gets
    one, so that the response carries its cookie.
    """
    actor = await run_db(_identify, request)
    scope = scope_of(request, actor)
    decision = await runtime.permit(Action("connect"), actor, {"scope": scope})
    if decision.verdict is Verdict.DENY:
        raise Forbidden(decision.reason)
    text = message_text(_body(request), max_characters=runtime.settings.max_message_characters)
    return TurnRequest(actor=actor, text=text, transport=transport, scope=scope)


def scope_of(request: HttpRequest, actor: Actor) -> dict[str, Any]:
    """What the ``permission`` callable receives: keys and shapes of an ASGI scope, so that one callable serves all."""
    return {
        "type": "http",
        "path": request.path,
        "method": request.method,
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
            for name, value in request.headers.items()
        ],
        "client": (request.META.get("REMOTE_ADDR", ""), int(request.META.get("REMOTE_PORT") or 0)),
        "session": getattr(request, "session", None),
        "user": actor.user or AnonymousUser(),
    }


def _identify(request: HttpRequest) -> Actor:
    """May query the database. A user that a middleware put on the request counts like one of Django's sessions."""
    address = request.META.get("REMOTE_ADDR") or None
    session: SessionBase | None = getattr(request, "session", None)
    user = getattr(request, "user", None)
    if user is not None and user.is_authenticated:
        return Actor(str(user.pk), session.session_key if session is not None else None, address, user)
    return Actor(None, _session_key(session) if session is not None else None, address)


def _session_key(session: SessionBase) -> str:
    """The key of an anonymous visitor's session, which is created if there is none."""
    mark = session.get(SESSION_MARK)  # reading loads the session: a key that is not stored any more becomes None
    if mark is not None:
        return str(mark)
    if session.session_key is None:
        session.create()
    if session.session_key is None:
        # Signed-cookie sessions have no key before the response is made, and another one after each change. A mark
        # inside the cookie stays the same.
        session[SESSION_MARK] = secrets.token_hex(16)
        return str(session[SESSION_MARK])
    return session.session_key


def _body(request: HttpRequest) -> bytes:
    try:
        return request.body
    except RequestDataTooBig:
        raise BadMessage("The body is larger than this server accepts.") from None
    except RawPostDataException:
        raise BadMessage("The body was read as a form. Send JSON with the content type application/json.") from None
