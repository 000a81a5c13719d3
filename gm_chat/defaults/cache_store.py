"""Counting in Django's cache. (Specification: "Rate limits".)

The number of the window is part of the key, so a window's end needs no clean-up and a clock that steps back finds the
old window again. Every write states how long it is kept: the file and the database cache give a counter their default
lifetime on ``incr()`` and would forget it within five minutes.

How exact the count is depends on the cache. Redis and Memcached count atomically for all processes, the local-memory
cache for all threads of one process. The file and the database cache read, then write: this module serialises that in
one process, but two processes can lose an increment to each other. Use the plugin ``ratelimit-redis`` where it matters.
"""

from __future__ import annotations

import hashlib
import threading
from typing import Final

from django.core.cache import caches
from django.core.cache.backends.base import BaseCache

from gm_chat.persistence.threads import run_db

__all__ = ["CacheRateLimitStore"]

_ATTEMPTS: Final = 5
_read_then_write: Final = threading.Lock()


class CacheRateLimitStore:
    """A rate-limit store in the Django cache of the given alias; the cache is only touched off the event loop."""

    def __init__(self, alias: str = "default") -> None:
        """Name the cache; it is opened by the thread that uses it."""
        self._alias = alias

    async def add(self, key: str, amount: int, *, window_seconds: int, now: float) -> int:
        """Add to the window's count, which never falls below zero, and return it.

        ``now`` is a ``time.time()`` value. Raises ``RuntimeError`` if the cache does not keep the counter.
        """
        return await run_db(self._add, _cache_key(key, window_seconds, now), amount, 2 * window_seconds)

    async def peek(self, key: str, *, window_seconds: int, now: float) -> int:
        """Return the window's count."""
        return await run_db(self._peek, _cache_key(key, window_seconds, now))

    def _peek(self, key: str) -> int:
        return max(0, int(caches[self._alias].get(key, 0)))

    def _add(self, key: str, amount: int, lifetime: int) -> int:
        cache = caches[self._alias]
        if type(cache).incr is BaseCache.incr:
            return self._add_in_two_steps(cache, key, amount, lifetime)
        for _ in range(_ATTEMPTS):
            if amount < 0 and cache.get(key) is None:
                return 0  # evicted in the meantime: nothing is left to give back
            cache.add(key, 0, timeout=lifetime)
            try:
                count = cache.incr(key, amount)
            except ValueError:  # evicted between the two calls
                continue
            cache.touch(key, timeout=lifetime)
            if count < 0:
                cache.incr(key, -count)
            return max(0, count)
        raise RuntimeError(f"the cache {self._alias!r} ({type(cache).__name__}) does not keep what is counted in it")

    def _add_in_two_steps(self, cache: BaseCache, key: str, amount: int, lifetime: int) -> int:
        with _read_then_write:
            count = max(0, int(cache.get(key, 0)) + amount)
            cache.set(key, count, timeout=lifetime)
            if amount > 0 and cache.get(key) is None:
                name = type(cache).__name__
                raise RuntimeError(f"the cache {self._alias!r} ({name}) does not keep what is counted in it")
            return count


def _cache_key(key: str, window_seconds: int, now: float) -> str:
    # Hashed: keys hold addresses and session keys, and Memcached takes neither blanks nor more than 250 characters.
    digest = hashlib.sha256(key.encode()).hexdigest()[:40]
    return f"gm_chat:rate:{window_seconds}:{int(now // window_seconds)}:{digest}"
