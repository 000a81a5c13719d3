"""Redis, which counts the limits, dies in the middle of a turn: what ``on_failure`` says happens, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import AsyncClient
from testproject.redis_server import PrivateRedis, required_module

from gm_chat.testing.scripted import ScriptedProvider, call

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("gm_chat_ratelimit_redis")
pytestmark = pytest.mark.django_db(transaction=True)

QUERY = call("query", manager="MaterialManager", fields=["name"])


@pytest.fixture
def redis() -> Iterator[PrivateRedis]:
    required_module("redis")
    with PrivateRedis() as server:
        yield server


async def ask(browser: AsyncClient, *rounds: Any) -> list[dict[str, Any]]:
    with ScriptedProvider.playing(*rounds):
        answer: Any = await browser.post("/chat/", {"text": "Hello"}, content_type="application/json")
    events: list[dict[str, Any]] = answer.json()["events"]
    return events


@pytest.mark.parametrize(("policy", "end"), [("deny", "chat_error"), ("allow", None)])
async def test_the_policy_holds_and_counting_goes_on_with_the_server(
    settings: Any, redis: PrivateRedis, policy: str, end: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    settings.GM_CHAT = {
        "enabled": True,
        "provider": "gm_chat.testing.ScriptedProvider",
        "provider_config": {"max_retries": 0},
        "rate_limit": {"store": "redis", "requests": 2, "tokens": 10**6, "address_requests": 0, "on_failure": policy},
        "plugins": {"ratelimit_redis": {"url": redis.url}},
    }
    browser = AsyncClient()

    async def kill() -> None:
        redis.kill()

    events = await ask(browser, [QUERY, kill], ["Well."])
    assert [event["type"] for event in events[:2]] == ["tool_call", "tool_result"]
    assert events[-1].get("code") == end
    assert "rate-limit store failed" in caplog.text
    refused = await ask(browser, ["Well."])
    assert refused[-1].get("code") == end, "as long as it is away"
    redis.start()
    ends = [(await ask(browser, ["Well."]))[-1].get("code") for _ in range(3)]
    assert ends == [None, None, "rate_limited"], "it kept nothing, and counts anew"
