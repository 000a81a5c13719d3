"""From Django's request to the engine's: who asks, whether they may, and what they say. Every HTTP route shares it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import RequestDataTooBig
from django.core.handlers.asgi import ASGIRequest
from django.http.request import RawPostDataException

from gm_chat.engine.ports import TurnRequest
from gm_chat.persistence.threads import run_db
from gm_chat.plugin import Action, Verdict
from gm_chat.transports.address import visitor_address
from gm_chat.transports.checked import BadMessage, json_object, usable_key
from gm_chat.transports.identity import identify
from gm_chat.transports.incoming import read_say
from gm_chat.transports.views import Forbidden

if TYPE_CHECKING:
    from django.http import HttpRequest

    from gm_chat.plugin import Actor, Transport
    from gm_chat.wiring import Runtime

__all__ = ["admit", "read_body", "read_turn_request", "scope_of"]

KEY_HEADER: Final = "HTTP_IDEMPOTENCY_KEY"


async def admit(request: HttpRequest, runtime: Runtime, *, create: bool = False) -> tuple[Actor, dict[str, Any]]:
    """Identify who asks, in one hop to a database thread, and raise :class:`Forbidden` if they may not.

    ``create`` gives an anonymous visitor without a session one, so that the response carries its cookie. Returns the
    actor and the scope that permission checks see.
    """
    trusted = runtime.settings.rate_limit.trusted_proxies
    address = visitor_address(request.META.get("REMOTE_ADDR"), request.META.get("HTTP_X_FORWARDED_FOR"), trusted)
    actor = await run_db(_identify, request, address, create=create)
    scope = scope_of(request, actor)
    decision = await runtime.permit(Action("connect"), actor, {"scope": scope})
    if decision.verdict is Verdict.DENY:
        raise Forbidden(decision.reason)
    return actor, scope


async def read_turn_request(request: HttpRequest, transport: Transport, runtime: Runtime) -> TurnRequest:
    """Admit and read a message; raise :class:`Forbidden` or :class:`~gm_chat.transports.checked.BadMessage`."""
    actor, scope = await admit(request, runtime, create=True)
    said = read_say(read_body(request, runtime), max_characters=runtime.settings.max_message_characters)
    key = usable_key(request.META.get(KEY_HEADER)) or said.key
    return TurnRequest(actor=actor, text=said.text, transport=transport, scope=scope, key=key)


def read_body(request: HttpRequest, runtime: Runtime) -> dict[str, Any]:
    """Return the JSON object that was sent, or raise :class:`~gm_chat.transports.checked.BadMessage`."""
    try:
        body = request.body
    except RequestDataTooBig:
        raise BadMessage("The body is larger than this server accepts.") from None
    except RawPostDataException:
        raise BadMessage("The body was read as a form. Send JSON with the content type application/json.") from None
    return json_object(body, max_characters=runtime.settings.max_message_characters)


def scope_of(request: HttpRequest, actor: Actor) -> dict[str, Any]:
    """What the ``permission`` callable receives: keys and shapes of an ASGI scope, so that one callable serves all."""
    return {
        "type": "http",
        "path": request.path,
        "method": request.method,
        "headers": _headers(request),
        "client": (request.META.get("REMOTE_ADDR", ""), int(request.META.get("REMOTE_PORT") or 0)),
        "session": getattr(request, "session", None),
        "user": actor.user or AnonymousUser(),
    }


def _headers(request: HttpRequest) -> list[tuple[bytes, bytes]]:
    if isinstance(request, ASGIRequest):
        return list(request.scope["headers"])
    return [
        (name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in request.headers.items()
    ]


def _identify(request: HttpRequest, address: str | None, *, create: bool) -> Actor:
    return identify(getattr(request, "user", None), getattr(request, "session", None), address, create=create)
