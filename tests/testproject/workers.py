"""Two uvicorn processes on one PostgreSQL database, and browsers that are logged in to both."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString

import httpx
import psycopg
import pytest
import websockets

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "t" * 32
USER, HOST = os.environ.get("PGUSER", "postgres"), os.environ.get("PGHOST", "127.0.0.1")
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
    """Two URLs, one database, the session cookies of users, and what each worker writes on standard error."""

    workers: tuple[str, str]
    database: str
    sessions: tuple[str, ...]
    logs: tuple[Path, Path]


@contextmanager
def two_workers(
    logs: Path, *, application: str = "gm_chat.asgi:application", layer: Mapping[str, Any] | None = None
) -> Iterator[Cluster]:
    """Serve ``application`` twice, with the channel layer between them, if any. Skipped where there is no database."""
    name = f"gm_chat_workers_{os.getpid()}"
    try:
        admin = psycopg.connect(dbname="postgres", user=USER, host=HOST, autocommit=True, connect_timeout=3)
    except psycopg.OperationalError as error:
        reason = f"PostgreSQL cannot be reached: {str(error).splitlines()[0]}"
        if "postgres" in os.environ.get("GM_CHAT_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
    admin.execute(f'CREATE DATABASE "{name}"')
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "testproject.worker_settings",
        "GM_CHAT_TEST_DATABASE": name,
        "GM_CHAT_TEST_LAYER": json.dumps(layer) if layer else "",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT)]),
    }
    files = (logs / "a.log", logs / "b.log")
    processes: list[subprocess.Popen[bytes]] = []
    try:
        _python(environment, "-m", "django", "migrate", "--verbosity", "0")
        sessions = tuple(_python(environment, "-c", LOG_IN).split())
        ports = _free_ports(2)
        processes += [_serve(application, environment, port, log) for port, log in zip(ports, files, strict=True)]
        for port, process in zip(ports, processes, strict=True):
            _wait_for(port, process)
        a, b = (f"http://127.0.0.1:{port}" for port in ports)
        for url in (a, b):  # a first turn builds what the later ones use, and lasts until its worker listens
            cookies = {"csrftoken": TOKEN, "sessionid": sessions[-1]}
            said = {"text": "count to 8"}
            httpx.post(
                f"{url}/chat/", json=said, cookies=cookies, headers={"X-CSRFToken": TOKEN}, timeout=30
            ).raise_for_status()
        yield Cluster((a, b), name, sessions, files)
    finally:
        for process in processes:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
        admin.close()


def _python(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _free_ports(number: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def _serve(application: str, environment: dict[str, str], port: int, log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "uvicorn", application, "--port", str(port), "--log-level", "warning"]
    with log.open("wb") as file:
        return subprocess.Popen(command, env=environment, stderr=file)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
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

    def materials(self) -> list[str]:
        return self._select("SELECT name FROM shop_material ORDER BY name")

    def turns(self, state: str) -> list[str]:
        return self._select("SELECT id FROM gm_chat_chatturn WHERE state = %s", state)

    def _select(self, query: LiteralString, *parameters: str) -> list[str]:
        with psycopg.connect(dbname=self.cluster.database, user=USER, host=HOST) as connection:
            return [value for (value,) in connection.execute(query, parameters)]

    async def ask_a(self, text: str, **more: Any) -> list[dict[str, Any]]:
        async with self.a.stream("POST", "/chat/stream/", json={"text": text, **more}) as response:
            return [event async for event in events_of(response)]

    async def begin_at_a(self, text: str, events: int) -> list[dict[str, Any]]:
        """Ask A, read some events, and hang up."""
        asking = self.a.stream("POST", "/chat/stream/", json={"text": text})
        async with asking as response, aclosing(events_of(response)) as stream:
            return [await anext(stream) for _ in range(events)]

    async def follow_at_b(self, turn_id: str, after: int = 0) -> list[dict[str, Any]]:
        url, headers = f"/chat/turns/{turn_id}/events", {"Last-Event-ID": str(after)}
        async with self.b.stream("GET", url, headers=headers) as response:
            return [event async for event in events_of(response)]


@asynccontextmanager
async def browser_of(cluster: Cluster, number: int) -> AsyncIterator[Browser]:
    session = cluster.sessions[number]
    cookies, headers = {"csrftoken": TOKEN, "sessionid": session}, {"X-CSRFToken": TOKEN}
    async with AsyncExitStack() as stack:
        a, b = [
            await stack.enter_async_context(
                httpx.AsyncClient(base_url=url, cookies=cookies, headers=headers, timeout=15)
            )
            for url in cluster.workers
        ]
        yield Browser(cluster, a, b, session)


async def events_of(response: httpx.Response) -> AsyncGenerator[dict[str, Any], None]:
    assert response.status_code == 200
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def said(events: list[dict[str, Any]]) -> list[int]:
    """What the slow model counted."""
    return [int(event["content"]) for event in events if event["type"] == "text_chunk"]
