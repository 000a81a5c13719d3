"""The door to ``gm-chat-provider-ollama``. (Specification: "Provider adapters".)"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gm_chat.providers.door import plugin_attribute

if TYPE_CHECKING:
    from gm_chat_provider_ollama import OllamaProvider as OllamaProvider

__all__ = ["OllamaBaseUrlError", "OllamaDependencyImportError", "OllamaProvider"]


class OllamaDependencyImportError(ImportError):
    """The Ollama SDK, or the plugin that brings it, is not installed."""


class OllamaBaseUrlError(ValueError):
    """The configured ``base_url`` is not an address that Ollama's HTTP API can have.

    ``base_url`` keeps the value; the message shows it unless it may hold a password.
    """

    def __init__(self, base_url: object) -> None:
        self.base_url = base_url
        is_plain = isinstance(base_url, str) and not set(base_url) & set("@?#")
        shown = repr(base_url) if is_plain else f"of type {type(base_url).__name__}"
        super().__init__(
            f"provider_config['base_url'] is {shown}: expected http:// or https:// with a host and perhaps a port "
            "and a path, without user name, query or fragment, e.g. 'http://127.0.0.1:11434'"
        )


def __getattr__(name: str) -> Any:
    if name == "OllamaProvider":
        return plugin_attribute(
            "gm_chat_provider_ollama", name, missing=OllamaDependencyImportError, extra="chat-ollama"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
