from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connections
from django.test import AsyncClient, Client

from gm_chat.models import ChatConversation, ChatTurn
from gm_chat.testing.scripted import ScriptedProvider, call

pytestmark = pytest.mark.django_db(transaction=True)

CHAT = {"enabled": True, "provider": "gm_chat.testing.ScriptedProvider"}
TOKEN = "t" * 32


def deny(user: Any, scope: Any) -> bool:
    return False


async def post(client: AsyncClient, body: Any = None, path: str = "/chat/", **extra: Any) -> Any:
    text = body if isinstance(body, (bytes, str)) else json.dumps(body or {"text": "Hello"})
    return await client.post(path, text, content_type="application/json", **extra)


async def test_all_events_of_a_turn_come_in_one_body(async_client: AsyncClient) -> None:
    with ScriptedProvider.playing(["Let me look. ", call("missing_tool", a=1)], ["Nothing."]):
        response = await post(async_client)
    assert (response.status_code, response["Content-Type"]) == (200, "application/json")
    body = response.json()
    assert [event["type"] for event in body["events"]] == [
        "text_chunk", "tool_call", "tool_result", "text_chunk", "done",
    ]  # fmt: skip
    assert [event["seq"] for event in body["events"]] == [1, 2, 3, 4, 5]
    assert {event["turn_id"] for event in body["events"]} == {body["turn_id"]}
    assert body["answer"] == "Let me look. Nothing."
    assert body["events"][-1]["usage"] == {"input_tokens": 20, "output_tokens": 10}
    assert (await ChatTurn.objects.aget()).pk == body["turn_id"]


def test_a_plain_wsgi_server_serves_it_too() -> None:
    client = Client()
    for text in ("one", "two"):
        with ScriptedProvider.playing([f"You said {text}."]) as script:
            response = client.post("/chat/", {"text": text}, content_type="application/json")
        assert response.json()["answer"] == f"You said {text}."
    assert [message.content for message in script.requests[0].messages][1:] == ["one", "You said one.", "two"]


async def test_a_failed_turn_is_told_with_status_200(async_client: AsyncClient) -> None:
    with ScriptedProvider.playing([RuntimeError("secret")]):
        response = await post(async_client)
    assert response.status_code == 200
    assert "secret" not in response.content.decode()
    (event,) = response.json()["events"]
    assert (event["type"], event["code"]) == ("error", "chat_error")
    assert event["correlation_id"]


@pytest.mark.parametrize("path", ["/chat/", "/chat/stream/"])
class TestRefusals:
    @pytest.mark.parametrize("method", ["get", "put", "delete", "head"])
    async def test_other_methods(self, async_client: AsyncClient, path: str, method: str) -> None:
        assert (await getattr(async_client, method)(path)).status_code == 405

    @pytest.mark.parametrize("middleware", [True, False], ids=["with middleware", "without middleware"])
    async def test_a_missing_csrf_token(self, path: str, middleware: bool, settings: Any) -> None:
        if not middleware:
            settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "Csrf" not in name]
        client = AsyncClient(enforce_csrf_checks=True)
        assert (await post(client, path=path)).status_code == 403
        client.cookies["csrftoken"] = TOKEN
        with ScriptedProvider.playing(["Hi"]):
            response = await post(client, path=path, headers={"X-CSRFToken": TOKEN})
            assert response.status_code == 200
            if response.streaming:
                assert [chunk async for chunk in response.streaming_content]

    async def test_a_denied_permission(self, async_client: AsyncClient, path: str, settings: Any) -> None:
        settings.GM_CHAT = CHAT | {"permission": deny}
        response = await post(async_client, b"not even JSON", path=path)
        assert (response.status_code, response.content) == (403, b'{"detail":"Forbidden"}')
        assert not await ChatTurn.objects.aexists()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"text": " "}, "non-blank"),
        ({}, "non-blank"),
        (b"[1]", "JSON object"),
        (b'{"text": "\xff"}', "UTF-8"),
        (b"[" * 10_000, "nested too deeply"),
        ({"text": "x" * 32_001}, "longer than the 32000"),
        (b'{"text": "' + b"x" * 10_000_000 + b'"}', "larger than this server accepts"),
    ],
    ids=["blank", "absent", "array", "utf-8", "deep", "long", "10 MB"],
)
async def test_what_is_no_message(async_client: AsyncClient, body: Any, words: str) -> None:
    response = await post(async_client, json.dumps(body) if body == {} else body)
    assert response.status_code == 200
    (event,) = response.json()["events"]
    assert (event["type"], event["code"]) == ("error", "bad_message")
    assert words in event["message"]
    assert not await ChatTurn.objects.aexists()


async def test_a_form_that_the_csrf_check_has_read() -> None:
    client = AsyncClient(enforce_csrf_checks=True)
    client.cookies["csrftoken"] = TOKEN
    response = await client.post("/chat/", {"text": "Hello", "csrfmiddlewaretoken": TOKEN})
    (event,) = response.json()["events"]
    assert event["code"] == "bad_message"
    assert "application/json" in event["message"]


async def test_a_project_that_wraps_requests_in_transactions(
    async_client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)
    with ScriptedProvider.playing(["Hi"]):
        assert (await post(async_client)).json()["answer"] == "Hi"


async def test_a_user_has_a_conversation_across_clients() -> None:
    user = await get_user_model()._default_manager.acreate(username="ada")
    for _ in range(2):
        client = AsyncClient()
        await client.aforce_login(user)
        with ScriptedProvider.playing(["Hi"]):
            await post(client)
    conversation = await ChatConversation.objects.aget()
    assert conversation.user_id == user.pk
    assert await conversation.messages.acount() == 4
