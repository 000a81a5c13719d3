"""Two server processes that share a PostgreSQL database, and perhaps a Redis: what one begins, the other goes on with.

Without a channel layer they look into the database. With one they look there once a minute in these tests, so that
nothing but the layer can wake them.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("psycopg")

from testproject.redis_server import required_redis
from testproject.workers import Browser, Cluster, browser_of, events_of, said, two_workers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import httpx

LAYERS = {"core": "channels_redis.core.RedisChannelLayer", "pubsub": "channels_redis.pubsub.RedisPubSubChannelLayer"}


@pytest.fixture(scope="module", params=["database", *LAYERS])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    logs = tmp_path_factory.mktemp(request.param)
    if request.param == "database":
        with two_workers(logs) as cluster:
            yield cluster
        return
    config = {"hosts": [required_redis()], "prefix": f"gm_chat_workers_{os.getpid()}"}
    layer = {"BACKEND": LAYERS[request.param], "CONFIG": config}
    with two_workers(logs, application="testproject.patient_asgi:application", layer=layer) as cluster:
        yield cluster
    assert [log.read_text() for log in cluster.logs] == ["", ""]


@pytest.fixture
async def ada(cluster: Cluster) -> AsyncIterator[Browser]:
    async with browser_of(cluster, 0) as browser:
        yield browser


@pytest.fixture
async def bob(cluster: Cluster) -> AsyncIterator[Browser]:
    async with browser_of(cluster, 1) as browser:
        yield browser


class TestResumed:
    async def test_over_sse(self, ada: Browser) -> None:
        seen = await ada.begin_at_a("count to 60", 3)
        # 6 s in all: longer than the grace of 4 s, so A must have learnt that the turn is followed at B.
        seen += await ada.follow_at_b(seen[0]["turn_id"], seen[-1]["seq"])
        assert [event["seq"] for event in seen] == list(range(1, 62)), seen[-1]
        assert said(seen) == list(range(1, 61))
        assert seen[-1]["type"] == "done"

    async def test_over_http(self, ada: Browser) -> None:
        """The same message again, which joins the turn of the first one."""
        asking = asyncio.create_task(ada.ask_a("count to 15", id="shown-twice"))
        await asyncio.sleep(0.3)
        refused = (await ada.b.post("/chat/", json={"text": "something else"})).json()["events"]
        joined = (await ada.b.post("/chat/", json={"text": "count to 15", "id": "shown-twice"})).json()["events"]
        assert [event["code"] for event in refused] == ["turn_in_progress"]
        assert joined == await asking
        assert said(joined) == list(range(1, 16))

    async def test_over_a_socket(self, ada: Browser) -> None:
        seen = await ada.begin_at_a("count to 15", 3)
        async with ada.socket_to_b() as socket:
            place = {"turn_id": seen[0]["turn_id"], "after_seq": seen[-1]["seq"]}
            await socket.send(json.dumps({"type": "resume", **place}))
            while seen[-1]["type"] != "done":
                seen.append(json.loads(await asyncio.wait_for(socket.recv(), 10)))
        assert [event["seq"] for event in seen] == list(range(1, 17))
        assert said(seen) == list(range(1, 16))

    async def test_at_once_at_both_and_in_time(self, ada: Browser) -> None:
        made: dict[int, float] = {}
        shown: dict[int, float] = {}

        async def watch(client: httpx.AsyncClient, method: str, url: str, times: dict[int, float], **body: Any) -> None:
            async with client.stream(method, url, **body) as response:
                async for event in events_of(response):
                    times[event["seq"]] = time.monotonic()
                    begun.set_result(event["turn_id"]) if not begun.done() else None

        begun: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        at_a = asyncio.create_task(watch(ada.a, "POST", "/chat/stream/", made, json={"text": "count to 20"}))
        await watch(ada.b, "GET", f"/chat/turns/{await begun}/events", shown)
        await at_a
        assert made.keys() == shown.keys() == set(range(1, 22))
        assert max(shown[seq] - made[seq] for seq in made) < 1


class TestCancelled:
    async def test_over_http(self, ada: Browser) -> None:
        asking = ada.a.stream("POST", "/chat/stream/", json={"text": "count to 100"})
        async with asking as response, aclosing(events_of(response)) as events:
            seen = [await anext(events) for _ in range(6)]  # it runs for a while: A listens
            begun = time.monotonic()
            cancelled = await ada.b.post("/chat/cancel/", json={"turn_id": seen[0]["turn_id"]})
            assert cancelled.json() == {"cancelled": True}
            last = [event async for event in events][-1]
            assert time.monotonic() - begun < 1
        assert (last["type"], last["code"]) == ("error", "cancelled")
        assert (await ada.follow_at_b(seen[0]["turn_id"]))[-1] == last

    async def test_over_a_socket(self, ada: Browser) -> None:
        asking = ada.a.stream("POST", "/chat/stream/", json={"text": "count to 100"})
        async with asking as response, aclosing(events_of(response)) as events, ada.socket_to_b() as socket:
            first = await anext(events)
            await socket.send(json.dumps({"type": "resume", "turn_id": first["turn_id"]}))
            shown = [json.loads(await asyncio.wait_for(socket.recv(), 10)) for _ in range(5)]
            await socket.send(json.dumps({"type": "cancel"}))
            while shown[-1]["type"] != "error":
                shown.append(json.loads(await asyncio.wait_for(socket.recv(), 10)))
            seen = [first, *[event async for event in events]]
        assert shown == seen
        assert seen[-1]["code"] == "cancelled"


class TestConfirmed:
    async def test_once_over_http_at_both(self, ada: Browser) -> None:
        asked = await ada.ask_a("add zinc")
        assert asked[-1]["type"] == "confirm_mutation"
        (waiting,) = (await ada.b.get("/chat/confirmations/")).json()["confirmations"]
        assert waiting["id"] == asked[-1]["id"]
        word = {"confirmation_id": waiting["id"], "confirmed": True}
        answers = await asyncio.gather(*(client.post("/chat/confirm/", json=word) for client in (ada.a, ada.b) * 4))
        bodies = [answer.json()["events"] for answer in answers]
        done = [events for events in bodies if events[-1]["type"] == "done"]
        refused = [events for events in bodies if events[-1].get("code") == "confirmation_unavailable"]
        assert (len(done), len(refused)) == (1, 7)
        assert done[0][0]["result"]["status"] == "executed"
        assert [event["seq"] for event in (*asked, *done[0])] == [1, 2, 3, 4, 5]
        assert ada.materials() == ["zinc"]
        for client in (ada.a, ada.b):
            async with client.stream("GET", f"/chat/turns/{waiting['turn_id']}/events") as response:
                assert [event async for event in events_of(response)] == [*asked, *done[0]]

    async def test_over_http_of_the_other_worker(self, ada: Browser) -> None:
        asked = await ada.ask_a("add iron")
        word = {"confirmation_id": asked[-1]["id"], "confirmed": True}
        rest = (await ada.b.post("/chat/confirm/", json=word)).json()["events"]
        assert [event["type"] for event in rest] == ["tool_result", "text_chunk", "done"]
        assert await ada.follow_at_b(asked[0]["turn_id"]) == [*asked, *rest]
        assert "iron" in ada.materials()

    async def test_over_a_socket_that_resumed_it(self, bob: Browser) -> None:
        asked = await bob.ask_a("add tin")
        async with bob.socket_to_b() as socket:
            await socket.send(json.dumps({"type": "resume", "turn_id": asked[0]["turn_id"]}))
            assert [json.loads(await socket.recv()) for _ in asked] == asked
            await socket.send(json.dumps({"type": "confirm", "confirmation_id": asked[-1]["id"], "confirmed": False}))
            rest = [json.loads(await socket.recv()) for _ in range(3)]
        assert [event["type"] for event in rest] == ["tool_result", "text_chunk", "done"]
        assert rest[1]["content"] == "It is cancelled."
        assert "tin" not in bob.materials()


async def test_others_see_nothing_of_it_at_either_worker(ada: Browser, bob: Browser) -> None:
    asked = await ada.ask_a("add lead")
    turn_id, confirmation_id = asked[0]["turn_id"], asked[-1]["id"]
    for client in (bob.a, bob.b):
        assert (await client.get(f"/chat/turns/{turn_id}/events")).status_code == 404
        assert (await client.post("/chat/cancel/", json={"turn_id": turn_id})).status_code == 404
        assert (await client.get("/chat/confirmations/")).json() == {"confirmations": []}
        word = {"confirmation_id": confirmation_id, "confirmed": True}
        (event,) = (await client.post("/chat/confirm/", json=word)).json()["events"]
        assert event["code"] == "bad_event"
    assert (await ada.b.post("/chat/cancel/", json={"turn_id": turn_id})).json() == {"cancelled": True}
    assert "lead" not in ada.materials()


async def test_a_turn_that_nobody_follows_anywhere_ends_after_the_grace(ada: Browser) -> None:
    seen = await ada.begin_at_a("count to 100", 2)
    await asyncio.sleep(5)
    events = await ada.follow_at_b(seen[0]["turn_id"])
    assert events[-1]["code"] == "cancelled"
    assert 20 < len(said(events)) < 55
