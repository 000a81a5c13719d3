"""Counting in Django's cache. (Specification: "Rate limits".)

Windows are fixed: the number of the window is part of the key, so a window's end needs no clean-up, and a clock that
steps back finds the old window again. Every write states how long it is kept: the file and the database cache give a
counter their default lifetime on ``incr()`` and would forget it within five minutes.

How exact the count is depends on the cache. Redis and Memcached count atomically for all processes, the local-memory
cache for all threads of one process. The file and the database cache read, then write: this module serialises that in
one process, but two processes can lose an increment to each other. ``manage.py check`` names the caches that cannot
count; the stores ``database`` and ``redis`` need no cache.

A charge is one increment, undone if it was too late. So the budgets of one request are not charged as one: for as long
as it takes to undo, what is full may look fuller. Nobody is let through for that.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.memcached import BaseMemcachedCache
from django.core.cache.backends.redis import RedisCache

from gm_chat.persistence.threads import run_db
from gm_chat.plugin import Charge, Standing, Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["CacheRateLimitStore"]

_ATTEMPTS: Final = 5
_KEEP_LIFETIME: Final = (LocMemCache, BaseMemcachedCache, RedisCache)
"""Caches whose ``incr()`` leaves alone how long a key is kept."""

_read_then_write: Final = threading.Lock()


class CacheRateLimitStore:
    """A rate-limit store in the Django cache of the given alias.

    A cache that may wait for something is only touched off the event loop. Each thread has one of its own: Django's
    are made anew for each request, and so are their connections.
    """

    def __init__(self, alias: str = "default", *, clock: Callable[[], float] = time.time) -> None:
        """Name the cache; it is opened by the thread that uses it. ``clock`` numbers the windows."""
        self._alias = alias
        self._clock = clock
        self._opened = threading.local()

    async def take(self, charges: Sequence[Charge], *, window_seconds: int) -> Tally:
        """Take all or none. Raises ``RuntimeError`` if the cache does not keep its counters."""
        return await self._run(partial(self._take, charges, window_seconds))

    async def correct(self, charges: Sequence[Charge], *, window_seconds: int, at: float) -> Tally:
        """Add to the window of ``at``. What was evicted meanwhile has nothing to give back."""
        return await self._run(partial(self._correct, charges, window_seconds, at))

    async def _run(self, work: Callable[[], Tally]) -> Tally:
        backend = caches.settings.get(self._alias, {}).get("BACKEND", "")
        if backend == f"{LocMemCache.__module__}.{LocMemCache.__name__}":
            return work()  # it is there at once; the way to a thread takes ten times as long
        return await run_db(work)

    def _take(self, charges: Sequence[Charge], seconds: int) -> Tally:
        counter = self._counter(self._clock(), seconds)
        asked = [item for item in charges if not item.amount]
        used = counter.read(asked)
        granted = all(used[item.key] < item.limit for item in asked)
        taken: list[Charge] = []
        for item in charges:
            if granted and item.amount:
                used[item.key] = counter.add(item.key, item.amount)
                taken.append(item)
                granted = used[item.key] - item.amount < item.limit
        if not granted:
            for item in taken:
                counter.add(item.key, -item.amount)
            used = counter.read(charges)
        return counter.tally(charges, used, granted=granted)

    def _correct(self, charges: Sequence[Charge], seconds: int, at: float) -> Tally:
        then, now = self._counter(at, seconds), self._counter(self._clock(), seconds)
        used = {item.key: then.add(item.key, item.amount) for item in charges}
        return now.tally(charges, used if now.window == then.window else now.read(charges), granted=True)

    def _counter(self, now: float, seconds: int) -> _Counter:
        cache: BaseCache | None = getattr(self._opened, "cache", None)
        if cache is None:
            cache = self._opened.cache = caches.create_connection(self._alias)
        return _Counter(cache, self._alias, now, seconds)


class _Counter:
    """What is counted in one window."""

    def __init__(self, cache: BaseCache, alias: str, now: float, seconds: int) -> None:
        self.window: Final = int(now // seconds)
        self._cache = cache
        self._alias = alias
        self._now = now
        self._seconds = seconds

    def tally(self, charges: Sequence[Charge], used: dict[str, int], *, granted: bool) -> Tally:
        left = (self.window + 1) * self._seconds - self._now
        standings = (Standing(used[item.key], left if used[item.key] else 0.0) for item in charges)
        return Tally(granted, tuple(standings), self._now)

    def read(self, charges: Sequence[Charge]) -> dict[str, int]:
        if not charges:
            return {}
        found = self._cache.get_many([self._name(item.key) for item in charges])
        return {item.key: max(0, int(found.get(self._name(item.key), 0))) for item in charges}

    def add(self, key: str, amount: int) -> int:
        """Add to a count, which never falls below zero, and return it."""
        name, cache, lifetime = self._name(key), self._cache, 2 * self._seconds
        if type(cache).incr is BaseCache.incr:
            return self._add_in_two_steps(name, amount, lifetime)
        for _ in range(_ATTEMPTS):
            try:
                count = cache.incr(name, amount)
            except ValueError:  # not counted yet in this window, or evicted
                if amount < 0:
                    return 0  # nothing is left to give back
                if not cache.add(name, amount, timeout=lifetime):
                    continue  # somebody else began
                if cache.get(name) is None:
                    break
                return amount
            if not isinstance(cache, _KEEP_LIFETIME):
                cache.touch(name, timeout=lifetime)
            if count < 0:
                cache.incr(name, -count)
            return max(0, count)
        raise self._is_forgetful()

    def _add_in_two_steps(self, name: str, amount: int, lifetime: int) -> int:
        with _read_then_write:
            count = max(0, int(self._cache.get(name, 0)) + amount)
            self._cache.set(name, count, timeout=lifetime)
            if amount > 0 and self._cache.get(name) is None:
                raise self._is_forgetful()
            return count

    def _is_forgetful(self) -> RuntimeError:
        kind = type(self._cache).__name__
        return RuntimeError(f"the cache {self._alias!r} ({kind}) does not keep what is counted in it")

    def _name(self, key: str) -> str:
        return f"gm_chat:rate:{self._seconds}:{self.window}:{key}"
