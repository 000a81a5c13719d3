"""One deadline over all statements of a tool call, kept by the database itself.

* SQLite: a progress handler, asked every 1,000 virtual-machine operations, also while rows are fetched.
* PostgreSQL: a savepoint, read-only for reads, with a local ``statement_timeout`` of the time that is left.
* MariaDB and MySQL: the session's ``max_statement_time`` or ``max_execution_time``, restored afterwards.
* Others: checked between statements.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from django.db import OperationalError, connections, transaction

from gm_chat.plugin import ToolError

__all__ = ["guard"]

_SQLITE_OPERATIONS: Final = 1_000


@contextmanager
def guard(alias: str, deadline: float | None, *, read_only: bool = True) -> Iterator[None]:
    """Let the statements of the block run until ``deadline`` (``time.monotonic()``); ``None`` guards nothing.

    Raises ``ToolError("timeout")``. The block must fetch what it reads: an open cursor escapes the guard.
    """
    if deadline is None:
        with _readable():
            yield
        return
    bound = _Bound(connections[alias], deadline, read_only)
    try:
        with _readable(), _ARM.get(bound.connection.vendor, _between)(bound) as rearm:

            def bounded(execute: Callable[..., Any], sql: str, params: Any, *rest: Any) -> Any:
                left = _left(deadline)
                if rearm is not None:
                    rearm(left)
                return execute(sql, params, *rest)

            with bound.connection.execute_wrapper(bounded):
                yield
    except OperationalError as error:
        if not _is_timeout(error) and time.monotonic() < deadline:
            raise
        raise _timeout() from error


@contextmanager
def _readable() -> Iterator[None]:
    """Tell the model what SQLite says of conditions in conditions in conditions."""
    try:
        yield
    except OperationalError as error:
        if "parser stack overflow" not in str(error):
            raise
        raise ToolError("too_large", "the filters are nested too deeply for the database; ask in two steps") from error


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
    database.set_progress_handler(lambda: time.monotonic() > deadline, _SQLITE_OPERATIONS)
    try:
        yield None
    finally:
        database.set_progress_handler(None, 0)


@contextmanager
def _postgresql(bound: _Bound) -> Iterator[Rearm | None]:
    connection = bound.connection
    nested = connection.in_atomic_block
    with transaction.atomic(using=connection.alias):

        def run(sql: str, *params: str) -> Any:  # past Django's cursor: wrappers and query logs never see it
            with connection.connection.cursor() as cursor:
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
    variable = "max_statement_time" if is_mariadb else "max_execution_time"

    def run(sql: str, *params: Any) -> Any:
        with connection.connection.cursor() as cursor:
            cursor.execute(sql, params)
            return cursor.fetchone()

    def rearm(left: float) -> None:
        run(f"SET SESSION {variable} = %s", max(left, 0.001) if is_mariadb else int(_milliseconds(left)))

    (before,) = run(f"SELECT @@SESSION.{variable}")
    try:
        yield rearm
    finally:
        run(f"SET SESSION {variable} = %s", before)


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
