"""What goes over the wire besides the recordings: errors, credentials and clients."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from gm_chat_provider_ollama import OllamaProvider, sdk

from gm_chat.providers.base import (
    ProviderContextError,
    ProviderError,
    ProviderIncompleteError,
    ProviderMalformedError,
    TextChunkEvent,
    ToolCallEvent,
)
from gm_chat.testing.contract import TOOLS, collect, outcome
from gm_chat.testing.replay import ReplayServer, Reply

PATH = "/api/chat"
TYPE = "application/x-ndjson"
HI = {"message": {"role": "assistant", "content": "Hi"}, "done": False}
DONE = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}


def lines(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def provider(server: ReplayServer, **config: Any) -> OllamaProvider:
    return OllamaProvider.from_config({"base_url": server.url, **config})


@pytest.mark.parametrize("arguments", ['{"manager": "Part"}', None, ...])
async def test_arguments_that_the_sdks_own_models_refuse(arguments: Any) -> None:
    function = {"name": "query"} if arguments is ... else {"name": "query", "arguments": arguments}
    call = {"message": {"role": "assistant", "content": "", "tool_calls": [{"function": function}]}, "done": False}
    async with ReplayServer() as server:
        server.reply(PATH, Reply(lines(call, DONE), content_type=TYPE))
        event, _ = await collect(provider(server), tools=TOOLS)
    assert isinstance(event, ToolCallEvent)
    assert event.args == ({"manager": "Part"} if arguments == '{"manager": "Part"}' else {})


async def test_an_error_in_the_middle_of_the_stream() -> None:
    async with ReplayServer() as server:
        server.reply(PATH, Reply(lines(HI, {"error": "model runner has stopped"}), content_type=TYPE))
        seen, raised = await outcome(provider(server))
    assert len(seen) == 1
    assert type(raised) is ProviderError
    assert "model runner has stopped" in str(raised)


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (404, b'{"error": "model \'x\' not found"}', ProviderError, "model 'x' not found"),
        (400, b'{"error": "x does not support tools"}', ProviderError, "does not support tools"),
        (400, b'{"error": "the prompt exceeds the context length"}', ProviderContextError, "exceeds"),
        (500, b"[]", ProviderError, "[]"),
        (502, b"bad gateway \xff", ProviderError, "bad gateway"),
    ],
)
async def test_a_refusal(status: int, body: bytes, kind: type[ProviderError], message: str) -> None:
    async with ReplayServer() as server:
        server.reply(PATH, Reply(body, status, "application/json"))
        _, raised = await outcome(provider(server))
    assert type(raised) is kind
    assert message in str(raised)


@pytest.mark.parametrize("status", [200, 401])
async def test_a_key_that_the_server_quotes_is_not_shown(status: int) -> None:
    async with ReplayServer() as server:
        server.reply(PATH, Reply(lines({"error": "bad key sk-secret"}), status, TYPE))
        _, raised = await outcome(provider(server, api_key="sk-secret"))
    assert "bad key <api_key>" in str(raised)


async def test_rubbish_is_malformed() -> None:
    async with ReplayServer() as server:
        server.reply(PATH, Reply(lines(HI) + b"{nope}\n" + lines(DONE), content_type=TYPE))
        seen, raised = await outcome(provider(server))
    assert len(seen) == 1
    assert type(raised) is ProviderMalformedError


async def test_a_stream_cut_in_the_middle_of_a_line_is_incomplete() -> None:
    async with ReplayServer() as server:
        server.reply(PATH, Reply(lines(HI, DONE)[:-9], content_type=TYPE))
        _, raised = await outcome(provider(server))
    assert type(raised) is ProviderIncompleteError


async def test_no_server_names_the_address() -> None:
    _, raised = await outcome(OllamaProvider.from_config({"base_url": "http://127.0.0.1:1"}))
    assert type(raised) is ProviderError
    assert "http://127.0.0.1:1" in str(raised)


async def test_the_sdks_own_variable_for_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", "theirs")
    async with ReplayServer() as server:
        server.reply(f"/behind/a/proxy{PATH}", Reply(lines(HI, DONE), content_type=TYPE))
        await collect(provider(server, base_url=f"{server.url}/behind/a/proxy/"))
    assert server.requests[0].headers["authorization"] == "Bearer theirs"
    assert server.requests[0].json()["model"] == "gemma4:e4b"


async def test_the_configured_key_and_the_models_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", "theirs")
    async with ReplayServer() as server:
        server.reply(PATH, Reply(lines(HI, DONE), content_type=TYPE))
        await collect(provider(server, api_key="mine", num_ctx=8192, temperature=0))
    assert server.requests[0].headers["authorization"] == "Bearer mine"
    assert server.requests[0].json()["options"] == {"num_ctx": 8192, "temperature": 0}


@pytest.mark.parametrize("times", [1, 2])
async def test_a_connection_that_went_stale_is_replaced_once(times: int) -> None:
    """A kept connection that the server has closed ends before any byte: nobody has heard the request."""
    text, gone = Reply(lines(HI, DONE), content_type=TYPE), Reply(hang_up=True)
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

    async def one_request() -> Any:
        async with ReplayServer() as server:
            server.reply(PATH, Reply(lines(HI, DONE), content_type=TYPE))
            await collect(provider(server))
            (mine,) = sdk._POOL._loops.values()
            (client,) = mine.clients.values()
            return client

    clients = [asyncio.run(one_request()) for _ in range(2)]
    assert clients[0] is not clients[1]
    assert all(client._client.is_closed for client in clients)
    assert not sdk._POOL._loops


@pytest.mark.parametrize("form", ["native", "text"])
async def test_a_call_that_the_model_writes_as_text(form: str) -> None:
    written = '<tool_call>\n{"name": "query", "arguments": {"manager": "Part"}}\n</tool_call>'
    pieces = [{"message": {"role": "assistant", "content": piece}, "done": False} for piece in written]
    async with ReplayServer() as server:
        server.reply(PATH, Reply(lines(*pieces, DONE), content_type=TYPE))
        seen = await collect(provider(server, tool_call_format=form), tools=TOOLS)
    text = "".join(event.content for event in seen if isinstance(event, TextChunkEvent))
    calls = [(event.name, event.args) for event in seen if isinstance(event, ToolCallEvent)]
    assert (text, calls) == ((written, []) if form == "native" else ("", [("query", {"manager": "Part"})]))
