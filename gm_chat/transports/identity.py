"""Who is at the other end: a user, an anonymous session, or an address. The same for requests and for sockets.

The functions may query the database: call them through ``run_db``.
"""

from __future__ import annotations

import secrets
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth import SESSION_KEY, get_user
from django.db.models import Model

from gm_chat.plugin import Actor

if TYPE_CHECKING:
    from django.contrib.sessions.backends.base import SessionBase

__all__ = ["identify", "load_again"]

SESSION_MARK: Final = "_gm_chat_session"


def identify(user: Any, session: SessionBase | None, address: str | None, *, create: bool = True) -> Actor:
    """Name the visitor. ``create`` gives an anonymous one who has no session a new one.

    A user that a middleware of the project put beside the session counts like one that Django's login put there.
    """
    if user is not None and user.is_authenticated:
        return Actor(str(user.pk), session.session_key if session is not None else None, address, user)
    return Actor(None, _session_key(session, create=create) if session is not None else None, address)


def load_again(user: Any, session: SessionBase | None) -> tuple[Any, SessionBase | None]:
    """Load what a connection was opened with anew, since it may be over: logged out, deactivated, expired.

    The user's permissions are then asked of the database again, too. Nobody is ``None``.
    """
    current = None if session is None else session.__class__(session.session_key)
    if session is not None and SESSION_KEY in session:
        found: Any = get_user(SimpleNamespace(session=current))  # type: ignore[arg-type]  # it reads the session alone
        return found, current
    if user is None or not user.is_authenticated:
        return None, current
    if isinstance(user, Model):
        user = type(user)._default_manager.filter(pk=user.pk).first()
    return (user if getattr(user, "is_active", user is not None) else None), current


def _session_key(session: SessionBase, *, create: bool) -> str | None:
    mark = session.get(SESSION_MARK)  # reading loads the session: a key that is not stored any more becomes None
    if mark is not None:
        return str(mark)
    if session.session_key is not None or not create:
        return session.session_key
    session.create()
    if session.session_key is None:
        # Signed-cookie sessions have no key before the response is made, and another one after each change. A mark
        # inside the cookie stays the same.
        session[SESSION_MARK] = secrets.token_hex(16)
        return str(session[SESSION_MARK])
    return session.session_key
