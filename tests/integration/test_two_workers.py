"""Two server processes that share nothing but a PostgreSQL database: what one begins, the other goes on with.

Turns are followed, cancelled and confirmed through the database, so no channel layer is needed between the workers.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import websockets

psycopg = pytest.importorskip("psycopg")

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "t" * 32
LOG_IN = """
import django; django.setup()
from django.contrib.auth import get_user_model
from django.test import Client
for name in ("ada", "bob", "eve"):
    user = get_user_model().objects.create_superuser(name)
    client = Client()
    client.force_login(user)
    print(client.cookies["sessionid"].value)
"""


@dataclass(frozen=True)
class Cluster:
    """Two URLs, one database, and the session cookies of users."""

    workers: tuple[str, str]
    database: str
    sessions: tuple[str, ...]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    name = f"gm_chat_workers_{os.getpid()}"
    user, host = os.environ.get("PGUSER", "postgres"), os.environ.get("PGHOST", "127.0.0.1")
    try:
        admin = psycopg.connect(dbname="postgres", user=user, host=host, autocommit=True, connect_timeout=3)
    except psycopg.OperationalError as error:
        reason = f"PostgreSQL cannot be reached: {str(error).splitlines()[0]}"
        if "postgres" in os.environ.get("GM_CHAT_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
    admin.execute(f'CREATE DATABASE "{name}"')
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "testproject.worker_settings",
        "GM_CHAT_TEST_DATABASE": name,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT)]),
    }
    processes: list[subprocess.Popen[bytes]] = []
    try:
        python(environment, "-m", "django", "migrate", "--verbosity", "0")
        sessions = tuple(python(environment, "-c", LOG_IN).split())
        ports = free_ports(2)
        processes += [serve(environment, port) for port in ports]
        for port, process in zip(ports, processes, strict=True):
            wait_for(port, process)
        workers = tuple(f"http://127.0.0.1:{port}" for port in ports)
        for url in workers:  # a first request builds what the later ones use
            cookies = {"csrftoken": TOKEN, "sessionid": sessions[-1]}
            httpx.post(
                f"{url}/chat/", json={"text": "Hello"}, cookies=cookies, headers={"X-CSRFToken": TOKEN}, timeout=30
            ).raise_for_status()
        yield Cluster((workers[0], workers[1]), name, sessions)
    finally:
        for process in processes:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
        admin.close()


def python(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def free_ports(number: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def serve(environment: dict[str, str], port: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "uvicorn", "gm_chat.asgi:application", "--port", str(port)]
    return subprocess.Popen([*command, "--log-level", "warning"], env=environment)


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while True:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        assert process.poll() is None, "uvicorn ended"
        assert time.monotonic() < deadline, "uvicorn did not start"
        time.sleep(0.05)


class Browser:
    """One user at both workers."""

    def __init__(self, cluster: Cluster, a: httpx.AsyncClient, b: httpx.AsyncClient, session: str) -> None:
        self.cluster, self.a, self.b, self.session = cluster, a, b, session

    def socket_to_b(self) -> Any:
        url = self.cluster.workers[1]
        cookie = {"Cookie": f"sessionid={self.session}"}
        return websockets.connect(
            url.replace("http", "ws", 1) + "/chat/", origin=url, additional_headers=cookie  # type: ignore[arg-type]  # a str will do
        )  # fmt: skip

    async def materials(self) -> list[str]:
        rows = await self.b.post("/chat/", json={"text": "nothing"})
        assert rows.status_code == 200
        user, host = os.environ.get("PGUSER", "postgres"), os.environ.get("PGHOST", "127.0.0.1")
        with psycopg.connect(dbname=self.cluster.database, user=user, host=host) as connection:
            return [name for (name,) in connection.execute("SELECT name FROM shop_material ORDER BY name")]


async def browser_of(cluster: Cluster, number: int, stack: AsyncExitStack) -> Browser:
    session = cluster.sessions[number]
    cookies, headers = {"csrftoken": TOKEN, "sessionid": session}, {"X-CSRFToken": TOKEN}
    a, b = [
        await stack.enter_async_context(httpx.AsyncClient(base_url=url, cookies=cookies, headers=headers, timeout=10))
        for url in cluster.workers
    ]
    return Browser(cluster, a, b, session)


@pytest.fixture
async def ada(cluster: Cluster) -> AsyncIterator[Browser]:
    async with AsyncExitStack() as stack:
        yield await browser_of(cluster, 0, stack)


@pytest.fixture
async def bob(cluster: Cluster) -> AsyncIterator[Browser]:
    async with AsyncExitStack() as stack:
        yield await browser_of(cluster, 1, stack)


async def events_of(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    assert response.status_code == 200
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


async def ask_a(browser: Browser, text: str, **more: Any) -> list[dict[str, Any]]:
    async with browser.a.stream("POST", "/chat/stream/", json={"text": text, **more}) as response:
        return [event async for event in events_of(response)]


async def begin_at_a(browser: Browser, text: str, events: int) -> list[dict[str, Any]]:
    """Ask A, read some events, and hang up."""
    asking = browser.a.stream("POST", "/chat/stream/", json={"text": text})
    async with asking as response, aclosing(events_of(response)) as stream:
        return [await anext(stream) for _ in range(events)]


async def follow_at_b(browser: Browser, turn_id: str, after: int = 0) -> list[dict[str, Any]]:
    url, headers = f"/chat/turns/{turn_id}/events", {"Last-Event-ID": str(after)}
    async with browser.b.stream("GET", url, headers=headers) as response:
        return [event async for event in events_of(response)]


def said(events: list[dict[str, Any]]) -> list[int]:
    return [int(event["content"]) for event in events if event["type"] == "text_chunk"]


async def test_a_lost_stream_goes_on_at_the_other_worker(ada: Browser) -> None:
    seen = await begin_at_a(ada, "count to 60", 3)
    # 6 s in all: longer than the grace of 4 s, so A must have learnt that the turn is followed at B.
    seen += await follow_at_b(ada, seen[0]["turn_id"], seen[-1]["seq"])
    assert [event["seq"] for event in seen] == list(range(1, 62)), seen[-1]
    assert said(seen) == list(range(1, 61))
    assert seen[-1]["type"] == "done"


async def test_two_workers_show_the_same_turn_at_once(ada: Browser) -> None:
    asking = asyncio.create_task(ask_a(ada, "count to 15", id="shown-twice"))
    await asyncio.sleep(0.3)
    refused = (await ada.b.post("/chat/", json={"text": "something else"})).json()["events"]
    joined = (await ada.b.post("/chat/", json={"text": "count to 15", "id": "shown-twice"})).json()["events"]
    assert [event["code"] for event in refused] == ["turn_in_progress"]
    assert joined == await asking
    assert said(joined) == list(range(1, 16))


async def test_the_other_worker_is_at_most_a_second_behind(ada: Browser) -> None:
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
    assert max(shown[seq] - made[seq] for seq in made) < 1


async def test_cancelled_through_the_other_worker(ada: Browser) -> None:
    asking = ada.a.stream("POST", "/chat/stream/", json={"text": "count to 100"})
    async with asking as response, aclosing(events_of(response)) as events:
        first = await anext(events)
        begun = time.monotonic()
        cancelled = await ada.b.post("/chat/cancel/", json={"turn_id": first["turn_id"]})
        assert cancelled.json() == {"cancelled": True}
        last = [event async for event in events][-1]
        assert time.monotonic() - begun < 1
    assert (last["type"], last["code"]) == ("error", "cancelled")
    assert (await follow_at_b(ada, first["turn_id"]))[-1] == last


async def test_confirmed_through_the_other_worker(ada: Browser) -> None:
    asked = await ask_a(ada, "add zinc")
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
    assert await ada.materials() == ["zinc"]
    for client in (ada.a, ada.b):
        async with client.stream("GET", f"/chat/turns/{waiting['turn_id']}/events") as response:
            assert [event async for event in events_of(response)] == [*asked, *done[0]]


async def test_resumed_and_confirmed_over_a_socket_of_the_other_worker(bob: Browser) -> None:
    asked = await ask_a(bob, "add tin")
    async with bob.socket_to_b() as socket:
        await socket.send(json.dumps({"type": "resume", "turn_id": asked[0]["turn_id"]}))
        assert [json.loads(await socket.recv()) for _ in asked] == asked
        await socket.send(json.dumps({"type": "confirm", "confirmation_id": asked[-1]["id"], "confirmed": False}))
        rest = [json.loads(await socket.recv()) for _ in range(3)]
    assert [event["type"] for event in rest] == ["tool_result", "text_chunk", "done"]
    assert rest[1]["content"] == "It is cancelled."
    assert "tin" not in await bob.materials()


async def test_others_see_nothing_of_it_at_either_worker(ada: Browser, bob: Browser) -> None:
    asked = await ask_a(ada, "add lead")
    turn_id, confirmation_id = asked[0]["turn_id"], asked[-1]["id"]
    for client in (bob.a, bob.b):
        assert (await client.get(f"/chat/turns/{turn_id}/events")).status_code == 404
        assert (await client.post("/chat/cancel/", json={"turn_id": turn_id})).status_code == 404
        assert (await client.get("/chat/confirmations/")).json() == {"confirmations": []}
        word = {"confirmation_id": confirmation_id, "confirmed": True}
        (event,) = (await client.post("/chat/confirm/", json=word)).json()["events"]
        assert event["code"] == "bad_event"
    assert (await ada.b.post("/chat/cancel/", json={"turn_id": turn_id})).json() == {"cancelled": True}
    assert "lead" not in await ada.materials()


async def test_a_turn_that_nobody_follows_anywhere_ends_after_the_grace(ada: Browser) -> None:
    seen = await begin_at_a(ada, "count to 100", 2)
    await asyncio.sleep(5)
    events = await follow_at_b(ada, seen[0]["turn_id"])
    assert events[-1]["code"] == "cancelled"
    assert 20 < len(said(events)) < 55
