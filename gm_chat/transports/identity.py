"""Who is at the other end: a user, an anonymous session, or an address. The same for requests and for sockets.

The functions may query the database: call them through ``run_db``.
"""

from __future__ import annotations

import secrets
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth import SESSION_KEY, get_user
from django.contrib.sessions.backends.db import SessionStore
from django.db import router
from django.db.models import CharField, DateTimeField, Model
from django.utils import timezone

from gm_chat.persistence.prepared import Parameter, PreparedQuery
from gm_chat.plugin import Actor

if TYPE_CHECKING:
    from django.contrib.sessions.backends.base import SessionBase

__all__ = ["identify", "load_again"]

SESSION_MARK: Final = "_gm_chat_session"


def identify(user: Any, session: SessionBase | None, address: str | None, *, create: bool = True) -> Actor:
    """Name the visitor. ``create`` gives an anonymous one who has no session a new one.

    A user that a middleware of the project put beside the session counts like one that Django's login put there.
    """
    _load_at_once(session)
    if user is not None and user.is_authenticated:
        return Actor(str(user.pk), session.session_key if session is not None else None, address, user)
    return Actor(None, _session_key(session, create=create) if session is not None else None, address)


def load_again(user: Any, session: SessionBase | None) -> tuple[Any, SessionBase | None]:
    """Load what a connection was opened with anew, since it may be over: logged out, deactivated, expired.

    The user's permissions are then asked of the database again, too. Nobody is ``None``.
    """
    current = None if session is None else session.__class__(session.session_key)
    _load_at_once(current)
    if session is not None and SESSION_KEY in session:
        found: Any = get_user(SimpleNamespace(session=current))  # type: ignore[arg-type]  # it reads the session alone
        return found, current
    if user is None or not user.is_authenticated:
        return None, current
    if isinstance(user, Model):
        user = type(user)._default_manager.filter(pk=user.pk).first()
    return (user if getattr(user, "is_active", user is not None) else None), current


def _load_at_once(session: SessionBase | None) -> None:
    """Load a session of Django's own table without having its statement composed, which costs most of the loading.

    Any other session loads itself when it is read, and so does this one if there is nothing to load.
    """
    if type(session) is not SessionStore or session.session_key is None or hasattr(session, "_session_cache"):
        return
    table: Any = session.model
    rows = _stored(table).fetch(router.db_for_read(table), key=session.session_key, now=timezone.now())
    if rows:
        session._session_cache = session.decode(rows[0]["session_data"])  # type: ignore[attr-defined]  # where it looks


@lru_cache
def _stored(table: type[Model]) -> PreparedQuery:
    key, now = Parameter("key", CharField()), Parameter("now", DateTimeField())
    unexpired = table._default_manager.filter(session_key=key, expire_date__gt=now)
    return PreparedQuery(unexpired.values("session_data"))


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
