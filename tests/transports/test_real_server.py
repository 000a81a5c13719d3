"""A browser-grade client, a real server, and for some tests a real SDK that talks to a model's replayed bytes."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import websockets
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.test import Client

from gm_chat.models import ChatTurn
from gm_chat.testing.replay import ReplayServer, Reply
from gm_chat.testing.scripted import ScriptedProvider
from gm_chat.transports import frames

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

pytestmark = pytest.mark.django_db(transaction=True)

SCRIPTED = "gm_chat.testing.ScriptedProvider"
TOKEN = "t" * 32
ROOT = Path(__file__).resolve().parents[2]
ANSWER = (ROOT / "plugins/provider-openai/tests/recordings/text.sse").read_bytes()


@pytest.fixture
def chat(settings: Any) -> Any:
    """Settings that stand before the server is built; ask for it before ``server``."""
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    settings.MIDDLEWARE = ["django.middleware.gzip.GZipMiddleware", *settings.MIDDLEWARE]
    settings.GM_CHAT = {"enabled": True, "provider": SCRIPTED}
    return settings


@pytest.fixture
async def browser(chat: Any, server: str) -> AsyncIterator[httpx.AsyncClient]:
    cookies = {"csrftoken": TOKEN, **await log_in()}
    async with httpx.AsyncClient(
        base_url=server, cookies=cookies, headers={"X-CSRFToken": TOKEN}, timeout=10
    ) as client:
        yield client


@sync_to_async
def log_in() -> dict[str, str]:
    user = get_user_model()._default_manager.create(username="ada")
    client = Client()
    client.force_login(user)
    return {"sessionid": client.cookies["sessionid"].value}


async def events_of(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def socket_to(browser: httpx.AsyncClient, *, origin: str | None = "", cookies: bool = True) -> Any:
    """A socket as a page of the site opens it."""
    url = str(browser.base_url)
    headers = {"Cookie": f"sessionid={browser.cookies['sessionid']}"} if cookies else {}
    return websockets.connect(
        url.replace("http", "ws", 1).rstrip("/") + "/chat/",
        origin=url.rstrip("/") if origin == "" else origin,  # type: ignore[arg-type]  # any text is an origin here
        additional_headers=headers,
    )


async def test_events_arrive_one_by_one_through_gzip(browser: httpx.AsyncClient, gate: Any) -> None:
    """The client offers compression, and each event is there before the next one is made."""
    gates = [type(gate)() for _ in range(20)]
    rounds = [step for number, door in enumerate(gates) for step in (f"part {number} " * 50, door.wait)]
    with ScriptedProvider.playing(rounds):
        async with (
            browser.stream(
                "POST", "/chat/stream/", json={"text": "Hello"}, headers={"Accept-Encoding": "gzip"}
            ) as response,
            aclosing(events_of(response)) as events,
        ):
            for number, door in enumerate(gates):
                event = await asyncio.wait_for(anext(events), 2)
                assert event["content"].startswith(f"part {number} ")
                door.open()
            assert (await anext(events))["type"] == "done"
    assert response.headers["Content-Encoding"] == "identity"


async def test_heartbeats_come_before_the_first_event(
    browser: httpx.AsyncClient, gate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "HEARTBEAT_SECONDS", 0.05)
    with ScriptedProvider.playing([gate.wait, "Hi"]):
        async with browser.stream("POST", "/chat/stream/", json={"text": "Hello"}) as response:
            lines = response.aiter_lines()
            for _ in range(3):
                assert [await anext(lines), await anext(lines)] == [": heartbeat", ""]
            gate.open()
            rest = [line async for line in lines if line.startswith("data: ")]
    assert json.loads(rest[0].removeprefix("data: "))["content"] == "Hi"


class TestTheModelServerSeesItsConnectionClosed:
    """The real SDK in between: what a turn no longer needs is not generated, and not paid for, any more."""

    @pytest.fixture
    async def model(self, chat: Any) -> AsyncIterator[ReplayServer]:
        pytest.importorskip("gm_chat_provider_openai")
        async with ReplayServer() as model:
            model.reply("/v1/chat/completions", Reply(ANSWER, stall_at=ANSWER.index(b"\n\n", len(ANSWER) // 2) + 2))
            chat.GM_CHAT = {
                "enabled": True,
                "provider": "openai",
                "provider_config": {"base_url": f"{model.url}/v1", "api_key": "loopback", "model": "small"},
                "resume_grace_seconds": 0,
            }
            yield model

    async def over_sse(self, browser: httpx.AsyncClient, stop: Callable[[str], Any] | None) -> None:
        asking = browser.stream("POST", "/chat/stream/", json={"text": "Hello"})
        async with asking as response, aclosing(events_of(response)) as events:
            first = await anext(events)
            if stop is not None:
                await stop(first["turn_id"])
                assert [event async for event in events][-1]["code"] == "cancelled"

    async def over_http(self, browser: httpx.AsyncClient, stop: Callable[[str], Any] | None) -> None:
        asking = asyncio.create_task(browser.post("/chat/", json={"text": "Hello"}))
        while not await ChatTurn.objects.filter(state="running").aexists():  # noqa: ASYNC110 - a row
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.3)  # the model answers meanwhile, and then stalls
        if stop is not None:
            await stop((await ChatTurn.objects.aget()).pk)
            assert (await asking).json()["events"][-1]["code"] == "cancelled"
        asking.cancel()
        await asyncio.wait({asking})

    async def over_websocket(self, browser: httpx.AsyncClient, stop: Callable[[str], Any] | None) -> None:
        async with socket_to(browser) as socket:
            await socket.send(json.dumps({"type": "message", "text": "Hello"}))
            event = json.loads(await socket.recv())
            if stop is not None:
                await socket.send(json.dumps({"type": "cancel"}))
                while event["type"] != "error":
                    event = json.loads(await socket.recv())
                assert event["code"] == "cancelled"

    @pytest.mark.parametrize("way", ["sse", "http", "websocket"])
    @pytest.mark.parametrize("end", ["cancel", "hang-up"])
    async def test_within_a_second(self, model: ReplayServer, browser: httpx.AsyncClient, way: str, end: str) -> None:
        ended_at = 0.0

        async def cancel(turn_id: str) -> None:
            nonlocal ended_at
            ended_at = time.monotonic()
            response = await browser.post("/chat/cancel/", json={"turn_id": turn_id})
            assert response.json() == {"cancelled": True}

        await getattr(self, f"over_{way}")(browser, cancel if end == "cancel" else None)
        ended_at = ended_at or time.monotonic()
        request = await model.wait_for_request(within=1)
        await request.closed_by_client(within=1)
        assert time.monotonic() - ended_at < 1
        async with asyncio.timeout(1):
            while (await ChatTurn.objects.aget()).state == "running":  # noqa: ASYNC110 - a row
                await asyncio.sleep(0.02)
        assert (await ChatTurn.objects.aget()).state == "cancelled"


async def test_a_client_that_comes_back_after_3_s_misses_nothing_and_gets_nothing_twice(
    browser: httpx.AsyncClient,
) -> None:
    steps = [step for number in range(20) for step in (f"{number} ", 0.25)]
    with ScriptedProvider.playing(steps):
        asking = browser.stream("POST", "/chat/stream/", json={"text": "Hello"})
        async with asking as response, aclosing(events_of(response)) as events:
            seen = [await anext(events) for _ in range(4)]
        await asyncio.sleep(3)
        assert (await ChatTurn.objects.aget()).state == "running"
        url = f"/chat/turns/{seen[0]['turn_id']}/events"
        async with browser.stream("GET", url, headers={"Last-Event-ID": str(seen[-1]["seq"])}) as response:
            seen += [event async for event in events_of(response)]
    assert [event["seq"] for event in seen] == list(range(1, 22))
    assert "".join(event.get("content", "") for event in seen) == "".join(f"{number} " for number in range(20))
    assert (await browser.get(url, headers={"Last-Event-ID": "21"})).status_code == 204


class TestWebSocket:
    async def test_a_turn_and_a_cancel(self, browser: httpx.AsyncClient) -> None:
        with ScriptedProvider.playing(["Hi"], ["One ", 60]) as script:
            async with socket_to(browser) as socket:
                for text, last in (("Hello", "done"), ("And?", "error")):
                    await socket.send(json.dumps({"type": "message", "text": text}))
                    event = json.loads(await socket.recv())
                    assert event["type"] == "text_chunk"
                    if last == "error":
                        await socket.send(json.dumps({"type": "cancel"}))
                    assert json.loads(await asyncio.wait_for(socket.recv(), 1))["type"] == last
            assert script.open_streams == 0

    @pytest.mark.parametrize("origin", [None, "null", "http://evil.test"])
    async def test_a_foreign_page_reads_the_close_code(self, browser: httpx.AsyncClient, origin: str | None) -> None:
        async with socket_to(browser, origin=origin) as socket:
            with pytest.raises(websockets.ConnectionClosedError):
                await socket.recv()
        assert socket.close_code == 4403

    async def test_a_visitor_gets_a_cookie_with_the_handshake(self, browser: httpx.AsyncClient) -> None:
        async with socket_to(browser, cookies=False) as socket:
            assert "sessionid=" in socket.response.headers["Set-Cookie"]

    async def test_frames_of_any_kind(self, browser: httpx.AsyncClient) -> None:
        with ScriptedProvider.playing(["Still here."]):
            async with socket_to(browser) as socket:
                for frame in (b"\x00\xff", "Hello", "[" * 10_000, json.dumps({"text": "x" * 10_000_000})):
                    await socket.send(frame)
                    assert json.loads(await socket.recv())["code"] == "bad_message"
                await socket.send(json.dumps({"type": "message", "text": "Hello"}))
                assert json.loads(await socket.recv())["content"] == "Still here."

    async def test_unknown_paths_are_refused(self, browser: httpx.AsyncClient) -> None:
        with pytest.raises(websockets.InvalidStatus) as caught:
            await websockets.connect(str(browser.base_url).replace("http", "ws", 1).rstrip("/") + "/elsewhere/")
        assert caught.value.response.status_code == 403

    async def test_a_slow_tool_of_one_delays_no_other(self, browser: httpx.AsyncClient, gate: Any) -> None:
        with ScriptedProvider.playing([gate.wait, "Slow."], ["Fast."]):
            async with socket_to(browser) as slow, socket_to(browser, cookies=False) as fast:
                await slow.send(json.dumps({"type": "message", "text": "Hello"}))
                await asyncio.sleep(0.1)
                await fast.send(json.dumps({"type": "message", "text": "Hello"}))
                assert json.loads(await asyncio.wait_for(fast.recv(), 1))["content"] == "Fast."
                gate.open()
                assert json.loads(await slow.recv())["content"] == "Slow."
