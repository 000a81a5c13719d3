"""Whatever a conversation holds, the request that it becomes satisfies the SDK's own types and the API's rules."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gm_chat_provider_anthropic.config import AnthropicConfig
from gm_chat_provider_anthropic.request import build_request
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gm_chat.providers.base import CallOptions, Message
from gm_chat.testing.histories import TOOLS
from gm_chat.testing.strategies import requests_to

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

BLOCKS = st.sampled_from(
    [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
    ]
)
PLACES = st.integers(-1, 9)
THOUGHTS = st.lists(st.builds(dict, block=BLOCKS, characters=PLACES, calls=PLACES), min_size=1, max_size=3)
CONFIGS = st.sampled_from(
    [
        AnthropicConfig(),
        AnthropicConfig(max_tokens=4096, thinking_budget=1024),
        AnthropicConfig(thinking_budget="adaptive"),
    ]
)
OPTIONS = st.builds(CallOptions, tool_choice=st.sampled_from(["auto", "none", "required"]))


@st.composite
def with_thoughts(draw: st.DrawFn) -> list[Message]:
    """Messages some of whose own answers carry thoughts, in places that the stored text may no longer have."""
    return [
        replace(message, metadata={"thinking": draw(THOUGHTS)})
        if message.role == "assistant" and message.provider == "anthropic" and draw(st.booleans())
        else message
        for message in draw(requests_to("anthropic"))
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the one that hides keys is not looked at
@given(messages=with_thoughts(), config=CONFIGS, options=OPTIONS, has_tools=st.booleans())
def test_any_prefix_of_any_history_is_a_valid_request(
    check_body: Callable[[Mapping[str, Any]], None],
    messages: Sequence[Message],
    config: AnthropicConfig,
    options: CallOptions,
    has_tools: bool,
) -> None:
    tools = TOOLS if has_tools else []
    body = build_request(config, messages, tools, options)
    check_body(body)
    assert json.loads(json.dumps(body, ensure_ascii=False).encode()) == body
    assert body == build_request(config, messages, tools, options), "the same bytes again, or no cache is ever hit"
