"""Which database the chat's rows live in, and transactions there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from django.db import OperationalError, connections, router, transaction

from gm_chat.models import ChatConversation

if TYPE_CHECKING:
    from collections.abc import Callable

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

    ``work`` must begin with a write: a deferred transaction of SQLite that first reads cannot always write later.
    """
    alias = chat_database()
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with transaction.atomic(using=alias):
                return work(alias)
        except OperationalError as error:
            if attempt == _ATTEMPTS or connections[alias].in_atomic_block or not _is_deadlock(error):
                raise
    raise AssertionError("the loop above returns or raises")


def _is_deadlock(error: OperationalError) -> bool:
    if error.args and error.args[0] == _MYSQL_DEADLOCK:
        return True
    cause = error.__cause__  # psycopg 3 names the attribute as the standard does, psycopg 2 in its own way
    return bool({getattr(cause, "sqlstate", None), getattr(cause, "pgcode", None)} & _SQLSTATES)
