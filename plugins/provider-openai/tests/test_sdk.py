"""What the SDK does on the wire: keys, the usage option, errors and clients."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from gm_chat_provider_openai import OpenAIProvider, sdk

from gm_chat.providers.base import (
    DoneEvent,
    Message,
    ProviderAuthenticationError,
    ProviderContextError,
    ProviderError,
    ProviderFilteredError,
    ProviderIncompleteError,
    ProviderMalformedError,
    ProviderOverloadedError,
    ProviderQuotaError,
    TextChunkEvent,
    ToolCallEvent,
)
from gm_chat.testing.contract import TOOLS, collect, outcome
from gm_chat.testing.replay import ReplayServer, Reply

RECORDINGS = Path(__file__).parent / "recordings"
TEXT = Reply((RECORDINGS / "text.sse").read_bytes())
PATH = "/v1/chat/completions"


@pytest.fixture(autouse=True)
def _no_keys_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)


def provider(server: ReplayServer, **config: Any) -> OpenAIProvider:
    return OpenAIProvider.from_config({"base_url": f"{server.url}/v1", **config})


def events(*values: object) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(value).encode() for value in values)


WRITTEN = '```json\n{"name": "query", "arguments": {"manager": "Part"}}\n```'
CONTENT = {"choices": [{"index": 0, "delta": {"content": "Hi"}}]}
STOP = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    ("config", "environment", "sent"),
    [
        ({"api_key": "mine"}, {}, "Bearer mine"),
        ({"api_key": "mine"}, {"OPENAI_API_KEY": "theirs"}, "Bearer mine"),
        ({}, {"OPENAI_API_KEY": "theirs"}, "Bearer theirs"),
        ({}, {}, "Bearer not-needed"),
        ({"api_key": ""}, {}, "Bearer not-needed"),
    ],
)
async def test_the_key(
    config: dict[str, Any], environment: dict[str, str], sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    async with ReplayServer() as server:
        server.reply(PATH, TEXT)
        await collect(provider(server, **config))
    assert server.requests[0].headers["authorization"] == sent


async def test_the_sdks_own_variable_for_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ReplayServer() as server:
        server.reply(PATH, TEXT)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        await collect(OpenAIProvider.from_config({}))
        server.reply(PATH, TEXT)
        await collect(OpenAIProvider.from_config({"temperature": 0}))
    first, second = (request.json() for request in server.requests)
    assert first["model"] == "gpt-4.1-mini"
    assert "temperature" not in first
    assert second["temperature"] == 0


async def test_no_key_for_openai_itself() -> None:
    _, error = await outcome(OpenAIProvider.from_config({}))
    assert isinstance(error, ProviderAuthenticationError)
    assert "provider_config['api_key']" in str(error)


async def test_a_server_without_the_usage_option_is_asked_again_once() -> None:
    refusal = Reply(
        b'{"error": {"message": "Unrecognized request argument: stream_options", "type": "invalid_request_error"}}',
        status=400,
        content_type="application/json",
    )
    async with ReplayServer() as server:
        server.reply(PATH, refusal, Reply(events(CONTENT, STOP)))
        first = await collect(provider(server))
        await collect(provider(server))
    assert ["stream_options" in request.json() for request in server.requests] == [True, False, False]
    assert isinstance(first[-1], DoneEvent)
    assert not first[-1].usage.reported


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, {"message": "too long", "code": "context_length_exceeded"}, ProviderContextError),
        (400, {"message": "This model's maximum context length is 4096 tokens."}, ProviderContextError),
        (400, {"message": "no", "code": "content_filter"}, ProviderFilteredError),
        (400, {"message": "no such parameter"}, ProviderError),
        (401, {"message": "bad key", "code": "invalid_api_key"}, ProviderAuthenticationError),
        (413, {"message": "too large"}, ProviderContextError),
        (429, {"message": "pay first", "code": "insufficient_quota"}, ProviderQuotaError),
        (500, {"message": "busy", "code": "server_overloaded"}, ProviderOverloadedError),
        (529, {"message": "busy", "type": "overloaded_error"}, ProviderOverloadedError),
    ],
)
async def test_the_vendors_code_decides_before_the_status(
    status: int, error: dict[str, Any], kind: type[ProviderError]
) -> None:
    async with ReplayServer() as server:
        server.reply(PATH, Reply(json.dumps({"error": error}).encode(), status, "application/json"))
        _, raised = await outcome(provider(server))
    assert type(raised) is kind
    assert error["message"] in str(raised)
    assert raised.retryable is (kind is ProviderOverloadedError)  # else asking again would not help


async def test_a_real_servers_refusal_of_a_long_conversation() -> None:
    async with ReplayServer() as server:
        server.reply(PATH, Reply((RECORDINGS / "context_error.json").read_bytes(), 400, "application/json"))
        _, raised = await outcome(provider(server))
    assert type(raised) is ProviderContextError


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "slow down", "code": "rate_limit_exceeded"}, ProviderQuotaError),
        ({"message": "slow down", "code": 429}, ProviderQuotaError),
        ({"message": "gone", "code": "503"}, ProviderOverloadedError),
        ({"message": "broken", "type": "server_error"}, ProviderError),
    ],
)
async def test_an_error_in_the_middle_of_the_stream(error: dict[str, Any], kind: type[ProviderError]) -> None:
    async with ReplayServer() as server:
        server.reply(PATH, Reply(events(CONTENT, {"error": error})))
        seen, raised = await outcome(provider(server))
    assert len(seen) == 1
    assert type(raised) is kind
    assert error["message"] in str(raised)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"data: {not json}\n\n", id="no JSON"),
        pytest.param(b'data: "\xff\xfe"\n\n', id="no UTF-8"),
        pytest.param(b"data: " + b"[" * 100_000 + b"\n\n", id="nested too deeply"),
        pytest.param(b"data: []\n\n", id="no object"),
    ],
)
async def test_rubbish_is_malformed(body: bytes) -> None:
    async with ReplayServer() as server:
        server.reply(PATH, Reply(events(CONTENT) + body + events(STOP)))
        seen, raised = await outcome(provider(server))
    assert len(seen) == 1
    assert type(raised) is ProviderMalformedError


async def test_a_connection_that_breaks_after_the_end_loses_only_the_usage() -> None:
    body = events(CONTENT, STOP)
    async with ReplayServer() as server:
        server.reply(PATH, Reply(body + b"data: ", drop_at=len(body)))
        *_, done = await collect(provider(server))
    assert isinstance(done, DoneEvent)
    assert (done.finish_reason, done.usage.reported) == ("stop", False)


async def test_an_answer_that_is_no_stream_is_incomplete() -> None:
    whole = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}'
    async with ReplayServer() as server:
        server.reply(PATH, Reply(whole, content_type="application/json"))
        _, raised = await outcome(provider(server))
    assert type(raised) is ProviderIncompleteError


@pytest.mark.parametrize("source", ["the configuration", "the environment"])
async def test_a_key_that_a_gateway_quotes_is_masked(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"api_key": "sk-very-secret"} if source == "the configuration" else {}
    if not config:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    async with ReplayServer() as server:
        body = b'{"error": {"message": "the key sk-very-secret is unknown"}}'
        server.reply(PATH, Reply(body, 401, "application/json"))
        _, raised = await outcome(provider(server, **config))
    assert "sk-very-secret" not in str(raised)
    assert "the key <api_key> is unknown" in str(raised)


async def test_empty_messages_of_the_history_do_not_reach_the_wire() -> None:
    async with ReplayServer() as server:
        server.reply(PATH, TEXT)
        await collect(provider(server), [Message("user", "Hi"), Message("assistant", ""), Message("user", "Well?")])
    assert server.requests[0].json()["messages"] == [{"role": "user", "content": "Hi\n\nWell?"}]


@pytest.mark.parametrize("times", [1, 2])
async def test_a_connection_that_went_stale_is_replaced_once(times: int) -> None:
    """A kept connection that the server has closed ends before any byte: nobody has heard the request."""
    text, gone = TEXT, Reply(hang_up=True)
    async with ReplayServer() as server:
        server.reply(PATH, text, *[gone] * times, text)
        first = await collect(provider(server))
        if times == 1:
            assert await collect(provider(server)) == first
        else:
            _, raised = await outcome(provider(server))
            assert type(raised) is ProviderError
    assert [request.connection for request in server.requests] == [1, 1, 2]
    assert server.requests[1].body == server.requests[2].body


def test_each_loop_has_its_own_client_and_closes_it() -> None:
    """As under WSGI: every request runs in a loop of its own."""

    async def one_request() -> object:
        async with ReplayServer() as server:
            server.reply(PATH, TEXT)
            await collect(provider(server, model="same"))
            await collect(provider(server, model="same"))
            assert [request.connection for request in server.requests] == [1, 1]
            (mine,) = sdk._POOL._loops.values()
            (session,) = mine.clients.values()
            return session.client

    clients = [asyncio.run(one_request()) for _ in range(2)]
    assert clients[0] is not clients[1]
    assert all(client.is_closed() for client in clients)  # type: ignore[attr-defined]  # they are AsyncOpenAI
    assert not sdk._POOL._loops


@pytest.mark.parametrize("form", ["native", "text"])
async def test_a_call_that_the_model_writes_as_text(form: str) -> None:
    written = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in WRITTEN]
    async with ReplayServer() as server:
        server.reply(PATH, Reply(events(*written, STOP)))
        seen = await collect(provider(server, tool_call_format=form), tools=TOOLS)
    text = "".join(event.content for event in seen if isinstance(event, TextChunkEvent))
    calls = [(event.name, event.args) for event in seen if isinstance(event, ToolCallEvent)]
    assert (text, calls) == ((WRITTEN, []) if form == "native" else ("", [("query", {"manager": "Part"})]))
