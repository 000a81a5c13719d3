"""What a server under test says about itself: statements, provider calls, memory, blocks of its event loop.

Everything is asked for under ``/_bench/`` of the server itself, and costs nothing while it is off.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import sqlite3
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from django.db.backends.signals import connection_created

from turnbench.provider import SLOW_FILTER, BenchProvider

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SLOW_SECONDS", "Probes"]

SLOW_SECONDS: Final = 2.0
_TRANSACTION: Final = re.compile(r"\s*(BEGIN|COMMIT|END|ROLLBACK|SAVEPOINT|RELEASE)\b", re.IGNORECASE)
_LOGIN: Final = re.compile(r'"(django_session|auth_\w+|django_content_type)"')


def kind_of(statement: str) -> str:
    """What a statement is for: transactions, the login (sessions, users, permissions), connections, or the chat."""
    if _TRANSACTION.match(statement):
        return "transaction"
    if statement.lstrip().upper().startswith("PRAGMA"):
        return "connection"
    # Only the first table counts: a page's filter may mention users too.
    found = re.search(r'(?:FROM|INTO|UPDATE)\s+("\w+")', statement)
    return "login" if found and _LOGIN.match(found[1]) else "chat"


class Blocks:
    """How long single callbacks hold the event loop: by the clock, and by the CPU time of the loop's own thread.

    A callback's wall time includes waiting for the interpreter's lock and for a processor, which other threads and
    programs decide about; its CPU time is what its own code costs.
    """

    _handles: Any = asyncio.Handle  # its _run is the loop's one door to every callback

    def __init__(self) -> None:
        """Measure nothing yet."""
        self._original: Callable[[asyncio.Handle], None] = self._handles._run
        self._task: asyncio.Task[None] | None = None
        self._worst: dict[str, dict[str, float]] = {}
        self._lags: list[float] = []
        self._collector: _Collector

    def start(self) -> None:
        """Begin anew."""
        self._worst, self._lags = {}, []
        worst, original = self._worst, self._original

        def timed(handle: Any) -> None:
            name = callback_name(handle._callback)
            cpu, wall = time.thread_time(), time.perf_counter()
            original(handle)
            wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
            known = worst.setdefault(name, {"cpu": 0.0, "wall": 0.0, "calls": 0})
            known["calls"] += 1
            known["cpu"], known["wall"] = max(known["cpu"], cpu), max(known["wall"], wall)

        self._collector = _Collector()
        self._handles._run = timed
        self._task = asyncio.create_task(self._beat())

    def stop(self) -> dict[str, Any]:
        """Give milliseconds: the worst callbacks by CPU and by wall time, a heartbeat's lag, the longest collection."""
        self._handles._run = self._original
        self._collector.close()
        if self._task is not None:
            self._task.cancel()
        lags = sorted(self._lags) or [0.0]
        report: dict[str, Any] = {
            "lag_p99": lags[int(len(lags) * 0.99)] * 1000,
            "lag_max": lags[-1] * 1000,
            "collector": self._collector.longest * 1000,
        }
        for key in ("cpu", "wall"):
            ranked = sorted(self._worst.items(), key=lambda item: -item[1][key])[:5]
            report[key] = [(name, times[key] * 1000) for name, times in ranked]
        return report

    async def _beat(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.005)
            self._lags.append(time.perf_counter() - before - 0.005)


class _Collector:
    """The longest full garbage collection in this thread, which is part of whatever callback it falls into."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._began = 0.0
        self.longest = 0.0
        gc.callbacks.append(self._told)

    def close(self) -> None:
        """Watch no longer."""
        gc.callbacks.remove(self._told)

    def _told(self, phase: str, info: dict[str, int]) -> None:
        if threading.get_ident() != self._thread or info["generation"] < 2:
            return
        now = time.thread_time()
        if phase == "start":
            self._began = now
        else:
            self.longest = max(self.longest, now - self._began)


def callback_name(callback: Any) -> str:
    """Name a callback by the coroutine that it steps, else by itself."""
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        coroutine: Any = task.get_coro()
        return str(getattr(coroutine, "__qualname__", coroutine))
    return str(getattr(callback, "__qualname__", None) or type(callback).__name__)


class Probes:
    """An ASGI application in front of the one under test."""

    def __init__(self, application: Any) -> None:
        """Watch ``application`` and every database connection from now on."""
        self._application = application
        self._connections: WeakSet[Any] = WeakSet()
        self._statements: Counter[str] = Counter()
        self._tracing = False
        self._texts: list[str] = []
        self._armed = False
        self._blocks = Blocks()
        connection_created.connect(self._watch, weak=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer ``/_bench/<command>``, pass on everything else."""
        path = scope.get("path", "")
        if not path.startswith("/_bench/"):
            await self._application(scope, receive, send)
            return
        body = json.dumps(self._command(path.removeprefix("/_bench/"))).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _command(self, name: str) -> Any:
        match name:
            case "trace-on" | "trace-off":
                self._trace(on=name == "trace-on")
                return {"statements": dict(self._statements), "texts": self._texts}
            case "calls":
                return BenchProvider.calls
            case "memory":
                return resident_bytes()
            case "blocks-on":
                return self._blocks.start()
            case "blocks-off":
                return self._blocks.stop()
            case "arm":
                self._armed = True
                return None
            case _:
                raise LookupError(f"no probe {name!r}")

    def _watch(self, connection: Any, **_: object) -> None:
        self._connections.add(connection)
        if self._perhaps_slow not in connection.execute_wrappers:  # it was opened before, and keeps its wrappers
            connection.execute_wrappers.append(self._perhaps_slow)
        if self._tracing:
            connection.connection.set_trace_callback(self._seen)

    def _perhaps_slow(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001 - Django calls it so
        """Make the one statement slow that an armed server was asked for: a tool that takes two seconds."""
        if self._armed and not many and params and f"%{SLOW_FILTER}%" in params:
            self._armed = False
            time.sleep(SLOW_SECONDS)
        return execute(sql, params, many, context)

    def _trace(self, *, on: bool) -> None:
        self._tracing = on
        if on:
            self._statements.clear()
            self._texts = []
        for connection in list(self._connections):
            # One that is closed meanwhile, or was only ever opened to be closed, has nothing to trace.
            with suppress(sqlite3.ProgrammingError, AttributeError):
                connection.connection.set_trace_callback(self._seen if on else None)

    def _seen(self, statement: str) -> None:
        self._statements[kind_of(statement)] += 1
        if len(self._texts) < 100:
            self._texts.append(statement[:300])


def resident_bytes() -> int:
    """The memory that this process holds, after a full collection."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096
