"""The adapter, with its real SDK, against streams as the Gemini API sends them; whatever a conversation holds becomes
a request that satisfies the SDK's own types.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from gm_chat_provider_google import GeminiProvider
from gm_chat_provider_google.config import GoogleConfig
from gm_chat_provider_google.request import build_request
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.providers.base import CallOptions, Message, Provider, TokenUsage, ToolCallEvent
from gm_chat.testing.contract import QUESTION, TOOLS, ProviderContract, Recording, collect
from gm_chat.testing.strategies import requests_to

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RECORDINGS = Path(__file__).parent / "recordings"
PARTS: Mapping[str, Any] = {"manager": "PartManager", "fields": ["name"]}
SUPPLIERS: Mapping[str, Any] = {"manager": "SupplierManager", "fields": ["name"]}


def recorded(name: str) -> bytes:
    return (RECORDINGS / f"{name}.sse").read_bytes()


def assert_valid(body: Mapping[str, Any]) -> None:
    """Raise unless ``body`` is what the SDK's own types of the wire allow: they refuse keys that they do not know."""
    assert body.keys() <= {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig"}
    known = {"systemInstruction": types.Content, "toolConfig": types.ToolConfig}
    for key, model in {**known, "generationConfig": types.GenerationConfig}.items():
        if key in body:
            model.model_validate_json(json.dumps(body[key]))
    for tool in body.get("tools", ()):
        types.Tool.model_validate_json(json.dumps(tool))
    assert body["contents"]
    calls: list[dict[str, Any]] = []
    for number, content in enumerate(body["contents"]):
        types.Content.model_validate_json(json.dumps(content))
        assert content["role"] == body["contents"][number % 2]["role"]
        assert content["parts"]
        assert all(part.get("text") != "" or part.get("thoughtSignature") for part in content["parts"])
        results = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        assert [(item["name"], item.get("id")) for item in results] == [
            (call["name"], call.get("id")) for call in calls
        ]
        assert all(isinstance(item["response"], dict) for item in results)
        assert [*content["parts"][: len(results)]] == [{"functionResponse": item} for item in results]
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        assert not calls or content["role"] == "model"
    assert not calls


class TestGoogle(ProviderContract):
    path: ClassVar[str] = "/v1/models/gemini-2.5-flash:streamGenerateContent"
    wire_format: ClassVar[str | None] = "gemini-sse"
    terminal: ClassVar[bytes] = b'"finishReason"'
    error_body: ClassVar[bytes] = b'{"error": {"message": "not today", "code": null, "status": null, "details": null}}'
    text: ClassVar[Recording] = Recording(
        recorded("text"), text="Grüße 🎉 aus Köln", usage=TokenUsage(31, 66, thinking_tokens=58)
    )
    tool_call: ClassVar[Recording] = Recording(
        recorded("tool_call"), calls=[("query", PARTS)], usage=TokenUsage(212, 96, thinking_tokens=77)
    )
    parallel_calls: ClassVar[Recording] = Recording(
        recorded("parallel_calls"),
        calls=[("query", PARTS), ("query", SUPPLIERS), ("query", PARTS)],
        usage=TokenUsage(1288, 131, cached_tokens=1024, thinking_tokens=94),
    )

    def build(self, url: str, **config: Any) -> Provider:
        return GeminiProvider.from_config({"base_url": url, "api_key": "test", **config})

    def check_request(self, body: Mapping[str, Any]) -> None:
        assert_valid(body)

    @pytest.mark.parametrize(("choice", "mode"), [("auto", None), ("none", "NONE"), ("required", "ANY")])
    async def test_the_choice_of_tools_is_a_mode(self, choice: Any, mode: str | None) -> None:
        """The tools stay the same in every round: they begin the prefix that Gemini caches."""
        async with self.serving(self.replying(self.text)) as (server, provider):
            await collect(provider, tools=TOOLS, options=CallOptions(tool_choice=choice))
        body = server.requests[0].json()
        assert_valid(body)
        assert [item["name"] for item in body["tools"][0]["functionDeclarations"]] == ["query"]
        assert body.get("toolConfig") == (mode and {"functionCallingConfig": {"mode": mode}})

    async def test_a_response_format_is_a_json_schema(self) -> None:
        schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
        options = CallOptions(response_format=schema, tool_choice="none")
        async with self.serving(self.replying(self.text)) as (server, provider):
            await collect(provider, tools=TOOLS, options=options)
        body = server.requests[0].json()
        assert_valid(body)
        assert body["generationConfig"] == {"responseMimeType": "application/json", "responseJsonSchema": schema}
        assert "tools" not in body

    async def test_what_is_configured_is_sent(self) -> None:
        config = {"temperature": 0, "max_output_tokens": 900, "thinking_budget": 0}
        async with self.serving(self.replying(self.text), **config) as (server, provider):
            await collect(provider)
            await collect(self.build(server.url))
        first, second = (request.json() for request in server.requests)
        assert_valid(first)
        assert first["generationConfig"] == {
            "temperature": 0,
            "maxOutputTokens": 900,
            "thinkingConfig": {"thinkingBudget": 0},
        }
        assert second.keys() == {"systemInstruction", "contents"}

    async def test_a_call_returns_with_its_signature(self) -> None:
        async with self.serving(self.replying(self.parallel_calls)) as (server, provider):
            events = await collect(provider, tools=TOOLS)
            calls = tuple(event for event in events if isinstance(event, ToolCallEvent))
            results = [Message("tool", "[]", tool_call_id=call.id, tool_name=call.name) for call in calls]
            metadata = events[-1].metadata  # type: ignore[union-attr]  # a DoneEvent
            answer = Message("assistant", "", calls, provider="google", metadata=metadata)
            await collect(provider, [*QUESTION, answer, *results], TOOLS)
        model = server.requests[1].json()["contents"][1]
        signature = json.loads(self.tool_call.body.split(b"\r\n")[0][6:])["candidates"][0]["content"]["parts"][0]
        assert model["parts"] == [
            signature,
            {"functionCall": {"name": "query", "args": SUPPLIERS}},
            {"functionCall": {"name": "query", "args": PARTS}},
        ]


@given(requests_to("google"), st.booleans())
def test_any_prefix_of_any_history_is_a_valid_request(messages: Sequence[Message], signed: bool) -> None:
    body = build_request(GoogleConfig.read({}), messages, TOOLS, CallOptions(), signed=signed)
    assert json.loads(json.dumps(body, ensure_ascii=False).encode()) == body
    assert_valid(body)
    assert body["contents"][-1]["role"] == "user"
    assert body["contents"][-1]["parts"][-1].keys() == {"text"}
    assert body["contents"][0]["role"] == "user"
