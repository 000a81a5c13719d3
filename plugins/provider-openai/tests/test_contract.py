"""The adapter, with its real SDK, against recorded streams of a real server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from gm_chat_provider_openai import OpenAIProvider
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from pydantic import TypeAdapter

from gm_chat.providers.base import CallOptions, Provider, TokenUsage
from gm_chat.testing.contract import TOOLS, ProviderContract, Recording, collect

MESSAGES: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])
TOOL_PARAMS: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionToolUnionParam])


def recorded(name: str) -> bytes:
    return (Path(__file__).parent / "recordings" / f"{name}.sse").read_bytes()


def plain(value: Any) -> Any:
    """The SDK types arrays as iterables, which pydantic validates only while they are read."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, Iterable) and not isinstance(value, str) else value


class TestOpenAI(ProviderContract):
    path: ClassVar[str] = "/v1/chat/completions"
    wire_format: ClassVar[str | None] = "openai-sse"
    terminal: ClassVar[bytes] = b'"finish_reason":"'
    text: ClassVar[Recording] = Recording(recorded("text"), text="Größe 🎉", usage=TokenUsage(32, 6, cached_tokens=14))
    tool_call: ClassVar[Recording] = Recording(
        recorded("tool_call"),
        calls=[("query", {"manager": "Part"})],
        usage=TokenUsage(158, 20, cached_tokens=8),
    )
    parallel_calls: ClassVar[Recording] = Recording(
        recorded("parallel_calls"),
        calls=[("query", {"manager": "Part"}), ("query", {"manager": "Order"})],
        usage=TokenUsage(245, 40),
    )
    cut_off: ClassVar[Recording | None] = Recording(
        recorded("cut_off"),
        calls=[("query", {})],
        errors=["cut off"],
        usage=TokenUsage(158, 12, cached_tokens=145),
    )

    def build(self, url: str, **config: Any) -> Provider:
        return OpenAIProvider.from_config({"base_url": f"{url}/v1", "api_key": "test", **config})

    def check_request(self, body: Mapping[str, Any]) -> None:
        assert body.keys() <= CompletionCreateParamsStreaming.__annotations__.keys() | {"model", "messages", "tools"}
        # Pydantic drops keys that a TypedDict lacks: equal means that nothing was foreign.
        assert plain(MESSAGES.validate_python(body["messages"])) == body["messages"]
        assert plain(TOOL_PARAMS.validate_python(body["tools"])) == body["tools"]
        calls = [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())]
        results = [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
        assert calls == results
        assert len(set(calls)) == len(calls)
        assert all(0 < len(id) <= 40 for id in calls)

    @pytest.mark.parametrize("choice", ["auto", "none", "required"])
    async def test_an_answer_round_gets_no_tools(self, choice: Any) -> None:
        async with self.serving(self.replying(self.text)) as (server, provider):
            await collect(provider, tools=TOOLS, options=CallOptions(tool_choice=choice))
        body = server.requests[0].json()
        assert ("tools" in body) == (choice != "none")
        assert body.get("tool_choice") == ("required" if choice == "required" else None)

    async def test_a_response_format_is_a_json_schema(self) -> None:
        schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
        async with self.serving(self.replying(self.text)) as (server, provider):
            await collect(provider, options=CallOptions(response_format=schema))
        assert server.requests[0].json()["response_format"] == {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": schema},
        }
