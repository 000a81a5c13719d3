"""The adapter, with its real SDK, against recorded streams of a real server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from gm_chat_provider_anthropic import AnthropicProvider

from gm_chat.providers.base import CallOptions, Provider, TokenUsage
from gm_chat.testing.contract import TOOLS, ProviderContract, Recording, collect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def recorded(name: str) -> bytes:
    return (Path(__file__).parent / "recordings" / f"{name}.sse").read_bytes()


class TestAnthropic(ProviderContract):
    path: ClassVar[str] = "/v1/messages"
    terminal: ClassVar[bytes] = b'"message_stop"'
    wire_format: ClassVar[str | None] = "anthropic-sse"
    error_body: ClassVar[bytes] = b'{"type": "error", "error": {"type": "api_error", "message": "not today"}}'
    text: ClassVar[Recording] = Recording(recorded("text"), text="Grüßes 🎉 aus Köln", usage=TokenUsage(35, 9))
    tool_call: ClassVar[Recording] = Recording(
        recorded("tool_call"),
        calls=[("query", {"manager": "PartManager", "fields": ["Name"]})],
        usage=TokenUsage(188, 28, cached_tokens=4),
    )
    parallel_calls: ClassVar[Recording] = Recording(
        recorded("thinking"),
        text="I look at both.",
        calls=[("query", {"manager": "PartManager"}), ("query", {})],
        usage=TokenUsage(1535, 115, cached_tokens=1200, thinking_tokens=40),
    )
    cut_off: ClassVar[Recording | None] = Recording(
        recorded("cut_off"),
        calls=[("query", {})],
        errors=["cut off"],
        usage=TokenUsage(188, 18, cached_tokens=187),
    )

    def build(self, url: str, **config: Any) -> Provider:
        return AnthropicProvider.from_config({"base_url": url, "api_key": "test", **config})

    @pytest.fixture(autouse=True)
    def _checker(self, check_body: Callable[[Mapping[str, Any]], None]) -> None:
        self._check_body = check_body

    def check_request(self, body: Mapping[str, Any]) -> None:
        self._check_body(body)

    @pytest.mark.parametrize("choice", ["auto", "none", "required"])
    async def test_the_choice_of_a_tool(self, choice: Any) -> None:
        async with self.serving(self.replying(self.text)) as (server, provider):
            await collect(provider, tools=TOOLS, options=CallOptions(tool_choice=choice))
        body = server.requests[0].json()
        self.check_request(body)
        assert body["tools"]
        assert body.get("tool_choice") == {"auto": None, "none": {"type": "none"}, "required": {"type": "any"}}[choice]
