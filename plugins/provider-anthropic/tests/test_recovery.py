"""What is left out of a request that was refused for it."""

from __future__ import annotations

from typing import Any

import pytest
from gm_chat_provider_anthropic.recovery import without, without_refused

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
