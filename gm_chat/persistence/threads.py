"""Blocking ORM work from async code: one bounded pool, connections looked after.

``sync_to_async`` in its default mode serialises a process's ORM work in one thread: five sockets whose turns each
need 0.4 s of database take 2 s. Here up to :data:`POOL_SIZE` threads work side by side, each with connections of its
own. What ``CONN_MAX_AGE`` says is kept to, with 0, Django's default, read as "until the thread has nothing to do":
a turn hops to the database several times in a row, and opening a connection costs more than using it (measured on
SQLite in WAL mode: 7 ms of a hop's 8; closing the last one writes the log back).
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import Error, connections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["POOL_SIZE", "OwnThread", "inline_database", "run_db", "run_db_apart"]

P = ParamSpec("P")
T = TypeVar("T")

POOL_SIZE: Final = 8
IDLE_SECONDS: Final = 0.5
QUICK_SECONDS: Final = 0.005
_inline = False


async def run_db(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking function that may use the ORM, and return its result. Context variables are carried over."""
    return await _run(_pool, functools.partial(function, *args, **kwargs))


async def run_db_apart(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """The same in a thread that nothing else uses: for quick work that must not wait until slow work is done."""
    return await _run(_pool_apart, functools.partial(function, *args, **kwargs))


class OwnThread:
    """A thread for foreign code that may use the ORM and may block for good: it takes none of the turns' threads."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._pool = _Pool(1)

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """The same in this thread, one function after another. What nobody waits for any more is left out."""
        return await _run(self._pool, functools.partial(function, *args, **kwargs))


async def _run(pool: _Pool, job: Callable[[], T]) -> T:
    if _inline:
        return await sync_to_async(job, thread_sensitive=True)()
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()
    pool.submit(_Job(functools.partial(contextvars.copy_context().run, job), answer, loop))
    return await answer


@contextmanager
def inline_database() -> Iterator[None]:
    """Run the work in the caller's thread, so that it sees a test's open transaction. For tests."""
    global _inline  # noqa: PLW0603 - a switch for the whole process, turned by tests only
    before, _inline = _inline, True
    try:
        yield
    finally:
        _inline = before


class _Job(NamedTuple):
    """Work for a thread, and the future of the event loop that waits for it.

    ``asyncio.wrap_future`` would do the same by way of a second future and three more callbacks.
    """

    work: Callable[[], Any]
    answer: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop

    def run(self) -> tuple[Any, BaseException | None]:
        """Work, unless nobody waits for it any more, and return what came of it: a result or a failure."""
        if self.answer.cancelled():
            return None, None
        try:
            _tend_connections()
            return self.work(), None
        except StopIteration as error:  # no future takes it, and who waits would wait for ever
            failure = RuntimeError("the work raised StopIteration")
            failure.__cause__ = error
            return None, failure
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to who waits for the job
            return None, error

    def tell(self, result: Any, failure: BaseException | None) -> None:
        """Pass on what came of it, unless the loop is gone meanwhile."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._settle, result, failure)

    def _settle(self, result: Any, failure: BaseException | None) -> None:
        if self.answer.done():  # cancelled meanwhile
            return
        if failure is None:
            self.answer.set_result(result)
        else:
            self.answer.set_exception(failure)


class _Pool:
    """Daemon threads, started as they are needed, that close their connections when they are idle.

    Quick jobs follow each other in as few threads as can be: threads that all have something to do pass the
    interpreter's lock to each other at every statement (measured with 8 clients: 150 switches and 3 ms of processor
    time per turn, with one thread 35). So a job is taken only when each of those that run has taken longer than
    :data:`QUICK_SECONDS`: slow ones, such as a report's query, hold up nobody.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._jobs: deque[_Job] = deque()
        self._changed = threading.Condition(threading.Lock())
        self._threads = 0
        self._free = 0  # threads without a job, those included that are about to look for one
        self._is_watched = False  # an idle thread looks again when the running jobs have proved slow
        self._running: dict[int, float] = {}  # by thread, since when

    def submit(self, job: _Job) -> None:
        with self._changed:
            self._jobs.append(job)
            self._call_somebody()

    def _call_somebody(self) -> None:
        """See to it that a waiting job is taken in time: by an idle thread, or by a new one."""
        if not self._jobs or (self._is_watched and self._seconds_to_wait()):
            return
        if self._free:
            self._changed.notify()
        elif self._threads < self._size:
            self._threads += 1
            self._free += 1
            threading.Thread(target=self._work, name=f"gm-chat-db-{self._threads}", daemon=True).start()

    def _work(self) -> None:
        me = threading.get_ident()
        while True:
            job = self._next(me)
            outcome = job.run()
            with self._changed:
                del self._running[me]
                self._free += 1  # first, so that the next hop of the same turn calls no other thread
            job.tell(*outcome)

    def _next(self, me: int) -> _Job:
        idle_since = time.monotonic()
        while True:
            with self._changed:
                if self._jobs and not (seconds := self._seconds_to_wait()):
                    self._running[me] = time.monotonic()
                    self._free -= 1
                    job = self._jobs.popleft()
                    self._call_somebody()
                    return job
                idle = time.monotonic() - idle_since
                if self._jobs or idle < IDLE_SECONDS:
                    self._wait(seconds if self._jobs else IDLE_SECONDS - idle)
                    continue
            with suppress(Exception):  # whatever a driver raises, nobody would start this thread again
                _tend_connections(idle=True)
            with self._changed:
                if not self._jobs:
                    self._wait(None)
            idle_since = time.monotonic()

    def _wait(self, seconds: float | None) -> None:
        watches = bool(self._jobs) and not self._is_watched
        self._is_watched |= watches
        self._changed.wait(seconds)
        self._is_watched &= not watches

    def _seconds_to_wait(self) -> float:
        """How long until another job may be taken, if none of the running ones ends before."""
        return max(0.0, max(self._running.values(), default=0.0) + QUICK_SECONDS - time.monotonic())


def _tend_connections(*, idle: bool = False) -> None:
    """Close this thread's connections that are broken, too old, or idle and not meant to be kept."""
    for connection in connections.all(initialized_only=True):
        if connection.settings_dict["CONN_MAX_AGE"] != 0:
            connection.close_if_unusable_or_obsolete()
        elif idle or connection.errors_occurred or connection.autocommit != connection.settings_dict["AUTOCOMMIT"]:
            with suppress(Error):  # a server that is gone is closed for good
                connection.close()


_pool: Final = _Pool(POOL_SIZE)
_pool_apart: Final = _Pool(1)
