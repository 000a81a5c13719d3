"""Language-model providers: the neutral contract in ``base``, and one door per provider to its plugin.

``OpenAIProvider``, ``AnthropicProvider`` and the others are found here, and in their own modules, as soon as their
plugins are installed; the classes are looked up on first access, so that importing this package imports no plugin and
no SDK. The other modules hold what every adapter needs and a plugin may use: ``history`` (repair before conversion),
``arguments`` (reading a tool call's JSON), ``failures`` (mapping errors) and ``pool`` (clients per event loop).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from gm_chat.providers.anthropic import AnthropicProvider as AnthropicProvider
    from gm_chat.providers.ollama import OllamaProvider as OllamaProvider
    from gm_chat.providers.openai import OpenAIProvider as OpenAIProvider

__all__ = ["AnthropicProvider", "OllamaProvider", "OpenAIProvider"]

_DOORS: Final = {
    "AnthropicProvider": "gm_chat.providers.anthropic",
    "OllamaProvider": "gm_chat.providers.ollama",
    "OpenAIProvider": "gm_chat.providers.openai",
}


def __getattr__(name: str) -> Any:
    if name in _DOORS:
        return getattr(importlib.import_module(_DOORS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
