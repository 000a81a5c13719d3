"""What the SDK does on the wire: keys, addresses, errors, signatures that are refused, and clients."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from gm_chat_provider_google import GeminiProvider, sdk
from gm_chat_provider_google.failures import SignatureError
from gm_chat_provider_google.signatures import PLACEHOLDER

from gm_chat.providers.base import (
    DoneEvent,
    Message,
    ProviderAuthenticationError,
    ProviderContextError,
    ProviderError,
    ProviderIncompleteError,
    ProviderMalformedError,
    ProviderOverloadedError,
    ProviderQuotaError,
    TextChunkEvent,
    ToolCallEvent,
)
from gm_chat.testing.contract import QUESTION, TOOLS, collect, outcome
from gm_chat.testing.replay import ReplayServer, Reply

RECORDINGS = Path(__file__).parent / "recordings"
TEXT = Reply((RECORDINGS / "text.sse").read_bytes())
SIGNED = Reply((RECORDINGS / "signed_text.sse").read_bytes())
PATH = "/v1/models/gemini-2.5-flash:streamGenerateContent"
ENVIRONMENT = (
    *("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"),
    *("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"),
    *("GOOGLE_GENAI_API_VERSION", "GOOGLE_GENAI_HTTP_CLIENT", "GOOGLE_GENAI_CLIENT_MODE"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_API_USE_CLIENT_CERTIFICATE"),
)


@pytest.fixture(autouse=True)
def _nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)


def provider(server: ReplayServer, **config: Any) -> GeminiProvider:
    return GeminiProvider.from_config({"base_url": server.url, **config})


def events(*values: object) -> bytes:
    return b"".join(b"data: %b\r\n\r\n" % json.dumps(value).encode() for value in values)


def refusal(status: int, message: str, name: str = "INVALID_ARGUMENT", **further: Any) -> Reply:
    body = {"error": {"code": status, "message": message, "status": name, **further}}
    return Reply(json.dumps(body).encode(), status, "application/json")


CONTENT = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}}]}
STOP = {"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"}]}


@pytest.mark.parametrize(
    ("config", "environment", "sent"),
    [
        ({"api_key": "mine"}, {}, "mine"),
        ({"api_key": "mine"}, {"GEMINI_API_KEY": "theirs"}, "mine"),
        ({}, {"GEMINI_API_KEY": "theirs"}, "theirs"),
        ({}, {"GOOGLE_API_KEY": "theirs"}, "theirs"),
        ({}, {}, "not-needed"),
        ({"api_key": ""}, {"GEMINI_API_KEY": ""}, "not-needed"),
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
    (request,) = server.requests
    assert request.headers["x-goog-api-key"] == sent
    # It would be the time in which the whole answer must be complete.
    assert "x-server-timeout" not in request.headers


async def test_the_sdks_own_variable_for_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ReplayServer() as server:
        server.reply(f"/gateway{PATH}", TEXT)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", f"{server.url}/gateway/")
        await collect(GeminiProvider.from_config({}))
    assert server.requests[0].path == f"/gateway{PATH}"


@pytest.mark.parametrize(
    ("config", "environment", "named"),
    [
        ({}, "no address", "GOOGLE_GEMINI_BASE_URL"),
        ({}, "http://[::1", "GOOGLE_GEMINI_BASE_URL"),
        ({}, "http://127.0.0.1/?key=secret", "GOOGLE_GEMINI_BASE_URL"),
        ({"base_url": "http://127.0.0.1\x01"}, "", "base_url"),
    ],
)
async def test_an_address_that_is_none(
    config: dict[str, Any], environment: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", environment)
    _, raised = await outcome(GeminiProvider.from_config(config))
    assert type(raised) is ProviderError
    assert named in str(raised)
    assert "secret" not in str(raised)
    assert not raised.retryable


@pytest.mark.parametrize("model", ["gemini-x", "models/gemini-x", "tunedModels/mine"])
async def test_the_model_is_in_the_path(model: str) -> None:
    path = f"/v1/{model if '/' in model else f'models/{model}'}:streamGenerateContent"
    async with ReplayServer() as server:
        server.reply(path, TEXT)
        assert isinstance((await collect(provider(server, model=model)))[-1], DoneEvent)


async def test_no_key_for_google_itself() -> None:
    _, error = await outcome(GeminiProvider.from_config({}))
    assert isinstance(error, ProviderAuthenticationError)
    assert "provider_config['api_key']" in str(error)


async def test_vertex_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's own switch. Without credentials there is an error, not the placeholder for a key."""
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    path = "/v1beta1/publishers/google/models/gemini-2.5-flash:streamGenerateContent"
    async with ReplayServer() as server:
        server.reply(path, TEXT)
        await collect(provider(server, api_key="express"))
        assert server.requests[0].headers["x-goog-api-key"] == "express"
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "shop")
        monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "europe-west4")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/key.json")
        monkeypatch.setenv("GOOGLE_VERTEX_BASE_URL", server.url)
        _, error = await outcome(GeminiProvider.from_config({}))
    assert len(server.requests) == 1
    assert isinstance(error, ProviderAuthenticationError)
    assert "/nowhere/key.json" in str(error)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (refusal(400, "no such field"), ProviderError),
        (refusal(400, "API key not valid. Please pass a valid API key."), ProviderAuthenticationError),
        (refusal(400, "The input token count exceeds the maximum number of tokens allowed."), ProviderContextError),
        (refusal(503, "The model is overloaded.", "UNAVAILABLE"), ProviderOverloadedError),
    ],
)
async def test_a_refused_request(reply: Reply, kind: type[ProviderError]) -> None:
    async with ReplayServer() as server:
        server.reply(PATH, reply)
        _, raised = await outcome(provider(server))
    assert type(raised) is kind
    assert json.loads(reply.body)["error"]["message"] in str(raised)
    assert len(server.requests) == 1


async def test_a_redirection_is_not_followed() -> None:
    """The key would go with it."""
    async with ReplayServer() as server, ReplayServer() as other:
        other.reply(PATH, TEXT)
        server.reply(PATH, Reply(status=308, headers={"location": f"{other.url}{PATH}"}))
        _, raised = await outcome(provider(server))
    assert type(raised) is ProviderError
    assert "is base_url right" in str(raised)
    assert not raised.retryable
    assert not other.requests


async def test_a_quota_says_when_to_come_back() -> None:
    quota = Reply((RECORDINGS / "quota_error.json").read_bytes(), 429, "application/json", {"retry-after": "60"})
    async with ReplayServer() as server:
        server.reply(PATH, quota)
        _, raised = await outcome(provider(server))
    assert type(raised) is ProviderQuotaError
    assert raised.retry_after == 17.0


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"\xff\xfe", b"[]", b"[1, 2]", b"7", b"null", b'{"error": null}', b'{"error": []}', b"[" * 9999],
)
async def test_an_error_that_cannot_be_read_is_still_one(body: bytes) -> None:
    async with ReplayServer() as server:
        server.reply(PATH, Reply(body, 500, "application/json"))
        _, raised = await outcome(provider(server))
    assert type(raised) is ProviderError
    assert len(str(raised)) < 1000


@pytest.mark.parametrize("form", ["an event", "bare JSON"])
@pytest.mark.parametrize(
    ("code", "name", "kind"),
    [
        (429, "RESOURCE_EXHAUSTED", ProviderQuotaError),
        (503, "UNAVAILABLE", ProviderOverloadedError),
        (500, "INTERNAL", ProviderError),
        (None, None, ProviderError),
    ],
)
async def test_an_error_in_the_middle_of_the_stream(
    code: int | None, name: str | None, kind: type[ProviderError], form: str
) -> None:
    error = {"error": {"code": code, "message": "not any more", "status": name}}
    sent = events(error) if form == "an event" else json.dumps(error, indent=2).encode()
    async with ReplayServer() as server:
        server.reply(PATH, Reply(events(CONTENT) + sent))
        seen, raised = await outcome(provider(server))
    assert seen == [TextChunkEvent("Hi")]
    assert type(raised) is kind
    assert "not any more" in str(raised)


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


async def test_an_answer_that_is_no_stream_is_read_whole_or_not_at_all() -> None:
    """A gateway that does not know ``alt=sse`` sends the array that the API sends without it."""
    whole = json.dumps([CONTENT, STOP], indent=1).encode()
    async with ReplayServer() as server:
        server.reply(PATH, Reply(whole, content_type="application/json"), Reply(whole[:-9]))
        first, *_ = await collect(provider(server))
        _, raised = await outcome(provider(server))
    assert first == TextChunkEvent("Hi")
    assert type(raised) is ProviderIncompleteError


@pytest.mark.parametrize("source", ["the configuration", "the environment"])
@pytest.mark.parametrize("where", ["a refusal", "the stream"])
async def test_a_key_that_a_gateway_quotes_is_masked(source: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"api_key": "very-secret"} if source == "the configuration" else {}
    if not config:
        monkeypatch.setenv("GEMINI_API_KEY", "very-secret")
    error = {"error": {"message": "the key very-secret is unknown", "code": 401}}
    reply = (
        Reply(events(error)) if where == "the stream" else Reply(json.dumps(error).encode(), 401, "application/json")
    )
    async with ReplayServer() as server:
        server.reply(PATH, reply)
        _, raised = await outcome(provider(server, **config))
    assert type(raised) is ProviderAuthenticationError
    assert "very-secret" not in str(raised)
    assert "the key <api_key> is unknown" in str(raised)


class TestSignatures:
    """They come back with the next round; where Google refuses them, the conversation is not lost."""

    MISSING = refusal(400, "Function call is missing a thought_signature in functionCall parts.")
    CALL = ToolCallEvent("a", "query", {}, metadata={"model": "gemini-2.5-flash", "thoughtSignature": "b2xk"})
    HISTORY = (
        *QUESTION,
        Message("assistant", "", (CALL,), provider="google"),
        Message("tool", "[]", tool_call_id="a", tool_name="query"),
    )

    def sent(self, request: Any) -> list[str | None]:
        return [
            part.get("thoughtSignature")
            for content in request.json()["contents"]
            for part in content["parts"]
            if "functionCall" in part
        ]

    async def test_of_a_text_returns_on_the_empty_part_after_it(self) -> None:
        async with ReplayServer() as server:
            server.reply(PATH, SIGNED)
            *_, done = await collect(provider(server))
            assert isinstance(done, DoneEvent)
            said = Message("assistant", "Seven parts.", provider="google", metadata=done.metadata)
            await collect(provider(server), [*QUESTION, said, Message("user", "And orders?")])
        text, end = server.requests[1].json()["contents"][1]["parts"]
        assert text == {"text": "Seven parts."}
        assert end["text"] == ""
        assert end["thoughtSignature"].encode() in SIGNED.body

    async def test_a_refused_one_is_left_out_the_second_time(self) -> None:
        async with ReplayServer() as server:
            server.reply(PATH, self.MISSING, TEXT)
            *_, done = await collect(provider(server), self.HISTORY, TOOLS)
        assert isinstance(done, DoneEvent)
        assert list(map(self.sent, server.requests)) == [["b2xk"], [PLACEHOLDER]]

    async def test_so_is_one_that_the_stream_refuses(self) -> None:
        end = {"candidates": [{"finishReason": "MISSING_THOUGHT_SIGNATURE", "finishMessage": "part 3"}]}
        async with ReplayServer() as server:
            server.reply(PATH, Reply(events(end)), TEXT)
            await collect(provider(server), self.HISTORY, TOOLS)
        assert len(server.requests) == 2

    async def test_a_thought_before_it_is_no_beginning_of_an_answer(self) -> None:
        thought = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hm", "thought": True}]}}]}
        end = {"candidates": [{"finishReason": "MISSING_THOUGHT_SIGNATURE"}]}
        async with ReplayServer() as server:
            server.reply(PATH, Reply(events(thought, end)), TEXT)
            seen = await collect(provider(server), self.HISTORY, TOOLS)
        assert seen[0] == TextChunkEvent("")
        assert isinstance(seen[-1], DoneEvent)
        assert len(server.requests) == 2

    async def test_not_after_the_answer_has_begun(self) -> None:
        end = {"candidates": [{"finishReason": "MISSING_THOUGHT_SIGNATURE"}]}
        async with ReplayServer() as server:
            server.reply(PATH, Reply(events(CONTENT, end)), TEXT)
            seen, raised = await outcome(provider(server))
        assert seen == [TextChunkEvent("Hi")]
        assert type(raised) is SignatureError
        assert len(server.requests) == 1

    async def test_not_a_third_time(self) -> None:
        async with ReplayServer() as server:
            server.reply(PATH, self.MISSING)
            _, raised = await outcome(provider(server))
        assert type(raised) is SignatureError
        assert len(server.requests) == 2


async def test_a_call_that_is_written_as_text_is_read_if_that_is_asked_for() -> None:
    text = '{"name": "query", "arguments": {"manager": "Part"}}'
    said = {"candidates": [{"content": {"role": "model", "parts": [{"text": text, "thoughtSignature": "czE="}]}}]}
    async with ReplayServer() as server:
        server.reply(PATH, Reply(events(said, STOP)))
        native = await collect(provider(server), tools=TOOLS)
        *_, call, done = await collect(provider(server, tool_call_format="text"), tools=TOOLS)
    assert native[0] == TextChunkEvent(text)
    assert isinstance(call, ToolCallEvent)
    assert (call.name, call.args) == ("query", {"manager": "Part"})
    assert isinstance(done, DoneEvent)
    assert done.finish_reason == "tool_calls"


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
    assert len(server.requests) == 3
    assert server.requests[1].body == server.requests[2].body


def test_each_loop_has_its_own_client_and_closes_it() -> None:
    """As under WSGI: every request runs in a loop of its own."""

    async def one_request() -> Any:
        async with ReplayServer() as server:
            server.reply(PATH, TEXT)
            await collect(provider(server, model="gemini-2.5-flash"))
            await collect(provider(server, model="gemini-2.5-flash"))
            assert [request.connection for request in server.requests] == [1, 1]
            (mine,) = sdk._POOL._loops.values()
            (session,) = mine.clients.values()
            return session.http

    clients = [asyncio.run(one_request()) for _ in range(2)]
    assert clients[0] is not clients[1]
    assert all(client.is_closed for client in clients)
    assert not sdk._POOL._loops
