"""The door to ``gm-chat-provider-google``. (Specification: "Provider adapters".)"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gm_chat.providers.door import plugin_attribute

if TYPE_CHECKING:
    from gm_chat_provider_google import GeminiProvider as GeminiProvider
    from gm_chat_provider_google import GoogleProvider as GoogleProvider

__all__ = ["GeminiProvider", "GoogleDependencyImportError", "GoogleProvider"]


class GoogleDependencyImportError(ImportError):
    """The Google GenAI SDK, or the plugin that brings it, is not installed."""


def __getattr__(name: str) -> Any:
    if name in ("GeminiProvider", "GoogleProvider"):
        return plugin_attribute(
            "gm_chat_provider_google", name, missing=GoogleDependencyImportError, extra="chat-google"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
