"""Whatever a conversation holds, the request that it becomes satisfies the SDK's own types."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gm_chat_provider_openai.config import OpenAIConfig
from gm_chat_provider_openai.request import build_request
from hypothesis import given
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from pydantic import TypeAdapter

from gm_chat.providers.base import CallOptions
from gm_chat.testing.histories import TOOLS
from gm_chat.testing.strategies import requests_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gm_chat.providers.base import Message

BODY: TypeAdapter[Any] = TypeAdapter(CompletionCreateParamsStreaming)


def plain(value: Any) -> Any:
    """The SDK types arrays as iterables, which pydantic validates only while they are read."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, Iterable) and not isinstance(value, str) else value


@given(requests_to("openai"))
def test_any_prefix_of_any_history_is_a_valid_request(messages: Sequence[Message]) -> None:
    body = build_request(OpenAIConfig(), messages, TOOLS, CallOptions())
    # Pydantic drops keys that a TypedDict lacks: equal means that nothing was foreign.
    assert plain(BODY.validate_python(body)) == body
    assert json.loads(json.dumps(body, ensure_ascii=False).encode()) == body

    assert [message["role"] for message in body["messages"]][-1:] == ["user"]
    waiting: list[str] = []
    seen: set[str] = set()
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            assert str(message["content"]).strip()
            continue
        assert not waiting
        calls: list[Any] = list(message.get("tool_calls", ()))  # type: ignore[call-overload]  # only some roles have it
        assert calls or str(message["content"]).strip()
        for call in calls:
            assert 0 < len(call["id"]) <= 40
            assert call["id"] not in seen
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            seen.add(call["id"])
            waiting.append(call["id"])
    assert not waiting
