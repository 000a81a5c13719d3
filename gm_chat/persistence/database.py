"""Which database the chat's rows live in, and transactions there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.db import InterfaceError, OperationalError, connections, router, transaction

from gm_chat.models import ChatConversation

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.backends.base.base import BaseDatabaseWrapper

__all__ = ["chat_database", "transact"]

T = TypeVar("T")

_ATTEMPTS: Final = 3
_MYSQL_DEADLOCK: Final = 1213
_SQLSTATES: Final = frozenset({"40P01", "40001"})  # deadlock detected, serialization failure


def chat_database() -> str:
    """The alias that the project's routers give for our tables; all of them are read and written there."""
    return router.db_for_write(ChatConversation)


def transact(work: Callable[[str], T]) -> T:
    """Run ``work(alias)`` in one transaction, again from its start if the server chose it as a deadlock's victim.

    Two turns of an owner lock their conversation and their turn in different orders on MariaDB, where a foreign key
    locks the row that it points at. Servers resolve that at once, and expect the victim to come back.

    The same where the connection was lost, as when the server restarted since its last use: an answer that is complete
    would be lost for it. Each work changes rows whose state it names, so that it does nothing a second time.

    ``work`` must begin with a write: a deferred transaction of SQLite that first reads cannot always write later.
    """
    alias = chat_database()
    connection = connections[alias]
    for attempt in range(1, _ATTEMPTS + 1):
        before = connection.connection
        try:
            with transaction.atomic(using=alias):
                return work(alias)
        except (InterfaceError, OperationalError) as error:
            if attempt == _ATTEMPTS or connection.in_atomic_block:
                raise
            if not (_is_deadlock(error) or _has_lost(connection, before)):
                raise
    raise AssertionError("the loop above returns or raises")


def _has_lost(connection: BaseDatabaseWrapper, before: Any) -> bool:
    """Whether the driver's connection ``before`` was lost. Django may have replaced it already, as it rolled back."""
    if connection.connection is before and before is not None and not connection.is_usable():
        connection.close()
    return before is not None and connection.connection is not before


def _is_deadlock(error: Exception) -> bool:
    if error.args and error.args[0] == _MYSQL_DEADLOCK:
        return True
    cause = error.__cause__  # psycopg 3 names the attribute as the standard does, psycopg 2 in its own way
    return bool({getattr(cause, "sqlstate", None), getattr(cause, "pgcode", None)} & _SQLSTATES)
