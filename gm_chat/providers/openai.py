"""The door to ``gm-chat-provider-openai``. (Specification: "Provider adapters".)"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gm_chat.providers.door import plugin_attribute

if TYPE_CHECKING:
    from gm_chat_provider_openai import OpenAIProvider as OpenAIProvider

__all__ = ["OpenAIDependencyImportError", "OpenAIProvider"]


class OpenAIDependencyImportError(ImportError):
    """The OpenAI SDK, or the plugin that brings it, is not installed."""


def __getattr__(name: str) -> Any:
    if name == "OpenAIProvider":
        return plugin_attribute(
            "gm_chat_provider_openai", name, missing=OpenAIDependencyImportError, extra="chat-openai"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
