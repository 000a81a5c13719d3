from __future__ import annotations

import asyncio
import gzip
import json
import socket
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from django.core.asgi import get_asgi_application
from django.test import AsyncClient, Client

from gm_chat.models import ChatConversation, ChatTurn
from gm_chat.testing.scripted import ScriptedProvider, call
from gm_chat.transports import frames as framing

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN = "t" * 32
CHAT = {"enabled": True, "provider": "gm_chat.testing.ScriptedProvider"}


@pytest.fixture
def no_grace(settings: Any) -> None:
    settings.GM_CHAT = CHAT | {"resume_grace_seconds": 0}


def browser(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, cookies={"csrftoken": TOKEN}, headers={"X-CSRFToken": TOKEN})


def frames(text: str) -> list[dict[str, Any]]:
    """The events of a stream, read as the standard says: comments ignored, ``data`` and ``id`` lines in any order."""
    events = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            event = json.loads(fields["data"])
            assert fields.get("id") == (str(event["seq"]) if "seq" in event else None)
            events.append(event)
    return events


async def post(client: AsyncClient, text: str = "Hello", **extra: Any) -> Any:
    return await client.post("/chat/stream/", json.dumps({"text": text}), content_type="application/json", **extra)


async def read(response: Any) -> str:
    return b"".join([chunk async for chunk in response.streaming_content]).decode()


async def test_each_event_is_a_frame(async_client: AsyncClient) -> None:
    with ScriptedProvider.playing(["One\n\ntwo \u2028", call("missing")], ["Done."]):
        response = await post(async_client)
        assert (response.status_code, response["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
        text = await read(response)
    events = frames(text)
    assert [event["type"] for event in events] == ["text_chunk", "tool_call", "tool_result", "text_chunk", "done"]
    assert events[0]["content"] == "One\n\ntwo \u2028"
    assert [event["seq"] for event in events] == [1, 2, 3, 4, 5]
    assert text.startswith('data: {"type":"text_chunk"')


async def test_headers_keep_everybody_from_holding_the_stream_back(async_client: AsyncClient, settings: Any) -> None:
    settings.MIDDLEWARE = ["django.middleware.gzip.GZipMiddleware", *settings.MIDDLEWARE]
    with ScriptedProvider.playing(["x" * 1000] * 20):
        response = await post(async_client, headers={"Accept-Encoding": "gzip"})
        assert response["Content-Encoding"] == "identity"
        assert response["X-Accel-Buffering"] == "no"
        assert response["Cache-Control"] == "no-cache, no-transform"
        assert len(frames(await read(response))) == 21


async def test_gzip_would_have_compressed(async_client: AsyncClient, settings: Any) -> None:
    """The test above means something: the same middleware compresses the non-streaming answer."""
    settings.MIDDLEWARE = ["django.middleware.gzip.GZipMiddleware", *settings.MIDDLEWARE]
    with ScriptedProvider.playing(["x" * 1000]):
        response = await async_client.post(
            "/chat/", json.dumps({"text": "x"}), content_type="application/json", headers={"Accept-Encoding": "gzip"}
        )
    assert json.loads(gzip.decompress(response.content))["answer"] == "x" * 1000


async def test_comments_fill_the_silence_also_before_the_first_event(
    async_client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(framing, "HEARTBEAT_SECONDS", 0.02)
    with ScriptedProvider.playing([0.3, "Hi", 0.3, "."]):
        text = await read(await post(async_client))
    before, after = text.split('data: {"type":"text_chunk","content":"Hi"')
    assert before.startswith(": heartbeat\n\n: heartbeat\n\n")
    assert ": heartbeat\n\n" in after
    assert "".join(event.get("content", "") for event in frames(text)) == "Hi."


async def test_a_bad_message_is_a_stream_of_one_error(async_client: AsyncClient) -> None:
    response = await post(async_client, " ")
    assert response.status_code == 200
    (event,) = frames(await read(response))
    assert (event["type"], event["code"]) == ("error", "bad_message")


async def test_the_session_cookie_comes_with_the_headers(async_client: AsyncClient, settings: Any) -> None:
    with ScriptedProvider.playing(["Hi"]):
        response = await post(async_client)
        key = response.cookies[settings.SESSION_COOKIE_NAME].value
        await read(response)
    assert (await ChatConversation.objects.aget()).session_key == key


def test_wsgi_is_told_instead_of_being_held_back() -> None:
    response = Client().post("/chat/stream/", {"text": "Hello"}, content_type="application/json")
    assert response.status_code == 501
    assert "ASGI" in response.json()["detail"]


@pytest.mark.usefixtures("no_grace")
class TestOverARealServer:
    def test_the_first_event_arrives_before_the_last_is_produced(self, server: str, gate: Any) -> None:
        with (
            ScriptedProvider.playing(["first", gate.wait, "last"]),
            browser(server) as client,
            client.stream("POST", "/chat/stream/", json={"text": "Hello"}) as response,
        ):
            lines = response.iter_lines()
            assert json.loads(next(lines).removeprefix("data: "))["content"] == "first"
            gate.open()
            rest = [line for line in lines if line.startswith("data: ")]
        assert [json.loads(line.removeprefix("data: "))["type"] for line in rest] == ["text_chunk", "done"]

    def test_a_client_that_leaves_ends_the_turn_within_a_second(self, server: str, eventually: Any) -> None:
        script_of_two = ScriptedProvider.playing(["first", 60], ["again"])
        with script_of_two as script, browser(server) as client:
            with client.stream("POST", "/chat/stream/", json={"text": "Hello"}) as response:
                next(response.iter_lines())
            eventually(lambda: script.open_streams == 0)
            eventually(lambda: ChatTurn.objects.get().state == "cancelled")
            answer = client.post("/chat/", json={"text": "And now?"}).json()["answer"]
        assert answer == "again"
        assert "first" in [message.content for message in script.requests[1].messages]

    def test_so_does_a_client_that_gives_up_waiting_for_one_body(self, server: str, eventually: Any) -> None:
        with ScriptedProvider.playing(["first", 60]) as script, browser(server) as client:
            request = client.build_request("POST", "/chat/", json={"text": "Hello"})
            with socket.create_connection((request.url.host, request.url.port or 80)) as connection:
                head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
                connection.sendall(f"POST /chat/ HTTP/1.1\r\n{head}\r\n".encode() + request.read())
                eventually(lambda: script.open_streams == 1)
            eventually(lambda: script.open_streams == 0)
            eventually(lambda: ChatTurn.objects.get().state == "cancelled")


@pytest.mark.usefixtures("no_grace")
async def test_a_client_that_stopped_reading_and_leaves_ends_the_turn_too() -> None:
    """The turn is cancelled even while the server waits to send, outside of our generator."""
    left, stuck = asyncio.Event(), asyncio.Event()
    messages = [{"type": "http.request", "body": b'{"text": "Hello"}'}]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.body":
            stuck.set()
            await asyncio.Event().wait()

    headers = [(b"x-csrftoken", TOKEN.encode()), (b"cookie", f"csrftoken={TOKEN}".encode())]
    scope = {"type": "http", "method": "POST", "path": "/chat/stream/", "query_string": b"", "headers": headers}
    with ScriptedProvider.playing(["first", 60]) as script:
        request = asyncio.create_task(get_asgi_application()(scope, receive, send))
        await asyncio.wait_for(stuck.wait(), 5)
        left.set()
        await asyncio.wait_for(request, 5)
        async with asyncio.timeout(1):
            while script.open_streams or (await ChatTurn.objects.aget()).state == "running":  # noqa: ASYNC110 - a row
                await asyncio.sleep(0.01)
    assert (await ChatTurn.objects.aget()).state == "cancelled"
