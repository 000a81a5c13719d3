"""A deadline over all statements that a schema's resolvers run, on whatever database, in the thread that executes it.

No statement starts after the deadline. One that runs then is stopped by a watchdog: resolvers may hold cursors open
(``.iterator()``) that a limit set beforehand would not reach. What runs no statement is not stopped.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from django.db import OperationalError, connections

from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["watched"]

_AGAIN_SECONDS = 0.05
logger = logging.getLogger(__name__)


def _timeout() -> ToolError:
    return ToolError("timeout", "the query took too long; narrow the filters, or ask for fewer rows or relations")


@contextmanager
def watched(deadline: float | None) -> Iterator[None]:
    """Let the block run until ``deadline`` (``time.monotonic()``), then end it with ``ToolError("timeout")``.

    The block may swallow what its statements raise, as GraphQL does: it is over time all the same.
    """
    if deadline is None:
        yield
        return
    watch = _Watch(deadline)

    def bounded(execute: Callable[..., Any], sql: str, params: Any, *rest: Any) -> Any:
        if time.monotonic() >= deadline:
            watch.has_stopped = True
            raise OperationalError("the deadline of the chat's tool call is over")
        return execute(sql, params, *rest)

    with ExitStack() as stack:
        for connection in watch.connections:
            stack.enter_context(connection.execute_wrapper(bounded))
        stack.callback(watch.end)
        watch.start()
        try:
            yield
        except Exception as error:
            if watch.has_stopped:
                raise _timeout() from error
            raise
        if watch.has_stopped:
            raise _timeout()


class _Watch:
    """A timer that stops what the thread's connections are doing, again and again until the block is left."""

    def __init__(self, deadline: float) -> None:
        self.connections: list[Any] = list(connections.all())  # of this thread; each connects when it is used
        self.has_stopped = False
        self._deadline = deadline
        self._lock = threading.Lock()  # nothing is stopped once the block is left
        self._over = False
        self._timer: threading.Timer | None = None

    def start(self) -> None:
        self._arm(max(0.0, self._deadline - time.monotonic()))

    def end(self) -> None:
        with self._lock:
            self._over = True
        if self._timer is not None:
            self._timer.cancel()
        if self.has_stopped:
            for connection in self.connections:  # a cancellation that is still under way must not hit what comes next
                if not connection.in_atomic_block:
                    connection.close()

    def _arm(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._fire)
        self._timer.daemon = True
        self._timer.start()

    def _fire(self) -> None:
        with self._lock:
            if self._over:
                return
            self.has_stopped = True
            for connection in self.connections:
                if connection.connection is not None:
                    try:
                        _stop(connection)
                    except Exception:  # whatever a driver raises, the others must be stopped too
                        logger.exception("a statement on %r could not be stopped", connection.alias)
            self._arm(_AGAIN_SECONDS)


def _stop(connection: Any) -> None:
    """Stop the statement that another thread runs on a connection, if it runs one."""
    database = connection.connection
    if connection.vendor == "sqlite":
        database.interrupt()
    elif connection.vendor == "postgresql":
        getattr(database, "cancel_safe", database.cancel)()
    elif connection.vendor == "mysql":
        other = connection.copy()
        try:
            with other.cursor() as cursor:
                cursor.execute("KILL QUERY %s", [database.thread_id()])
        finally:
            other.close()
