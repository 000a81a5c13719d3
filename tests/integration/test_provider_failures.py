"""Failures of real adapters against a real server, as a client over HTTP sees them: mended, or told with a hint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.test import AsyncClient

from gm_chat.testing.replay import ReplayServer, Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytest.importorskip("gm_chat_provider_openai")
pytest.importorskip("gm_chat_provider_ollama")
pytestmark = pytest.mark.django_db(transaction=True)

OPENAI, OLLAMA = "/v1/chat/completions", "/api/chat"
HELLO = {"choices": [{"index": 0, "delta": {"content": "Hello."}}]}
END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
SPARE = {"message": {"content": "Hello from the spare."}, "done": True, "prompt_eval_count": 7, "eval_count": 2}


def stream(*values: object) -> Reply:
    return Reply(b"".join(b"data: %b\n\n" % json.dumps(value).encode() for value in values))


def refusal(status: int, *, retry_after: str | None = "0") -> Reply:
    headers = {} if retry_after is None else {"retry-after": retry_after}
    return Reply(b'{"error": {"message": "not now", "code": null}}', status, "application/json", headers)


ANSWER = stream(HELLO, END)
CUT = Reply(b": only a comment\n\n")


@pytest.fixture
async def server() -> AsyncIterator[ReplayServer]:
    async with ReplayServer() as running:
        running.reply(OLLAMA, Reply(json.dumps(SPARE).encode() + b"\n", content_type="application/x-ndjson"))
        yield running


async def ask(settings: Any, server: ReplayServer, *replies: Reply, fallback: bool = False, **config: Any) -> Any:
    server.reply(OPENAI, *replies)
    spare = {"provider": "ollama", "provider_config": {"base_url": server.url}, "trust_group": "ours"}
    settings.GM_CHAT = {
        "enabled": True,
        "provider": "openai",
        "provider_config": {"base_url": f"{server.url}/v1", "api_key": "k", **config},
        "provider_profiles": {"spare": spare},
        "fallback_profile": "spare" if fallback else None,
    }
    response: Any = await AsyncClient().post("/chat/", {"text": "Hello"}, content_type="application/json")
    return response.json()


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
async def test_a_failure_that_passes_is_not_seen(settings: Any, server: ReplayServer, status: int) -> None:
    body = await ask(settings, server, refusal(status), refusal(status), ANSWER)
    assert body["answer"] == "Hello."
    assert [event["type"] for event in body["events"]] == ["text_chunk", "done"]
    assert len(server.requests) == 3


async def test_a_stream_without_a_word_is_asked_for_once_more(settings: Any, server: ReplayServer) -> None:
    assert (await ask(settings, server, CUT, ANSWER))["answer"] == "Hello."
    body = await ask(settings, server, CUT, CUT, ANSWER)
    assert [event["type"] for event in body["events"]] == ["error"]
    assert len(server.requests) == 4


async def test_a_stream_that_broke_off_after_a_word_is_final(settings: Any, server: ReplayServer) -> None:
    body = await ask(settings, server, stream(HELLO), ANSWER)
    assert [event["type"] for event in body["events"]] == ["text_chunk", "error"]
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "config", "hint"),
    [
        (refusal(429, retry_after="61"), {}, 61),
        (refusal(429, retry_after="17"), {"max_retries": 0}, 17),
        (refusal(400, retry_after=None), {}, None),
        (refusal(401, retry_after=None), {}, None),
    ],
)
async def test_a_failure_that_stays_is_told_at_once(
    settings: Any, server: ReplayServer, reply: Reply, config: Any, hint: int | None
) -> None:
    body = await ask(settings, server, reply, ANSWER, **config)
    (error,) = body["events"]
    assert (error["code"], error.get("retry_after_seconds")) == ("chat_error", hint)
    assert "not now" not in json.dumps(body)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "requests"),
    [(refusal(401), 1), (refusal(404), 1), (refusal(429), 3), (refusal(429, retry_after="61"), 1), (CUT, 2)],
)
async def test_the_fallback_answers_instead(settings: Any, server: ReplayServer, reply: Reply, requests: int) -> None:
    body = await ask(settings, server, reply, fallback=True)
    assert body["answer"] == "Hello from the spare."
    assert [request.path for request in server.requests] == [OPENAI] * requests + [OLLAMA]


async def test_the_fallback_is_not_asked_what_the_first_one_refused(settings: Any, server: ReplayServer) -> None:
    reply = Reply(b'{"error": {"message": "no", "code": "content_filter"}}', 400, "application/json")
    body = await ask(settings, server, reply, fallback=True)
    assert [event["type"] for event in body["events"]] == ["error"]
    assert [request.path for request in server.requests] == [OPENAI]
