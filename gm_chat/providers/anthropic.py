"""The door to ``gm-chat-provider-anthropic``. (Specification: "Provider adapters".)"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gm_chat.providers.door import plugin_attribute

if TYPE_CHECKING:
    from gm_chat_provider_anthropic import AnthropicProvider as AnthropicProvider

__all__ = ["AnthropicDependencyImportError", "AnthropicProvider"]


class AnthropicDependencyImportError(ImportError):
    """The Anthropic SDK, or the plugin that brings it, is not installed."""


def __getattr__(name: str) -> Any:
    if name == "AnthropicProvider":
        return plugin_attribute(
            "gm_chat_provider_anthropic", name, missing=AnthropicDependencyImportError, extra="chat-anthropic"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
