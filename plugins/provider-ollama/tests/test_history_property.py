"""Whatever a conversation holds, the request that it becomes satisfies the SDK's own types."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gm_chat_provider_ollama.config import OllamaConfig
from gm_chat_provider_ollama.request import build_request
from hypothesis import given
from ollama import Message as OllamaMessage
from ollama._types import ChatRequest

from gm_chat.providers.base import CallOptions
from gm_chat.testing.histories import TOOLS
from gm_chat.testing.strategies import requests_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gm_chat.providers.base import Message

CONFIG = OllamaConfig.read({"model": "qwen"})


@given(requests_to("ollama"))
def test_any_prefix_of_any_history_is_a_valid_request(messages: Sequence[Message]) -> None:
    body = build_request(CONFIG, messages, TOOLS, CallOptions())
    ChatRequest.model_validate(body)
    assert json.loads(json.dumps(body, ensure_ascii=False).encode()) == body

    assert body["messages"][-1]["role"] == "user"
    waiting: list[str] = []
    for message in body["messages"]:
        # The SDK's model drops keys that it lacks: equal means that nothing was foreign.
        assert OllamaMessage.model_validate(message).model_dump(exclude_unset=True) == message
        if message["role"] == "tool":
            assert message["tool_name"] == waiting.pop(0)
            assert message["content"].strip()
            continue
        assert not waiting
        assert message["content"].strip() or message.get("tool_calls")
        waiting = [call["function"]["name"] for call in message.get("tool_calls", ())]
    assert not waiting
