from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.test import AsyncClient, Client

from gm_chat.models import ChatConversation
from gm_chat.testing.scripted import ScriptedProvider

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

pytestmark = pytest.mark.django_db(transaction=True)

CHAT = {"enabled": True, "provider": "gm_chat.testing.ScriptedProvider"}


class Impersonate:
    """A project's middleware that says itself who asks, as token logins do."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.user = get_user_model()._default_manager.get(username="ada")
        response: HttpResponse = self.get_response(request)
        return response


async def post(client: AsyncClient, **extra: Any) -> dict[str, Any]:
    with ScriptedProvider.playing(["Hi"]):
        response = await client.post("/chat/", json.dumps({"text": "Hello"}), content_type="application/json", **extra)
    body: dict[str, Any] = response.json()
    return body


@pytest.mark.parametrize(
    "engine", ["db", "cache", "cached_db", "file", "signed_cookies"], ids=lambda name: f"{name} sessions"
)
async def test_an_anonymous_visitor_gets_a_session_and_keeps_the_conversation(engine: str, settings: Any) -> None:
    settings.SESSION_ENGINE = f"django.contrib.sessions.backends.{engine}"
    client = AsyncClient()
    for _ in range(3):
        await post(client)
    assert client.cookies[settings.SESSION_COOKIE_NAME].value
    conversation = await ChatConversation.objects.aget()
    assert conversation.session_key
    assert await conversation.messages.acount() == 6


async def test_a_session_that_is_gone_is_replaced(settings: Any) -> None:
    client = AsyncClient()
    client.cookies[settings.SESSION_COOKIE_NAME] = "x" * 32
    await post(client)
    assert (await ChatConversation.objects.aget()).session_key != "x" * 32


async def test_without_sessions_the_turn_runs_and_is_not_kept(settings: Any) -> None:
    settings.MIDDLEWARE = ["django.middleware.csrf.CsrfViewMiddleware"]
    assert (await post(AsyncClient()))["answer"] == "Hi"
    assert not await ChatConversation.objects.aexists()


async def test_a_user_whom_a_middleware_put_on_the_request_asks(settings: Any) -> None:
    user = await get_user_model()._default_manager.acreate(username="ada")
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{__name__}.Impersonate"]
    await post(AsyncClient())
    assert (await ChatConversation.objects.aget()).user_id == user.pk


@pytest.mark.parametrize("colour", ["sync", "async"])
async def test_a_permission_may_use_the_orm_and_sees_an_asgi_like_scope(colour: str, settings: Any) -> None:
    seen: list[tuple[Any, Any]] = []

    def allow(user: Any, scope: Any) -> bool:
        seen.append((user, scope))
        return user.is_anonymous and not get_user_model()._default_manager.exists()

    async def allow_async(user: Any, scope: Any) -> bool:
        seen.append((user, scope))
        return user.is_anonymous and not await get_user_model()._default_manager.aexists()

    settings.GM_CHAT = CHAT | {"permission": allow if colour == "sync" else allow_async}
    assert (await post(AsyncClient(), headers={"X-Tenant": "acme"}))["answer"] == "Hi"
    scope = seen[0][1]
    assert {"type": "http", "path": "/chat/", "method": "POST", "client": ("127.0.0.1", 0)}.items() <= scope.items()
    assert (b"x-tenant", b"acme") in scope["headers"]
    assert scope["session"].session_key


def test_a_permission_sees_the_same_keys_under_wsgi(settings: Any) -> None:
    seen: list[Any] = []
    settings.GM_CHAT = CHAT | {"permission": lambda user, scope: seen.append(scope)}
    with ScriptedProvider.playing(["Hi"]):
        Client().post("/chat/", {"text": "Hello"}, content_type="application/json", headers={"X-Tenant": "acme"})
    assert {"type", "path", "method", "headers", "client", "session", "user"} == seen[0].keys()
    assert (b"x-tenant", b"acme") in seen[0]["headers"]
