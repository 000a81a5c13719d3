"""What is left out of a request that was refused for it, and what is sent then."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from gm_chat_provider_anthropic import AnthropicProvider
from gm_chat_provider_anthropic.recovery import without, without_refused

from gm_chat.providers.base import CallOptions, DoneEvent, Message, ProviderError, ToolCallEvent
from gm_chat.testing.contract import QUESTION, TOOLS, collect
from gm_chat.testing.replay import ReplayServer, Reply

RECORDINGS = Path(__file__).parent / "recordings"
TEXT = Reply((RECORDINGS / "text.sse").read_bytes())
THINKING = Reply((RECORDINGS / "thinking.sse").read_bytes())
PATH = "/v1/messages"
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "x"}
REDACTED = {"type": "redacted_thinking", "data": "x"}
CALL = {"type": "tool_use", "id": "a", "name": "query", "input": {}}
BODY: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "thinking"}]},
        {"role": "assistant", "content": [THOUGHT, REDACTED, CALL]},
    ],
    "tool_choice": {"type": "any"},
    "output_config": {"format": {}},
    "thinking": {"type": "enabled", "budget_tokens": 1024},
}


@pytest.mark.parametrize(
    ("refusal", "name"),
    [
        ("invalid_request_error: output_config.format: Extra inputs are not permitted", "output_config"),
        ("This model does not support structured outputs", "output_config"),
        ("The compiled grammar is too large", "output_config"),
        ("Thinking may not be enabled when tool_choice forces tool use.", "tool_choice"),
        ("forced tool use is not supported for this model", "tool_choice"),
        ('"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive"', "thinking"),
        ("messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to ...", "thinking"),
        ("messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`", "thinking"),
    ],
)
def test_the_refusal_says_what(refusal: str, name: str) -> None:
    recovered = without_refused(BODY, refusal)
    assert recovered is not None
    assert recovered == (name, without(BODY, name))
    assert name not in recovered[1]


@pytest.mark.parametrize("refusal", ["prompt is too long", "max_tokens: 9 > 8", "model: claude-x", ""])
def test_what_cannot_be_left_out_stays_a_refusal(refusal: str) -> None:
    assert without_refused(BODY, refusal) is None


@pytest.mark.parametrize("refusal", ["output_config", "tool_choice", "thinking"])
def test_nothing_is_left_out_twice(refusal: str) -> None:
    body = {"model": "m", "messages": BODY["messages"][:1], "tool_choice": {"type": "none"}}
    assert without_refused(body, refusal) is None


def test_without_thinking_the_thoughts_are_gone_and_all_else_is_there() -> None:
    shorter = without(BODY, "thinking")
    assert shorter["messages"] == [BODY["messages"][0], {"role": "assistant", "content": [CALL]}]
    assert BODY["messages"][1]["content"][0] is THOUGHT, "the body that was sent is as it was"
    assert shorter.keys() == BODY.keys() - {"thinking"}


def provider(server: ReplayServer, **config: Any) -> AnthropicProvider:
    return AnthropicProvider.from_config({"base_url": server.url, **config})


def refusal(message: str, status: int = 400) -> Reply:
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    return Reply(json.dumps(body).encode(), status, "application/json")


class TestRefusals:
    async def test_what_a_model_never_takes_is_left_out_from_then_on(self, caplog: pytest.LogCaptureFixture) -> None:
        options = CallOptions(response_format={"type": "object"})
        async with ReplayServer() as server:
            server.reply(PATH, refusal("output_config.format is not supported"), TEXT)
            with caplog.at_level(logging.WARNING):
                first = await collect(provider(server), options=options)
                second = await collect(provider(server), options=options)
        assert first == second
        assert ["output_config" in request.json() for request in server.requests] == [True, False, False]
        assert "without 'output_config'" in caplog.text

    async def test_a_model_that_cannot_be_forced_still_answers_and_still_obeys_none(self) -> None:
        async with ReplayServer() as server:
            server.reply(PATH, refusal("tool_choice: forced tool use is not supported"), TEXT)
            for choice in ("required", "none"):
                await collect(provider(server), tools=TOOLS, options=CallOptions(tool_choice=choice))  # type: ignore[arg-type]  # both are
        kinds = [request.json().get("tool_choice", {}).get("type") for request in server.requests]
        assert kinds == ["any", None, "none"]

    async def test_a_thought_that_has_lost_its_beginnings_does_not_wedge_the_conversation(self) -> None:
        async with ReplayServer() as server:
            server.reply(PATH, THINKING)
            mine = provider(server, max_tokens=4096, thinking_budget=1024)
            *_, done = seen = await collect(mine, tools=TOOLS)
            assert isinstance(done, DoneEvent)
            calls = tuple(event for event in seen if isinstance(event, ToolCallEvent))
            history = [
                *QUESTION,
                Message("assistant", "I look at both.", calls, provider="anthropic", metadata=done.metadata),
                *(Message("tool", "[1]", tool_call_id=call.id) for call in calls),
            ]
            bound = "messages.1.content.0: Invalid `signature` in `thinking` block"
            server.reply(PATH, refusal(bound), TEXT)
            await collect(mine, history, TOOLS)
            await collect(mine, history, TOOLS)
        _, refused, sent, later = (request.json() for request in server.requests)
        kinds = [[block["type"] for block in body["messages"][1]["content"]] for body in (refused, sent, later)]
        said = ["text", "tool_use", "tool_use"]
        assert kinds == [["thinking", "redacted_thinking", *said], said, ["thinking", "redacted_thinking", *said]]
        assert ["thinking" in body for body in (refused, sent, later)] == [True, False, True]

    async def test_each_is_left_out_once_and_then_the_refusal_stands(self) -> None:
        options = CallOptions(response_format={"type": "object"}, tool_choice="required")
        async with ReplayServer() as server:
            server.reply(PATH, refusal("output_config, tool_choice, thinking: no"))
            with pytest.raises(ProviderError):
                await collect(provider(server), tools=TOOLS, options=options)
        assert len(server.requests) == 3

    @pytest.mark.parametrize("status", [401, 404, 429, 500])
    async def test_only_a_bad_request_is_asked_again(self, status: int) -> None:
        options = CallOptions(response_format={"type": "object"})
        async with ReplayServer() as server:
            server.reply(PATH, refusal("output_config", status))
            with pytest.raises(ProviderError):
                await collect(provider(server), options=options)
        assert len(server.requests) == 1
