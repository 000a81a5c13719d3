"""Fault L1 for every kind of cache that Django has and this machine can run."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import caches
from django.core.cache.backends.locmem import LocMemCache
from django.core.management import call_command
from django.db import connection
from django.test import override_settings

from gm_chat.defaults.cache_store import CacheRateLimitStore
from gm_chat.persistence.threads import run_db

WINDOW = 60
START = 1_000_000_020.0  # the first second of a window


LOCAL_MEMORY = "django.core.cache.backends.locmem.LocMemCache"


@pytest.fixture(params=["locmem", "file", pytest.param("db", marks=pytest.mark.django_db(transaction=True))])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    backends: dict[str, dict[str, Any]] = {
        "locmem": {"BACKEND": LOCAL_MEMORY, "LOCATION": str(tmp_path)},
        "file": {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": str(tmp_path)},
        "db": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "rate_cache"},
    }
    # A default lifetime of nothing: every write must state how long it is kept, or the count is lost at once.
    with override_settings(CACHES={"default": {**backends[request.param], "TIMEOUT": 0}}):
        if request.param == "db":
            call_command("createcachetable", verbosity=0)
        yield CacheRateLimitStore()
        if request.param == "db":
            with connection.cursor() as cursor:
                cursor.execute("DROP TABLE rate_cache")


async def add(store: CacheRateLimitStore, amount: int, now: float = START, key: str = "user:1") -> int:
    return await store.add(key, amount, window_seconds=WINDOW, now=now)


async def test_it_counts_per_key_and_window(store: CacheRateLimitStore) -> None:
    assert await store.peek("user:1", window_seconds=WINDOW, now=START) == 0
    assert [await add(store, 1), await add(store, 4), await add(store, -2)] == [1, 5, 3]
    assert await add(store, 1, key="user:2") == 1
    assert await store.peek("user:1", window_seconds=WINDOW, now=START + WINDOW - 1) == 3
    assert await add(store, 1, START + WINDOW) == 1
    assert await store.add("user:1", 1, window_seconds=2 * WINDOW, now=START) == 1


async def test_a_clock_that_steps_back_finds_the_old_window(store: CacheRateLimitStore) -> None:
    await add(store, 5)
    await add(store, 1, START + WINDOW)
    assert await add(store, 1, START + 1) == 6


async def test_nothing_falls_below_zero(store: CacheRateLimitStore) -> None:
    assert await add(store, -5) == 0
    assert await add(store, 2) == 2
    assert await add(store, -5) == 0
    assert await add(store, 3) == 3


async def test_an_evicted_key_starts_again_and_cannot_be_given_back(store: CacheRateLimitStore) -> None:
    await add(store, 5)
    await run_db(caches["default"].clear)
    assert await add(store, -5) == 0
    assert await add(store, 1) == 1


async def test_eight_at_the_last_free_place_give_one_winner(store: CacheRateLimitStore) -> None:
    limit = 10
    await add(store, limit - 1)
    counts = await asyncio.gather(*(add(store, 1) for _ in range(8)))
    assert sorted(counts) == list(range(limit, limit + 8))
    assert sum(count <= limit for count in counts) == 1


async def test_keys_may_hold_anything(store: CacheRateLimitStore) -> None:
    key = "address:" + "ü \n" * 200
    assert [await add(store, 1, key=key), await add(store, 1, key=key)] == [1, 2]


async def test_the_cache_is_never_touched_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[int] = set()
    original = LocMemCache.get

    def get(self: Any, *args: Any, **kwargs: Any) -> Any:
        threads.add(threading.get_ident())
        return original(self, *args, **kwargs)

    monkeypatch.setattr(LocMemCache, "get", get)
    with override_settings(CACHES={"default": {"BACKEND": LOCAL_MEMORY, "LOCATION": "x"}}):
        await CacheRateLimitStore().peek("k", window_seconds=1, now=0)
    assert threads
    assert threading.get_ident() not in threads


async def test_a_cache_that_keeps_nothing_is_an_error() -> None:
    with override_settings(CACHES={"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}):
        with pytest.raises(RuntimeError, match=r"'default' \(DummyCache\) does not keep"):
            await add(CacheRateLimitStore(), 1)
        assert await add(CacheRateLimitStore(), -1) == 0


async def test_an_atomic_cache_that_evicts_at_once_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocMemCache, "add", lambda *args, **kwargs: True)
    with (
        override_settings(CACHES={"default": {"BACKEND": LOCAL_MEMORY, "LOCATION": "y"}}),
        pytest.raises(RuntimeError, match="LocMemCache"),
    ):
        await add(CacheRateLimitStore(), 1)
