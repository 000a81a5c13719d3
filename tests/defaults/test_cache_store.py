"""Fault L1 for every kind of cache that Django has and this machine can run."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.core.cache import caches
from django.core.cache.backends.db import DatabaseCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.management import call_command
from django.db import connection
from django.test import override_settings

from gm_chat.defaults.cache_store import CacheRateLimitStore
from gm_chat.persistence.threads import run_db
from gm_chat.plugin import Charge, Tally

if TYPE_CHECKING:
    from pathlib import Path

WINDOW = 60
START = 1_000_000_020.0  # the first second of a window
LOCAL_MEMORY = "django.core.cache.backends.locmem.LocMemCache"


class Clock:
    now = START

    def __call__(self) -> float:
        return self.now


class Counting:
    """A store and its clock, for one budget at a time."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = CacheRateLimitStore(clock=self.clock)

    async def take(self, amount: int, *, limit: int = 100, key: str = "user:1", window: int = WINDOW) -> Tally:
        return await self.store.take([Charge(key, amount, limit)], window_seconds=window)

    async def used(self, amount: int, **options: Any) -> int:
        return (await self.take(amount, **options)).standings[0].used

    async def correct(self, amount: int, at: float = START) -> int:
        tally = await self.store.correct([Charge("user:1", amount, 100)], window_seconds=WINDOW, at=at)
        return tally.standings[0].used


@pytest.fixture(params=["locmem", "file", pytest.param("db", marks=pytest.mark.django_db(transaction=True))])
def counting(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    backends: dict[str, dict[str, Any]] = {
        "locmem": {"BACKEND": LOCAL_MEMORY, "LOCATION": str(tmp_path)},
        "file": {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": str(tmp_path)},
        "db": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "rate_cache"},
    }
    # A default lifetime of nothing: every write must state how long it is kept, or the count is lost at once.
    with override_settings(CACHES={"default": {**backends[request.param], "TIMEOUT": 0}}):
        if request.param == "db":
            call_command("createcachetable", verbosity=0)
        yield Counting()
        if request.param == "db":
            with connection.cursor() as cursor:
                cursor.execute("DROP TABLE rate_cache")


async def test_it_counts_per_key_and_window(counting: Counting) -> None:
    assert [await counting.used(0), await counting.used(1), await counting.used(4)] == [0, 1, 5]
    assert await counting.correct(-2) == 3
    assert await counting.used(1, key="user:2") == 1
    assert await counting.used(1, window=2 * WINDOW) == 1
    counting.clock.now += WINDOW - 1
    assert await counting.used(0) == 3
    counting.clock.now += 1
    assert await counting.used(1) == 1


async def test_what_is_left_of_the_window_is_the_wait(counting: Counting) -> None:
    counting.clock.now += 20
    first, second = await counting.take(1, limit=1), await counting.take(1, limit=1)
    assert (first.granted, second.granted) == (True, False)
    assert first.standings == second.standings
    assert second.standings[0].wait_seconds == pytest.approx(WINDOW - 20)


async def test_a_clock_that_steps_back_finds_the_old_window(counting: Counting) -> None:
    await counting.take(5)
    counting.clock.now += WINDOW
    await counting.take(1)
    counting.clock.now = START + 1
    assert await counting.used(1) == 6


async def test_a_correction_belongs_to_the_window_of_its_charge(counting: Counting) -> None:
    at = (await counting.take(50)).at
    counting.clock.now += WINDOW
    await counting.take(5)
    assert await counting.correct(-50, at) == 5
    counting.clock.now = START
    assert await counting.used(0) == 0


async def test_nothing_falls_below_zero(counting: Counting) -> None:
    assert await counting.correct(-5) == 0
    assert await counting.used(2) == 2
    assert await counting.correct(-5) == 0
    assert await counting.used(3) == 3


async def test_an_evicted_key_starts_again_and_cannot_be_given_back(counting: Counting) -> None:
    await counting.take(5)
    await run_db(caches["default"].clear)
    assert await counting.correct(-5) == 0
    assert await counting.used(1) == 1


async def test_eight_at_the_last_free_place_give_one_winner(counting: Counting) -> None:
    limit = 10
    await counting.take(limit - 1, limit=limit)
    tallies = await asyncio.gather(*(counting.take(1, limit=limit) for _ in range(8)))
    assert sum(tally.granted for tally in tallies) == 1
    assert await counting.used(0) == limit


async def test_a_full_budget_gives_back_what_the_others_were_charged(counting: Counting) -> None:
    await counting.take(1, limit=1, key="full")
    charges = [Charge("free", 7, 100), Charge("full", 1, 1), Charge("later", 7, 100)]
    refused = await counting.store.take(charges, window_seconds=WINDOW)
    assert (refused.granted, [standing.used for standing in refused.standings]) == (False, [0, 1, 0])


async def test_a_cache_that_may_wait_is_never_touched_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[int] = set()

    def get_many(*_: Any, **__: Any) -> dict[str, Any]:
        threads.add(threading.get_ident())
        return {}

    monkeypatch.setattr(DatabaseCache, "get_many", get_many)
    with override_settings(CACHES={"default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache"}}):
        assert await Counting().used(0) == 0
    assert threads
    assert threading.get_ident() not in threads


async def test_local_memory_needs_no_thread() -> None:
    before = threading.active_count()
    with override_settings(CACHES={"default": {"BACKEND": LOCAL_MEMORY, "LOCATION": "near"}}):
        assert await Counting().used(1) == 1
    assert threading.active_count() == before


async def test_another_cache_than_the_default_one() -> None:
    there = {"BACKEND": LOCAL_MEMORY, "LOCATION": "there"}
    with override_settings(CACHES={"default": {"BACKEND": LOCAL_MEMORY, "LOCATION": "here"}, "limits": there}):
        store = CacheRateLimitStore("limits", clock=Clock())
        await store.take([Charge("user:1", 3, 10)], window_seconds=WINDOW)
        assert caches["default"].get(f"gm_chat:rate:60:{int(START // 60)}:user:1") is None
        assert caches["limits"].get(f"gm_chat:rate:60:{int(START // 60)}:user:1") == 3


async def test_a_cache_that_keeps_nothing_is_an_error() -> None:
    with override_settings(CACHES={"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}):
        with pytest.raises(RuntimeError, match=r"'default' \(DummyCache\) does not keep"):
            await Counting().take(1)
        assert await Counting().correct(-1) == 0


async def test_an_atomic_cache_that_evicts_at_once_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocMemCache, "add", lambda *args, **kwargs: True)
    with (
        override_settings(CACHES={"default": {"BACKEND": LOCAL_MEMORY, "LOCATION": "y"}}),
        pytest.raises(RuntimeError, match="LocMemCache"),
    ):
        await Counting().take(1)
