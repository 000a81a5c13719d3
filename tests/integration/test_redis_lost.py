"""Redis dies while one worker shows the other's turn: nothing is lost, and later they find each other again."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("psycopg")

from testproject.redis_server import PrivateRedis, required_module
from testproject.workers import Browser, browser_of, events_of, said, two_workers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from testproject.workers import Cluster


@pytest.fixture
def redis() -> Iterator[PrivateRedis]:
    required_module("channels_redis")
    with PrivateRedis() as server:
        yield server


@pytest.fixture
def cluster(redis: PrivateRedis, tmp_path: Path) -> Iterator[Cluster]:
    layer = {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": {"hosts": [redis.url]}}
    with two_workers(tmp_path, layer=layer) as cluster:
        yield cluster


@pytest.fixture
async def ada(cluster: Cluster) -> AsyncIterator[Browser]:
    async with browser_of(cluster, 0) as browser:
        yield browser


async def count(browser: Browser, numbers: int, meanwhile: Any) -> None:
    """Count at A and follow at B: whatever is done ``meanwhile``, after 8 of its events, B shows what A makes."""
    asking = browser.a.stream("POST", "/chat/stream/", json={"text": f"count to {numbers}"})
    async with asking as response, aclosing(events_of(response)) as at_a:
        made = [await anext(at_a)]
        following = browser.b.stream("GET", f"/chat/turns/{made[0]['turn_id']}/events")
        async with following as shown_at_b, aclosing(events_of(shown_at_b)) as at_b:
            shown = [await anext(at_b) for _ in range(8)]
            meanwhile()
            shown += [event async for event in at_b]
        made += [event async for event in at_a]
    assert shown == made
    assert said(shown) == list(range(1, numbers + 1))
    assert shown[-1]["type"] == "done"


async def test_loses_nothing(ada: Browser, redis: PrivateRedis) -> None:
    await count(ada, 40, redis.kill)
    await count(ada, 20, lambda: None)
    asking = asyncio.create_task(ada.ask_a("count to 100", id="to-be-cancelled"))
    await asyncio.sleep(0.5)
    following = asyncio.create_task(ada.b.post("/chat/", json={"text": "count to 100", "id": "to-be-cancelled"}))
    await asyncio.sleep(0.5)
    (turn,) = ada.turns("running")
    assert (await ada.b.post("/chat/cancel/", json={"turn_id": turn})).json() == {"cancelled": True}
    made = await asking
    assert made[-1]["code"] == "cancelled"
    assert (await following).json()["events"] == made
    await count(ada, 40, redis.start)
    await count(ada, 20, lambda: None)
    for log in ada.cluster.logs:
        first, *rest = log.read_text().splitlines()
        assert "channel layer" in first
        assert rest == ["The channel layer works again."]
