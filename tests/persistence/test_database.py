from __future__ import annotations

import contextlib
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError, connection, connections, router, transaction
from django.utils import timezone

from gm_chat.models import ChatConversation
from gm_chat.persistence.database import chat_database, transact


def deadlock(**attributes: Any) -> OperationalError:
    """As psycopg reports it: the driver's own exception is the cause."""
    error = OperationalError("deadlock detected")
    error.__cause__ = type("DeadlockDetected", (Exception,), attributes)()
    return error


class Work:
    """Writes a row, and fails as often as it is told."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self, alias: str) -> str:
        self.calls += 1
        ChatConversation.objects.using(alias).create(session_key="s", updated=timezone.now())
        if self.errors:
            raise self.errors.pop(0)
        return alias


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "error",
    [
        OperationalError(1213, "Deadlock found when trying to get lock"),
        deadlock(sqlstate="40P01"),
        deadlock(sqlstate="40001"),
        deadlock(pgcode="40P01"),
    ],
)
def test_a_deadlocks_victim_begins_again(error: OperationalError) -> None:
    work = Work(error)
    assert transact(work) == chat_database()
    assert (work.calls, ChatConversation.objects.count()) == (2, 1)


@pytest.mark.django_db(transaction=True)
def test_it_gives_up_after_the_third() -> None:
    work = Work(*(deadlock(sqlstate="40P01") for _ in range(9)))
    with pytest.raises(OperationalError):
        transact(work)
    assert (work.calls, ChatConversation.objects.count()) == (3, 0)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("error", [OperationalError("database is locked"), OperationalError(), ValueError("no")])
def test_other_failures_are_not_repeated(error: Exception) -> None:
    work = Work(error)
    with pytest.raises(type(error)):
        transact(work)
    assert (work.calls, ChatConversation.objects.count()) == (1, 0)


@pytest.mark.django_db(transaction=True)
def test_within_a_transaction_nothing_can_be_repeated() -> None:
    work = Work(deadlock(sqlstate="40P01"))
    with pytest.raises(OperationalError), transaction.atomic():
        transact(work)
    assert work.calls == 1
    assert connection.is_usable()


class Cut:
    """Has the server end the connection in which it has just written, as often as it is told."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.calls = 0

    def __call__(self, alias: str) -> str:
        self.calls += 1
        ChatConversation.objects.using(alias).create(session_key="s", updated=timezone.now())
        if self.calls <= self.times:
            ends = {"postgresql": "SELECT pg_terminate_backend(pg_backend_pid())", "mysql": "KILL CONNECTION_ID()"}
            with connections[alias].cursor() as cursor:
                cursor.execute(ends[connections[alias].vendor])
        return alias


@pytest.fixture
def server(alias: str, monkeypatch: pytest.MonkeyPatch) -> str:
    if alias == "default":
        pytest.skip("SQLite has no connection that could be lost")
    monkeypatch.setattr(router, "db_for_write", lambda *_, **__: alias)
    connections[alias].ensure_connection()
    return alias


@pytest.mark.django_db(transaction=True, databases="__all__")
def test_a_lost_connection_is_replaced(server: str) -> None:
    """The server restarted, or a proxy closed what was idle for too long: Django notices at the first statement."""
    work = Cut(times=1)
    assert transact(work) == server
    assert (work.calls, ChatConversation.objects.using(server).count()) == (2, 1)


@pytest.mark.django_db(transaction=True, databases="__all__")
def test_a_connection_that_was_lost_before_is_replaced(server: str) -> None:
    with contextlib.suppress(DatabaseError), transaction.atomic(using=server):
        Cut(times=1)(server)
    work = Cut(times=0)
    assert transact(work) == server
    assert ChatConversation.objects.using(server).count() == 1


@pytest.mark.django_db(transaction=True, databases="__all__")
def test_a_server_that_cuts_every_connection_is_left_alone(server: str) -> None:
    work = Cut(times=9)
    with pytest.raises(DatabaseError):
        transact(work)
    assert work.calls == 3
