"""What the SDK does on the wire: keys, versions, refusals, errors and clients."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from gm_chat_provider_anthropic import AnthropicProvider, sdk

from gm_chat.providers.base import (
    CallOptions,
    DoneEvent,
    ProviderAuthenticationError,
    ProviderContextError,
    ProviderError,
    ProviderIncompleteError,
    ProviderMalformedError,
    ProviderOverloadedError,
    ProviderQuotaError,
    ProviderTimeoutError,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
)
from gm_chat.testing.contract import TOOLS, collect, outcome
from gm_chat.testing.replay import ReplayServer, Reply

RECORDINGS = Path(__file__).parent / "recordings"
TEXT = Reply((RECORDINGS / "text.sse").read_bytes())
PATH = "/v1/messages"


def provider(server: ReplayServer, **config: Any) -> AnthropicProvider:
    return AnthropicProvider.from_config({"base_url": server.url, **config})


def events(*values: Any, names: bool = True) -> bytes:
    head = (lambda value: b"event: %b\n" % value["type"].encode()) if names else (lambda value: b"")
    return b"".join(b"%bdata: %b\n\n" % (head(value), json.dumps(value).encode()) for value in values)


HI = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}
END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
STOP = {"type": "message_stop"}


def refusal(kind: str, message: str, status: int = 400, **headers: str) -> Reply:
    body = {"type": "error", "error": {"type": kind, "message": message}}
    return Reply(json.dumps(body).encode(), status, "application/json", headers)


class TestKeys:
    @pytest.mark.parametrize(
        ("config", "environment", "sent"),
        [
            ({"api_key": "mine"}, {}, "Bearer mine"),
            ({"api_key": "mine"}, {"ANTHROPIC_API_KEY": "theirs"}, "Bearer mine"),
            ({"api_key": "mine"}, {"ANTHROPIC_AUTH_TOKEN": "token"}, "Bearer mine"),
            ({}, {"ANTHROPIC_API_KEY": "theirs"}, "Bearer theirs"),
            ({}, {"ANTHROPIC_AUTH_TOKEN": "token"}, "Bearer token"),
            ({}, {}, "Bearer not-needed"),
            ({"api_key": ""}, {}, "Bearer not-needed"),
        ],
    )
    async def test_the_key(
        self, config: dict[str, Any], environment: dict[str, str], sent: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        async with ReplayServer() as server:
            server.reply(PATH, TEXT)
            await collect(provider(server, **config))
        assert server.requests[0].headers["authorization"] == sent

    async def test_a_header_of_the_environment_is_a_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Api-Key: other")
        async with ReplayServer() as server:
            server.reply(PATH, TEXT)
            await collect(provider(server))
        assert server.requests[0].headers["x-api-key"] == "other"
        assert "authorization" not in server.requests[0].headers

    async def test_the_sdks_own_variable_for_the_address(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async with ReplayServer() as server:
            server.reply(PATH, TEXT)
            monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
            await collect(AnthropicProvider.from_config({}))
        assert server.requests[0].json()["model"] == "claude-3-5-haiku-latest"

    async def test_an_address_in_the_environment_that_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://[::1")
        _, error = await outcome(AnthropicProvider.from_config({}))
        assert (type(error), error.retryable) == (ProviderError, False)
        assert "ANTHROPIC_BASE_URL" in str(error)

    async def test_no_key_for_anthropic_itself(self) -> None:
        _, error = await outcome(AnthropicProvider.from_config({}))
        assert type(error) is ProviderAuthenticationError
        assert "provider_config['api_key']" in str(error)

    async def test_a_profile_that_cannot_be_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANTHROPIC_PROFILE", "nobody")
        async with ReplayServer() as server:
            _, error = await outcome(provider(server))
        assert type(error) is ProviderAuthenticationError

    @pytest.mark.parametrize("source", ["the configuration", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"])
    @pytest.mark.parametrize("where", ["refused", "in the stream"])
    async def test_a_key_that_a_gateway_quotes_is_masked(
        self, source: str, where: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        config = {"api_key": "sk-ant-secret"} if source == "the configuration" else {}
        if not config:
            monkeypatch.setenv(source, "sk-ant-secret")
        error = {"type": "error", "error": {"type": "authentication_error", "message": "the key sk-ant-secret is bad"}}
        body = json.dumps(error).encode()
        async with ReplayServer() as server:
            server.reply(PATH, Reply(body, 401, "application/json") if where == "refused" else Reply(events(error)))
            _, raised = await outcome(provider(server, **config))
        assert type(raised) is ProviderAuthenticationError
        assert "the key <api_key> is bad" in str(raised)
        assert "sk-ant-secret" not in str(raised)


class TestVersions:
    async def test_a_temperature_asks_for_the_version_that_has_one(self) -> None:
        async with ReplayServer() as server:
            server.reply(PATH, TEXT)
            await collect(provider(server))
            await collect(provider(server, temperature=0))
        without, with_temperature = server.requests
        assert "temperature" not in without.json()
        assert without.headers["anthropic-version"] >= "2026-10-21"
        assert with_temperature.json()["temperature"] == 0
        assert with_temperature.headers["anthropic-version"] == "2023-06-01"

    async def test_a_schema_is_brought_into_the_form_that_the_api_takes(self) -> None:
        schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}
        unreadable = {"properties": {"n": {"type": ["integer", "null"]}}}
        async with ReplayServer() as server:
            server.reply(PATH, TEXT)
            for given in (schema, unreadable):
                await collect(provider(server), options=CallOptions(response_format=given))
        first, second = (request.json()["output_config"]["format"]["schema"] for request in server.requests)
        assert first["additionalProperties"] is False
        assert "minimum" not in first["properties"]["n"]
        assert second == unreadable


class TestErrors:
    @pytest.mark.parametrize(
        ("status", "type_", "message", "kind"),
        [
            (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", ProviderContextError),
            (400, "invalid_request_error", "input and `max_tokens` exceed context limit", ProviderContextError),
            (400, "invalid_request_error", "messages: at least one message is required", ProviderError),
            (401, "authentication_error", "invalid key", ProviderAuthenticationError),
            (402, "billing_error", "pay first", ProviderQuotaError),
            (403, "permission_error", "not yours", ProviderAuthenticationError),
            (404, "not_found_error", "model: claude-3-5-haiku-latest", ProviderError),
            (413, "request_too_large", "too many bytes", ProviderContextError),
            (429, "rate_limit_error", "slow down", ProviderQuotaError),
            (500, "api_error", "broken", ProviderError),
            (500, "overloaded_error", "the type decides", ProviderOverloadedError),
            (504, "timeout_error", "took too long", ProviderTimeoutError),
            (529, "overloaded_error", "Overloaded", ProviderOverloadedError),
        ],
    )
    async def test_a_refused_request(self, status: int, type_: str, message: str, kind: type[ProviderError]) -> None:
        reply = refusal(type_, message, status, **{"retry-after": "3", "request-id": "req_7"})
        async with ReplayServer() as server:
            server.reply(PATH, reply)
            _, raised = await outcome(provider(server))
        assert type(raised) is kind
        assert raised.retry_after == 3
        assert raised.retryable == (status in (429, 500, 529))
        assert f"{type_}: {message} (req_7)" in str(raised)

    async def test_a_real_servers_refusal_of_a_long_conversation(self) -> None:
        async with ReplayServer() as server:
            server.reply(PATH, Reply((RECORDINGS / "context_error.json").read_bytes(), 400, "application/json"))
            _, raised = await outcome(provider(server))
        assert type(raised) is ProviderContextError

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            ({"type": "overloaded_error", "message": "Overloaded"}, ProviderOverloadedError),
            ({"type": "rate_limit_error", "message": "slow down"}, ProviderQuotaError),
            ({"type": "api_error", "message": "broken"}, ProviderError),
            ({"type": "invalid_request_error", "message": "late"}, ProviderError),
            ({"message": "nameless"}, ProviderError),
            ("bare", ProviderError),
        ],
    )
    @pytest.mark.parametrize("names", [True, False])
    async def test_an_error_in_the_middle_of_the_stream(
        self, error: Any, kind: type[ProviderError], names: bool
    ) -> None:
        async with ReplayServer() as server:
            server.reply(PATH, Reply(events(HI, {"type": "error", "error": error}, END, STOP, names=names)))
            seen, raised = await outcome(provider(server))
        assert seen == [TextChunkEvent("Hi")]
        assert type(raised) is kind
        assert raised.retryable == ("late" not in str(raised))
        assert (error if isinstance(error, str) else error["message"]) in str(raised)

    @pytest.mark.parametrize("data", ["upstream timeout", '{"error": {"message": "upstream timeout"}}', "[]", '"x"'])
    async def test_an_error_of_another_shape(self, data: str) -> None:
        async with ReplayServer() as server:
            server.reply(PATH, Reply(events(HI) + b"event: error\ndata: %b\n\n" % data.encode()))
            seen, raised = await outcome(provider(server))
        assert len(seen) == 1
        assert type(raised) is ProviderError
        assert "upstream timeout" in str(raised) or data in ("[]", '"x"')

    @pytest.mark.parametrize(
        "body",
        [
            pytest.param(b"event: x\ndata: {not json}\n\n", id="no JSON"),
            pytest.param(b'event: x\ndata: "\xff\xfe"\n\n', id="no UTF-8"),
            pytest.param(b"event: x\ndata: " + b"[" * 100_000 + b"\n\n", id="nested too deeply"),
            pytest.param(b"event: x\ndata: []\n\n", id="no object"),
        ],
    )
    async def test_rubbish_is_malformed(self, body: bytes) -> None:
        async with ReplayServer() as server:
            server.reply(PATH, Reply(events(HI) + body + events(END, STOP)))
            seen, raised = await outcome(provider(server))
        assert len(seen) == 1
        assert type(raised) is ProviderMalformedError

    async def test_an_answer_that_is_no_stream_is_incomplete(self) -> None:
        whole = b'{"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Hi"}]}'
        async with ReplayServer() as server:
            server.reply(PATH, Reply(whole, content_type="application/json"))
            _, raised = await outcome(provider(server))
        assert type(raised) is ProviderIncompleteError

    async def test_an_address_with_a_password_is_not_shown(self) -> None:
        mine = AnthropicProvider.from_config({"base_url": "http://me:pa55word@127.0.0.1:9"})
        _, raised = await outcome(mine)
        assert type(raised) is ProviderError
        assert "cannot reach http://127.0.0.1:9/v1/messages" in str(raised)


class TestStreams:
    async def test_events_without_a_name_are_read(self) -> None:
        async with ReplayServer() as server:
            server.reply(PATH, Reply(events(HI, END, STOP, names=False)))
            first, last = await collect(provider(server))
        assert first == TextChunkEvent("Hi")
        assert isinstance(last, DoneEvent)

    async def test_events_without_a_type_have_their_name(self) -> None:
        async with ReplayServer() as server:
            server.reply(PATH, Reply(events(HI, END) + b"event: message_stop\ndata: {}\n\n"))
            assert len(await collect(provider(server))) == 2

    @pytest.mark.parametrize("behind", [b"", b"data: [DONE]\n\n", b": keep-alive\n\n"])
    async def test_a_gateway_that_keeps_the_response_open_does_not_hold_the_answer_up(self, behind: bytes) -> None:
        body = events(HI, END, STOP) + behind
        async with ReplayServer() as server:
            server.reply(PATH, Reply(body, stall_at=len(body)))
            began = time.monotonic()
            *_, last = await collect(provider(server, timeout_seconds=60))
            assert time.monotonic() - began < 30
            await server.requests[0].closed_by_client(within=1.0)
        assert isinstance(last, DoneEvent)

    async def test_what_follows_the_end_is_not_read(self) -> None:
        async with ReplayServer() as server:
            server.reply(PATH, Reply(events(HI, END, STOP, HI) + b"data: {rubbish\n\n" + events(HI, END, STOP)))
            assert len(await collect(provider(server))) == 2
            await collect(provider(server))
        assert [request.connection for request in server.requests] == [1, 1]

    async def test_a_connection_that_breaks_after_the_end_loses_nothing(self) -> None:
        body = events(HI, END, STOP)
        async with ReplayServer() as server:
            server.reply(PATH, Reply(body + b"data: ", drop_at=len(body)))
            assert len(await collect(provider(server))) == 2

    async def test_parallel_calls_of_a_real_server(self) -> None:
        async with ReplayServer() as server:
            server.reply(PATH, Reply((RECORDINGS / "parallel_calls.sse").read_bytes()))
            first, second, done = await collect(provider(server), tools=TOOLS)
        assert isinstance(first, ToolCallEvent)
        assert isinstance(second, ToolCallEvent)
        assert [first.args, second.args] == [
            {"manager": "PartManager", "fields": ["name"]},
            {"manager": "SupplierManager", "fields": ["name"]},
        ]
        assert done == DoneEvent(TokenUsage(320, 56, cached_tokens=4), "tool_calls", "local")

    @pytest.mark.parametrize("choice", ["auto", "none"])
    async def test_a_call_as_text_is_read_where_that_is_asked_for(self, choice: Any) -> None:
        call = '{"name": "query", "arguments": {"manager": "Part"}}'
        said = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": call}}
        async with ReplayServer() as server:
            server.reply(PATH, Reply(events(said, END, STOP)))
            seen = await collect(
                provider(server, tool_call_format="text"), tools=TOOLS, options=CallOptions(tool_choice=choice)
            )
        calls = [dict(event.args) for event in seen if isinstance(event, ToolCallEvent)]
        assert calls == ([{"manager": "Part"}] if choice == "auto" else [])


class TestClients:
    @pytest.mark.parametrize("times", [1, 2])
    async def test_a_connection_that_went_stale_is_replaced_once(self, times: int) -> None:
        """A kept connection that the server has closed ends before any byte: nobody has heard the request."""
        async with ReplayServer() as server:
            server.reply(PATH, TEXT, *[Reply(hang_up=True)] * times, TEXT)
            first = await collect(provider(server))
            if times == 1:
                assert await collect(provider(server)) == first
            else:
                _, raised = await outcome(provider(server))
                assert type(raised) is ProviderError
        assert [request.connection for request in server.requests] == [1, 1, 2]
        assert server.requests[1].body == server.requests[2].body

    def test_each_loop_has_its_own_client_and_closes_it(self) -> None:
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
        assert all(client.is_closed() for client in clients)  # type: ignore[attr-defined]  # they are AsyncAnthropic
        assert not sdk._POOL._loops
