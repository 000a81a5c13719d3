"""Whether a socket may be opened, and by whom; and whether that still holds when something comes through it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from channels.security.websocket import (  # type: ignore[import-untyped]  # it has no type hints
    AllowedHostsOriginValidator,
    OriginValidator,
)
from django.conf import settings as django_settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpResponse

from gm_chat.persistence.threads import run_db
from gm_chat.plugin import Action, Actor, Verdict
from gm_chat.transports.address import visitor_address
from gm_chat.transports.identity import identify, load_again

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from django.contrib.sessions.backends.base import SessionBase

    from gm_chat.wiring import Runtime

__all__ = ["Headers", "Visit", "is_welcome"]

Headers = list[tuple[bytes, bytes]]


def is_welcome(scope: Mapping[str, Any], allowed_origins: Collection[str] | None) -> bool:
    """Whether the page that opens the socket may: browsers send its origin, and send cookies whatever it is.

    Judged by Channels' rules: the listed origins, else Django's ``ALLOWED_HOSTS``. A client that names no origin is
    refused like a foreign one, unless ``*`` allows all.
    """
    validator = OriginValidator(None, allowed_origins) if allowed_origins else AllowedHostsOriginValidator(None)
    named = [value for name, value in scope.get("headers", ()) if name == b"origin"]
    try:
        origins = [urlparse(value.decode("latin-1")) for value in named] or [None]
        return all(validator.valid_origin(origin) for origin in origins)
    except ValueError:  # e.g. a port that is no number
        return False


@dataclass(frozen=True, slots=True)
class Visit:
    """Who uses the socket, and the scope that permission checks see."""

    actor: Actor
    scope: Mapping[str, Any]

    @classmethod
    async def begin(cls, scope: Mapping[str, Any], trusted_proxies: Sequence[str] = ()) -> tuple[Visit, Headers]:
        """Identify who opens a socket. The headers carry the cookie of a new anonymous session."""
        return await run_db(_begin, scope, _address(scope, trusted_proxies))

    async def again(self) -> Visit:
        """Identify them anew: another actor means that they logged out, or that their session is over."""
        return await run_db(_again, self.scope, self.actor.address)

    async def is_permitted(self, runtime: Runtime) -> bool:
        """Ask the permission checks."""
        decision = await runtime.permit(Action("connect"), self.actor, {"scope": self.scope})
        return decision.verdict is not Verdict.DENY


def _address(scope: Mapping[str, Any], trusted_proxies: Sequence[str]) -> str | None:
    peer = scope["client"][0] if scope.get("client") else None
    forwarded = b",".join(value for name, value in scope.get("headers", ()) if name == b"x-forwarded-for")
    return visitor_address(peer, forwarded.decode("latin-1"), trusted_proxies)


def _begin(scope: Mapping[str, Any], address: str | None) -> tuple[Visit, Headers]:
    session: SessionBase | None = scope.get("session")
    known_key = None if session is None else session.session_key
    visit = _visit(scope, scope.get("user"), session, address, create=True)
    if session is None or visit.actor.is_authenticated:
        return visit, []
    if session.session_key is None:  # a signed-cookie session has its key from being saved
        session.save()
    return visit, [] if session.session_key == known_key else [(b"set-cookie", _cookie(session))]


def _again(scope: Mapping[str, Any], address: str | None) -> Visit:
    user, session = load_again(scope.get("user"), scope.get("session"))
    return _visit(scope, user, session, address, create=False)


def _visit(
    scope: Mapping[str, Any], user: Any, session: SessionBase | None, address: str | None, *, create: bool
) -> Visit:
    actor = identify(user, session, address, create=create)
    return Visit(actor, {**scope, "user": actor.user or AnonymousUser(), "session": session})


def _cookie(session: SessionBase) -> bytes:
    """The header by which Django's session middleware would hand out the session."""
    response = HttpResponse()
    name = django_settings.SESSION_COOKIE_NAME
    response.set_cookie(
        name,
        session.session_key or "",
        max_age=None if session.get_expire_at_browser_close() else session.get_expiry_age(),
        domain=django_settings.SESSION_COOKIE_DOMAIN,
        path=django_settings.SESSION_COOKIE_PATH,
        secure=django_settings.SESSION_COOKIE_SECURE,
        httponly=django_settings.SESSION_COOKIE_HTTPONLY,
        samesite=django_settings.SESSION_COOKIE_SAMESITE,
    )
    return response.cookies[name].OutputString().encode("latin-1")
