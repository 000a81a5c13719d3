"""A rate limit as a client meets it: over HTTP, as a stream, through a socket; and behind a proxy."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import AsyncClient, Client
from testproject.socket_client import connected

from gm_chat.engine.budgets import BudgetState
from gm_chat.testing.scripted import ScriptedProvider, done
from gm_chat.transports.budget_headers import budget_headers

pytestmark = pytest.mark.django_db(transaction=True)

CHAT: dict[str, Any] = {"enabled": True, "provider": "gm_chat.testing.ScriptedProvider"}


@pytest.fixture(autouse=True)
def limits(settings: Any) -> Any:
    def limit(**limits: Any) -> None:
        settings.GM_CHAT = {**CHAT, "rate_limit": limits}

    limit(requests=2, window_seconds=10**9)
    return limit


async def say(browser: AsyncClient, path: str = "/chat/", **headers: str) -> Any:
    body = json.dumps({"text": "Hello"})
    return await browser.post(path, body, content_type="application/json", headers=headers)


def test_headers() -> None:
    budgets = [BudgetState("requests", 60, 12, 1729.2), BudgetState("tokens", 5000, 0, 10.0)]
    assert budget_headers(budgets, window_seconds=3600, retry_after_seconds=10) == {
        "RateLimit-Policy": '"requests";q=60;w=3600, "tokens";q=5000;qu="tokens";w=3600',
        "RateLimit": '"requests";r=12;t=1730, "tokens";r=0;t=10',
        "Retry-After": "10",
    }
    assert budget_headers((), window_seconds=3600) == {}


async def test_over_http() -> None:
    browser = AsyncClient()
    with ScriptedProvider.playing(["Hi."], ["Hi."]):
        responses = [await say(browser) for _ in range(3)]
    assert [response.status_code for response in responses] == [200, 200, 200]
    assert [response["RateLimit"].split(";t=")[0] for response in responses] == [
        '"requests";r=1',
        '"requests";r=0',
        '"requests";r=0',
    ]
    assert {response["RateLimit-Policy"] for response in responses} == {'"requests";q=2;w=1000000000'}
    assert ["Retry-After" in response for response in responses] == [False, False, True]
    body = responses[2].json()
    assert [event["code"] for event in body["events"]] == ["rate_limited"]
    assert body["turn_id"] is None
    assert str(body["events"][0]["retry_after_seconds"]) == responses[2]["Retry-After"]


async def test_a_turn_that_used_the_tokens_up_says_how_they_stand_at_its_end(limits: Any) -> None:
    limits(requests=None, tokens=100)
    with ScriptedProvider.playing(["Hi.", done(60, 70)]):
        response = await say(AsyncClient())
    assert response.json()["answer"] == "Hi."
    assert response["RateLimit"].startswith('"tokens";r=0;t=')


async def test_as_a_stream() -> None:
    browser = AsyncClient()
    with ScriptedProvider.playing(["Hi."], ["Hi."]):
        responses = []
        for _ in range(3):
            response = await say(browser, "/chat/stream/")
            text = b"".join([chunk async for chunk in response.streaming_content]).decode()
            responses.append((response, text))
    assert ["Retry-After" in response for response, _ in responses] == [False, False, True]
    assert [response["RateLimit"].split(";t=")[0] for response, _ in responses][::2] == [
        '"requests";r=1',
        '"requests";r=0',
    ]
    assert '"code":"rate_limited"' in responses[2][1]
    assert '"type":"done"' in responses[0][1]


async def test_through_a_socket() -> None:
    async with connected() as socket:
        last = []
        for n in range(3):
            with ScriptedProvider.playing(["Hi."]):
                last.append((await socket.ask(f"Hello {n}"))[-1])
        assert [event["type"] for event in last] == ["done", "done", "error"]
        assert last[2]["code"] == "rate_limited"
        assert last[2]["retry_after_seconds"] > 0
        assert (await socket.ask(" "))[-1]["code"] == "bad_message", "the socket lives"


async def test_without_a_budget_there_are_no_headers(limits: Any) -> None:
    limits(requests=None)
    with ScriptedProvider.playing(["Hi."]):
        response = await say(AsyncClient())
    assert "RateLimit" not in response
    assert "RateLimit-Policy" not in response


async def test_dropping_the_cookie_does_not_reset_it() -> None:
    with ScriptedProvider.playing(["Hi."], ["Hi."]):
        responses = [await say(AsyncClient()) for _ in range(3)]
    assert [response.json()["events"][-1]["type"] for response in responses] == ["done", "done", "error"]


@pytest.mark.parametrize(("trusted", "refused"), [((), True), (("127.0.0.0/8",), False)])
async def test_behind_a_proxy(limits: Any, trusted: tuple[str, ...], refused: bool) -> None:
    limits(requests=1, trusted_proxies=trusted)
    with ScriptedProvider.playing(["Hi."], ["Hi."]):
        responses = [await say(AsyncClient(), **{"X-Forwarded-For": f"6.6.6.6, 203.0.113.{n}"}) for n in range(2)]
    assert (responses[1].json()["events"][-1]["type"] == "error") is refused


def test_under_wsgi(limits: Any) -> None:
    limits(requests=1, tokens=1000)
    browser = Client()
    with ScriptedProvider.playing(["Hi."]):
        responses = [
            browser.post("/chat/", json.dumps({"text": "Hello"}), content_type="application/json") for _ in range(2)
        ]
    assert [response.json()["events"][-1]["type"] for response in responses] == ["done", "error"]
    assert "Retry-After" in responses[1]
