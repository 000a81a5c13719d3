"""The adapter, with its real SDK, against streams in Ollama's format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from gm_chat_provider_ollama import OllamaProvider
from ollama import Message, Tool
from ollama._types import ChatRequest

from gm_chat.providers.base import CallOptions, Provider, TokenUsage
from gm_chat.testing.contract import TOOLS, ProviderContract, Recording, collect

if TYPE_CHECKING:
    from collections.abc import Mapping


def recorded(name: str) -> bytes:
    return (Path(__file__).parent / "recordings" / f"{name}.ndjson").read_bytes()


class TestOllama(ProviderContract):
    path: ClassVar[str] = "/api/chat"
    wire_format: ClassVar[str | None] = "ollama-ndjson"
    content_type: ClassVar[str] = "application/x-ndjson"
    terminal: ClassVar[bytes] = b'"done":true'
    error_body: ClassVar[bytes] = b'{"error": "not today"}'
    text: ClassVar[Recording] = Recording(recorded("text"), text="Grüße 🎉 aus\nKöln", usage=TokenUsage(26, 9))
    tool_call: ClassVar[Recording] = Recording(
        recorded("tool_call"),
        calls=[("query", {"manager": "PartManager", "fields": ["name"]})],
        usage=TokenUsage(191, 28),
    )
    parallel_calls: ClassVar[Recording] = Recording(
        recorded("parallel_calls"),
        text="I look at both.",
        calls=[
            ("query", {"manager": "PartManager", "fields": ["name"]}),
            ("query", {"manager": "SupplierManager", "fields": ["name"]}),
        ],
        usage=TokenUsage(198, 56),
    )

    def build(self, url: str, **config: Any) -> Provider:
        return OllamaProvider.from_config({"base_url": url, **config})

    def check_request(self, body: Mapping[str, Any]) -> None:
        ChatRequest.model_validate(body)
        waiting: list[str] = []
        for message in body["messages"]:
            # The SDK's model drops keys that it lacks: equal means that nothing was foreign.
            assert Message.model_validate(message).model_dump(exclude_unset=True) == message
            if message["role"] == "tool":
                assert message["tool_name"] == waiting.pop(0)
                assert message["content"].strip()
                continue
            assert not waiting
            assert message["content"].strip() or message.get("tool_calls")
            waiting = [call["function"]["name"] for call in message.get("tool_calls", ())]
        assert not waiting
        for tool in body["tools"]:
            Tool.model_validate(tool)

    @pytest.mark.parametrize("choice", ["auto", "none", "required"])
    async def test_an_answer_round_gets_no_tools(self, choice: Any) -> None:
        async with self.serving(self.replying(self.text)) as (server, provider):
            await collect(provider, tools=TOOLS, options=CallOptions(tool_choice=choice))
        assert ("tools" in server.requests[0].json()) == (choice != "none")

    async def test_schemas_go_out_whole(self) -> None:
        async with self.serving(self.replying(self.text)) as (server, provider):
            await collect(provider, tools=TOOLS)
        (tool,) = server.requests[0].json()["tools"]
        assert tool["function"]["parameters"] == TOOLS[0].input_schema

    async def test_a_response_format_is_the_schema(self) -> None:
        schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
        async with self.serving(self.replying(self.text)) as (server, provider):
            await collect(provider, options=CallOptions(response_format=schema))
        assert server.requests[0].json()["format"] == schema

    @pytest.mark.parametrize(
        ("config", "sent"), [({}, {"num_ctx": 16384}), ({"num_ctx": 9000}, {"num_ctx": 9000}), ({"num_ctx": 0}, None)]
    )
    async def test_the_context_window_is_sent(self, config: Any, sent: Any) -> None:
        async with self.serving(self.replying(self.text), **config) as (server, provider):
            await collect(provider)
        assert server.requests[0].json().get("options") == sent
