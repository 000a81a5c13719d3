"""One deadline over all statements of a tool call, kept by the database itself.

* SQLite: a progress handler, asked every 1,000 virtual-machine operations, also while rows are fetched.
* PostgreSQL: a savepoint with a local ``statement_timeout`` of the time that is left.
* MariaDB and MySQL: the session's ``max_statement_time`` or ``max_execution_time``, restored afterwards; rows are taken
  from the server in batches, since the drivers would make objects of all of them before they return.

On every database the clock is looked at before each statement, before each batch of rows that is fetched, and wherever
Python works on what was fetched. While reads are guarded nothing can be written: SQLite is told ``query_only``, others
``READ ONLY`` (MariaDB heeds that from the next transaction on).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from django.db import DatabaseError, DataError, OperationalError, connections, transaction

from gm_chat.plugin import ToolError

__all__ = ["Check", "guard", "unbounded"]

Check = Callable[[], None]
"""Raises ``ToolError("timeout")`` when the deadline is over."""

_SQLITE_OPERATIONS: Final = 1_000
_BATCH: Final = 1_000
"""Rows that a driver of MariaDB makes objects of between two looks at the clock."""


@contextmanager
def guard(alias: str, deadline: float | None, *, read_only: bool = True) -> Iterator[Check]:
    """Let the statements of the block run until ``deadline`` (``time.monotonic()``); ``None`` guards nothing.

    Gives what the block is to call wherever it works for long without the database. Raises ``ToolError("timeout")``.
    The block must fetch what it reads: an open cursor escapes the guard.
    """
    if deadline is None:
        with _readable():
            yield unbounded
        return

    def check() -> None:
        _left(deadline)

    bound = _Bound(connections[alias], deadline, read_only)
    try:
        with _readable(), _ARM.get(bound.connection.vendor, _between)(bound) as rearm:
            run = _execute_in_batches if read_only and bound.connection.vendor == "mysql" else _execute

            def bounded(execute: Callable[..., Any], sql: str, params: Any, many: Any, context: Any) -> Any:
                left = _left(deadline)
                if rearm is not None:
                    rearm(left)
                return run(execute, sql, params, many, context, check)

            with bound.connection.execute_wrapper(bounded):
                yield check
    except OperationalError as error:
        if not _is_timeout(error) and time.monotonic() < deadline:
            raise
        raise _timeout() from error


@contextmanager
def _readable() -> Iterator[None]:
    """Tell the model what it can do about limits of the database."""
    try:
        yield
    except DatabaseError as error:
        if "parser stack overflow" in str(error):  # SQLite's
            problem = "the filters are nested too deeply for the database; ask in two steps"
        elif isinstance(error, DataError) or "integer overflow" in str(error) or error.args[:1] == (1690,):
            problem = "a number or a date is beyond what the database can compute with; compute with smaller ones"
        else:
            raise
        raise ToolError("too_large", problem) from error


def unbounded() -> None:
    """The check where there is no deadline."""


def _execute(execute: Callable[..., Any], sql: str, params: Any, many: Any, context: Any, check: Check) -> Any:
    """Run a statement whose rows are looked at as they are fetched."""
    result = execute(sql, params, many, context)
    wrapper = context["cursor"]
    if not isinstance(wrapper.cursor, _Fetching):
        wrapper.cursor = _Fetching(wrapper.cursor, check)
    return result


class _Fetching:
    """A cursor that looks at the clock before each batch: drivers make rows of what the server has long sent."""

    def __init__(self, cursor: Any, check: Check) -> None:
        self._cursor = cursor
        self._check = check

    def fetchmany(self, *size: int) -> Any:
        self._check()
        return self._cursor.fetchmany(*size)

    def __iter__(self) -> Iterator[Any]:
        for row in self._cursor:
            self._check()
            yield row

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


def _execute_in_batches(
    execute: Callable[..., Any], sql: str, params: Any, many: Any, context: Any, check: Check
) -> Any:
    """Fetch all rows of a statement, as the drivers of MariaDB and MySQL do by themselves, but look at the clock.

    What is left of a result when time is over must be read to its end, or goes with the connection. Django opens
    another one as soon as it is asked for something; within a transaction of the caller's the rest is read.
    """
    wrapper, connection = context["cursor"], context["connection"]
    wrapper.cursor.close()
    cursor = wrapper.cursor = connection.create_cursor()
    cursor.cursor = connection.connection.cursor(connection.Database.cursors.SSCursor)
    result = execute(sql, params, many, context)
    rows: list[Any] = []
    try:
        with connection.wrap_database_errors:
            while batch := cursor.fetchmany(_BATCH):
                rows += batch
                check()
    except BaseException as error:
        wrapper.cursor = _Fetched([], None)  # Django closes it: with the other one it would read the rest
        if isinstance(error, DatabaseError):
            pass  # the server's; the result ends with it
        elif connection.in_atomic_block:
            with suppress(connection.Database.Error):
                cursor.close()
        else:
            rest: Any = getattr(cursor.cursor, "_result", None)
            if hasattr(rest, "unbuffered_active"):
                rest.unbuffered_active = False  # else PyMySQL wants to read it when it collects the cursor
            connection.close()
        raise
    wrapper.cursor = _Fetched(rows, cursor)
    return result


class _Fetched:
    """A cursor whose rows are here already."""

    def __init__(self, rows: list[Any], cursor: Any) -> None:
        self._rows = iter(rows)
        self._cursor = cursor

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchmany(self, size: int = 1) -> Any:
        return tuple(islice(self._rows, size))

    def fetchall(self) -> Any:
        return tuple(self._rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows

    def close(self) -> None:
        if self._cursor is not None:
            self._cursor.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise _timeout()
    return left


def _timeout() -> ToolError:
    return ToolError("timeout", "the query took too long; narrow the filters, or ask for fewer rows or relations")


@dataclass(frozen=True, slots=True)
class _Bound:
    connection: Any
    deadline: float
    read_only: bool


Rearm = Callable[[float], None]
"""Told before each statement how many seconds are left."""


@contextmanager
def _between(_: _Bound) -> Iterator[Rearm | None]:
    yield None


@contextmanager
def _sqlite(bound: _Bound) -> Iterator[Rearm | None]:
    bound.connection.ensure_connection()
    database, deadline = bound.connection.connection, bound.deadline
    (before,) = database.execute("PRAGMA query_only").fetchone()
    database.execute(f"PRAGMA query_only = {int(before or bound.read_only)}")
    database.set_progress_handler(lambda: time.monotonic() > deadline, _SQLITE_OPERATIONS)
    try:
        yield None
    finally:
        database.set_progress_handler(None, 0)
        database.execute(f"PRAGMA query_only = {int(before)}")


@contextmanager
def _postgresql(bound: _Bound) -> Iterator[Rearm | None]:
    connection = bound.connection
    nested = connection.in_atomic_block
    with transaction.atomic(using=connection.alias):

        def run(sql: str, *params: str) -> Any:  # past Django's cursor: wrappers and query logs never see it
            with connection.wrap_database_errors, connection.connection.cursor() as cursor:
                cursor.execute(sql, params)
                return cursor.fetchone()

        def rearm(left: float) -> None:
            run("SELECT set_config('statement_timeout', %s, true)", _milliseconds(left))

        (before,) = run("SELECT current_setting('statement_timeout')")
        if bound.read_only:  # ends with the savepoint
            run("SELECT set_config('transaction_read_only', 'on', true)")
        yield rearm
        if nested:  # a released savepoint leaves its settings to the transaction, a rolled back one does not
            run("SELECT set_config('statement_timeout', %s, true)", before)


@contextmanager
def _mysql(bound: _Bound) -> Iterator[Rearm | None]:
    connection = bound.connection
    connection.ensure_connection()
    is_mariadb = connection.mysql_is_mariadb
    limit, access = (
        ("max_statement_time", "tx_read_only") if is_mariadb else ("max_execution_time", "transaction_read_only")
    )

    def run(sql: str, *params: Any) -> Any:
        with connection.wrap_database_errors, connection.connection.cursor() as cursor:
            cursor.execute(sql, params)
            return cursor.fetchone()

    def limited(left: Any, read_only: Any) -> None:
        run(f"SET SESSION {limit} = %s, SESSION {access} = %s", left, read_only)

    def rearm(left: float) -> None:
        limited(max(left, 0.001) if is_mariadb else int(_milliseconds(left)), read_only)

    before = run(f"SELECT @@SESSION.{limit}, @@SESSION.{access}")
    read_only = int(before[1] or bound.read_only)
    try:
        yield rearm
    finally:
        try:
            if connection.connection is not None:
                limited(*before)
        except DatabaseError:  # it is lost, and nobody shall go on with its limits
            connection.close()


_ARM: Final[dict[str, Callable[[_Bound], AbstractContextManager[Rearm | None]]]] = {
    "sqlite": _sqlite,
    "postgresql": _postgresql,
    "mysql": _mysql,
}


def _milliseconds(seconds: float) -> str:
    return str(max(1, int(seconds * 1000)))  # 0 would mean "no limit"


def _is_timeout(error: OperationalError) -> bool:
    """Whether the database says that it stopped the statement because of its time limit."""
    cause = error.__cause__
    if getattr(cause, "sqlstate", getattr(cause, "pgcode", None)) == "57014":
        return True
    return bool(error.args) and error.args[0] in (1969, 3024)
