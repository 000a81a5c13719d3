"""The store over a Redis server of the tests' own, which they may stop."""

from __future__ import annotations

import asyncio
import json
import os
import time
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from gm_chat_ratelimit_redis import plugin
from gm_chat_ratelimit_redis.plugin import Options
from gm_chat_ratelimit_redis.script import SLICES
from gm_chat_ratelimit_redis.store import RedisRateLimitStore
from testproject.counting import KEY, race
from testproject.redis_server import PrivateRedis, required_module

from gm_chat.plugin import Charge, Tally
from gm_chat.testing import make_host
from gm_chat.testing.hook_contracts import RateLimitStoresContract

if TYPE_CHECKING:
    from collections.abc import Iterator

redis: Any = required_module("redis")

HOUR = 3600


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateRedis]:
    with PrivateRedis() as running:
        yield running


@pytest.fixture
def client(server: PrivateRedis) -> Iterator[Any]:
    with redis.Redis.from_url(server.url) as client:
        client.flushall()
        yield client


@pytest.fixture
def store(server: PrivateRedis, client: Any) -> RedisRateLimitStore:
    return RedisRateLimitStore(server.url)


async def take(store: RedisRateLimitStore, amount: int, limit: int = 100, *, seconds: int = HOUR) -> Tally:
    return await store.take([Charge("a", amount, limit)], window_seconds=seconds)


def used(tally: Tally) -> int:
    return tally.standings[0].used


def move(client: Any, slices: int, *, seconds: int = HOUR) -> None:
    """Let what is counted have been taken so many slices later: the server's clock seems to have stepped back."""
    key = f"gm_chat:{{rate}}:{seconds}:a"
    moved = {int(slice_) + slices: count for slice_, count in client.hgetall(key).items()}
    client.delete(key)
    client.hset(key, mapping=moved)


class TestContract(RateLimitStoresContract):
    plugin = plugin
    name = "ratelimit_redis"
    options: ClassVar[dict[str, Any]] = {}

    @pytest.fixture(autouse=True)
    def _there(self, server: PrivateRedis, client: Any) -> None:
        type(self).options = {"url": server.url}


# --- the window ---------------------------------------------------------------------------------------------------


async def test_what_was_taken_counts_for_a_window_and_no_longer_than_a_slice_more(
    store: RedisRateLimitStore, client: Any
) -> None:
    await take(store, 5)
    move(client, -SLICES)
    assert used(await take(store, 0)) == 5
    move(client, -1)
    assert used(await take(store, 1)) == 1
    assert len(client.hgetall("gm_chat:{rate}:3600:a")) == 1, "what is over is not kept"


async def test_it_slides(store: RedisRateLimitStore, client: Any) -> None:
    """Two thirds of a window ago a half was taken, now the other: nothing is left until the first half goes."""
    await take(store, 50)
    move(client, -40)
    await take(store, 50)
    refused = await take(store, 1)
    assert (refused.granted, used(refused)) == (False, 100)
    assert 20 * 60 < refused.standings[0].wait_seconds <= 21 * 60
    move(client, -21)
    granted = await take(store, 1)
    assert (granted.granted, used(granted)) == (True, 51)
    assert 39 * 60 < granted.standings[0].wait_seconds <= 40 * 60


async def test_the_wait_lasts_until_something_is_left(store: RedisRateLimitStore, client: Any) -> None:
    for amount in (10, 10):
        await take(store, amount)
        move(client, -10)
    await take(store, 100)
    refused = await take(store, 1)
    assert used(refused) == 120
    assert 60 * 60 < refused.standings[0].wait_seconds <= 61 * 60, "twenty less would not be enough"
    roomier = await take(store, 1, 115)
    assert 40 * 60 < roomier.standings[0].wait_seconds <= 41 * 60


async def test_it_does_not_count_the_client_s_time(store: RedisRateLimitStore, monkeypatch: Any) -> None:
    await take(store, 100)
    for moved in (-10 * HOUR, 10 * HOUR):
        monkeypatch.setattr(time, "time", lambda moved=moved: 1.7e9 + moved)
        assert not (await take(store, 1)).granted


async def test_where_the_server_s_clock_steps_back_the_newest_slice_goes_on(
    store: RedisRateLimitStore, client: Any
) -> None:
    await take(store, 99)
    move(client, 30)
    granted = await take(store, 1)
    assert (granted.granted, used(granted)) == (True, 100)
    assert not (await take(store, 1)).granted
    assert len(client.hgetall("gm_chat:{rate}:3600:a")) == 1
    changed = await store.correct([Charge("a", -40, 100)], window_seconds=HOUR, at=granted.at)
    assert used(changed) == 60


async def test_a_correction_belongs_to_its_slice(store: RedisRateLimitStore, client: Any) -> None:
    at = (await take(store, 50)).at
    move(client, -5)
    await take(store, 7)
    changed = await store.correct([Charge("a", -20, 100)], window_seconds=HOUR, at=at - 5)
    assert used(changed) == 37
    move(client, -56)
    late = await store.correct([Charge("a", -20, 100)], window_seconds=HOUR, at=at - 61)
    assert used(late) == 7


async def test_windows_of_a_second(store: RedisRateLimitStore) -> None:
    assert (await take(store, 1, 1, seconds=1)).granted
    refused = await take(store, 1, 1, seconds=1)
    assert refused.granted or 0 < refused.standings[0].wait_seconds <= 1.1


async def test_redis_forgets_by_itself(store: RedisRateLimitStore, client: Any) -> None:
    await take(store, 1)
    (key,) = client.keys("*")
    assert key == b"gm_chat:{rate}:3600:a"
    assert HOUR <= client.ttl(key) <= HOUR + 3 * 60


async def test_large_numbers_stay_whole(store: RedisRateLimitStore) -> None:
    many = 2**52
    assert used(await take(store, many, 2**53 - 1)) == many
    assert used(await take(store, many - 1, 2**53 - 1)) == 2 * many - 1


# --- one after another, and all at once ---------------------------------------------------------------------------


@pytest.mark.parametrize(("amount", "limit", "granted", "counted"), [(1, 150, 150, 150), (7, 1000, 143, 1001)])
def test_four_processes_of_a_hundred_each(
    server: PrivateRedis, client: Any, amount: int, limit: int, granted: int, counted: int
) -> None:
    assert race("redis", amount=amount, limit=limit, processes=4, COUNTING_URL=server.url) == (granted, counted)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("amount", "limit", "granted", "counted"), [(1, 1000, 1000, 1000), (7, 7000, 1000, 7000)])
def test_thirty_two_processes_of_a_hundred_each(
    server: PrivateRedis, client: Any, amount: int, limit: int, granted: int, counted: int
) -> None:
    assert race("redis", amount=amount, limit=limit, processes=32, COUNTING_URL=server.url) == (granted, counted)
    assert list(client.hvals(f"gm_chat:{{rate}}:{10**9}:{KEY}")) == [str(counted).encode()]


def test_one_store_serves_one_event_loop_after_another(store: RedisRateLimitStore) -> None:
    """As under WSGI, where each turn has its own."""
    assert [used(asyncio.run(take(store, 1))) for _ in range(3)] == [1, 2, 3]


def test_a_forked_process_makes_its_own_connections(store: RedisRateLimitStore) -> None:
    asyncio.run(take(store, 1))
    before = store._opened()
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:  # the child leaves without pytest's own ending
        outcome = used(asyncio.run(take(store, 1)))
        os.write(writing, json.dumps([outcome, store._opened() is before]).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    assert json.loads(os.read(reading, 100)) == [2, False]
    os.close(reading)
    os.close(writing)


# --- a server that is gone ----------------------------------------------------------------------------------------


async def test_an_evicted_budget_begins_anew(store: RedisRateLimitStore, client: Any) -> None:
    at = (await take(store, 100)).at
    client.flushall()
    assert used(await store.correct([Charge("a", -50, 100)], window_seconds=HOUR, at=at)) == 0
    assert (await take(store, 1)).granted


async def test_a_server_that_was_restarted_is_found_again_at_once() -> None:
    with PrivateRedis() as server:
        store = RedisRateLimitStore(server.url)
        assert used(await take(store, 5)) == 5
        server.kill()
        with pytest.raises(redis.ConnectionError):
            await take(store, 1)
        server.start()
        assert used(await take(store, 1)) == 1, "it kept nothing, and the script is loaded anew"
        server.kill()
        server.start()
        assert used(await take(store, 1)) == 1, "the lost connection was never noticed"


async def test_a_server_that_hangs_fails_in_time() -> None:
    with PrivateRedis() as server:
        store = RedisRateLimitStore(server.url, timeout_seconds=0.1)
        await take(store, 1)
        server.hang()
        with pytest.raises(redis.TimeoutError):
            await take(store, 1)


async def test_a_replica_is_left_for_the_server_that_takes_over(server: PrivateRedis, client: Any) -> None:
    """After a fail-over the old connection may lead to what is a replica now; the same address leads to the new one."""
    with PrivateRedis() as other:
        store = RedisRateLimitStore(other.url)
        await take(store, 5)
        with redis.Redis.from_url(other.url) as there:
            there.replicaof("127.0.0.1", str(server.port))
            with pytest.raises(redis.ReadOnlyError):
                await take(store, 1)
            there.replicaof("NO", "ONE")
        assert (await take(store, 1)).granted


# --- the plugin ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"url": "http://127.0.0.1"}, "'url'"),
        ({"url": 7}, "'url'"),
        ({"prefix": "a{b}"}, "'prefix'"),
        ({"timeout_seconds": 0}, "'timeout_seconds'"),
        ({"timeout_seconds": 9}, "'timeout_seconds'"),
        ({"timeout_seconds": True}, "'timeout_seconds'"),
        ({"urls": "redis://x"}, "'urls'"),
    ],
)
def test_settings_that_cannot_work_are_named(options: dict[str, Any], named: str) -> None:
    host = make_host({"ratelimit_redis": plugin}, options={"ratelimit_redis": options}, strict=False)
    assert any(named in str(problem) for problem in host.problems)
    assert "redis" not in host.rate_limit_stores


def test_no_password_is_shown() -> None:
    options = Options(url="redis://:hunter2@127.0.0.1:6379/0")
    assert "hunter2" not in repr(options)
    assert "hunter2" not in repr(RedisRateLimitStore(options.url))
