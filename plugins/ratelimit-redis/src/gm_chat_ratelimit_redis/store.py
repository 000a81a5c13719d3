"""The store: each question is one script on the server, sent from a few threads of its own.

The client is redis-py's synchronous one. It belongs to no event loop, so that ASGI, where a process has one, and WSGI,
where each turn has its own, share its connections; and a server that hangs holds nobody but who asks it.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as LostConnectionError
from redis.exceptions import ReadOnlyError
from redis.retry import Retry

from gm_chat.plugin import Charge, Standing, Tally
from gm_chat_ratelimit_redis.script import SCRIPT, SLICES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["RedisRateLimitStore"]

_THREADS: Final = 4
_MICROSECONDS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class _Line:
    """The way to the server, for one process."""

    pid: int
    threads: ThreadPoolExecutor
    script: Callable[..., Any]


class RedisRateLimitStore:
    """Counts in Redis 5 or newer, or in what speaks its protocol and runs its scripts, as Valkey does.

    A connection that turns out to be lost, or to lead to a replica, is made anew once; then the question fails. One
    that was answered with the connection's loss may have been counted: then it counts twice, never not at all.
    """

    def __init__(self, url: str, *, prefix: str = "gm_chat", timeout_seconds: float = 1.0) -> None:
        """Nothing is opened before the first question. ``timeout_seconds`` bound connecting, and each answer."""
        self._url = url
        self._prefix = prefix
        self._timeout_seconds = timeout_seconds
        self._lock = threading.Lock()
        self._line: _Line | None = None

    async def take(self, charges: Sequence[Charge], *, window_seconds: int) -> Tally:
        """Take all or none, atomically."""
        return await self._ask("take", charges, window_seconds, 0.0)

    async def correct(self, charges: Sequence[Charge], *, window_seconds: int, at: float) -> Tally:
        """Add to the slice of time in which the charges were taken, as long as it counts."""
        return await self._ask("correct", charges, window_seconds, at)

    async def _ask(self, what: str, charges: Sequence[Charge], window_seconds: int, at: float) -> Tally:
        width = math.ceil(window_seconds * _MICROSECONDS / SLICES)
        # In braces: where keys are spread over servers, all of ours lie on one, as a script needs.
        keys = [f"{self._prefix}:{{rate}}:{window_seconds}:{item.key}" for item in charges]
        arguments = [what, width, f"{at:.0f}", *(part for item in charges for part in (item.amount, item.limit))]
        line = self._opened()
        work = partial(line.script, keys=keys, args=arguments)
        granted, slice_, *numbers = await asyncio.get_running_loop().run_in_executor(line.threads, work)
        standings = (
            Standing(int(used), max(0, int(wait)) / _MICROSECONDS)
            for used, wait in zip(numbers[::2], numbers[1::2], strict=True)
        )
        return Tally(bool(granted), tuple(standings), float(slice_))

    def _opened(self) -> _Line:
        """The line of this process: one that was forked has to make its own."""
        line = self._line
        if line is None or line.pid != os.getpid():
            with self._lock:
                line = self._line
                if line is None or line.pid != os.getpid():
                    line = self._line = self._open()
        return line

    def _open(self) -> _Line:
        client = redis.Redis.from_url(
            self._url,
            socket_timeout=self._timeout_seconds,
            socket_connect_timeout=self._timeout_seconds,
            retry=Retry(NoBackoff(), 1, supported_errors=(LostConnectionError,)),
            retry_on_error=[LostConnectionError, ReadOnlyError],
            max_connections=_THREADS,
        )
        return _Line(os.getpid(), ThreadPoolExecutor(_THREADS, "gm-chat-redis"), client.register_script(SCRIPT))
