"""The sink that keeps events in a table. Imported only where the app is installed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias

from django.db import InterfaceError, OperationalError, connections, router

from gm_chat_audit_logging.models import AuditRecord
from gm_chat_audit_logging.sink import line_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DatabaseSink"]

Job: TypeAlias = tuple[Callable[[], None], Future[None]]


class DatabaseSink:
    """Stores each event as an :class:`~gm_chat_audit_logging.models.AuditRecord`.

    Its statements run in a thread of its own with a connection of its own: it takes no connection away from turns, and
    a database that hangs keeps neither them nor the end of the process waiting.
    """

    name = "audit_database"
    required = False

    def __init__(self) -> None:
        """Nothing is opened yet."""
        self._jobs: SimpleQueue[Job | None] | None = None

    async def start(self) -> None:
        """Start the thread."""
        self._jobs = SimpleQueue()
        threading.Thread(target=_work, args=(self._jobs,), name="gm-chat-audit-database", daemon=True).start()

    async def emit(self, event: Mapping[str, Any]) -> None:
        """Insert one row. What the database raises is raised."""
        line = line_of(event)
        await self._run(lambda: _insert(AuditRecord.of(event, line)))

    async def aclose(self) -> None:
        """Close the connection and end the thread."""
        if self._jobs is not None:
            await self._run(connections.close_all)
            self._jobs.put(None)
            self._jobs = None

    async def _run(self, job: Callable[[], None]) -> None:
        if self._jobs is None:
            raise RuntimeError("the sink 'audit_database' was not started")
        done: Future[None] = Future()
        self._jobs.put((job, done))
        await asyncio.wrap_future(done)


def _work(jobs: SimpleQueue[Job | None]) -> None:
    while (item := jobs.get()) is not None:
        job, done = item
        if done.set_running_or_notify_cancel():  # else nobody waits for it any more
            try:
                job()
            except BaseException as error:  # noqa: BLE001 - whoever waits is told
                done.set_exception(error)
            else:
                done.set_result(None)


def _insert(record: AuditRecord) -> None:
    """Insert the row; once more over a new connection if the old one was lost since the last event."""
    connection = connections[router.db_for_write(AuditRecord)]
    is_new = connection.connection is None
    try:
        record.save(using=connection.alias, force_insert=True)
    except (OperationalError, InterfaceError):
        if is_new:
            raise
        connection.close()
        record.save(using=connection.alias, force_insert=True)
