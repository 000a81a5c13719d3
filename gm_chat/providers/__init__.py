"""Language-model providers: the neutral contract in ``base``, and one door per provider to its plugin.

``OpenAIProvider``, ``AnthropicProvider`` and the others are found here, and in their own modules, as soon as their
plugins are installed; the classes are looked up on first access, so that importing this package imports no plugin and
no SDK. The other modules hold what every adapter needs and a plugin may use: ``history`` (repair before conversion),
``arguments`` (reading a tool call's JSON), ``failures`` (mapping errors), ``pool`` (clients per event loop),
``adapter`` (one completion) and ``text_calls`` (calls that a model writes as text).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from gm_chat.providers.anthropic import AnthropicProvider as AnthropicProvider
    from gm_chat.providers.google import GeminiProvider as GeminiProvider
    from gm_chat.providers.google import GoogleProvider as GoogleProvider
    from gm_chat.providers.ollama import OllamaProvider as OllamaProvider
    from gm_chat.providers.openai import OpenAIProvider as OpenAIProvider

__all__ = ["AnthropicProvider", "GeminiProvider", "GoogleProvider", "OllamaProvider", "OpenAIProvider"]

_DOORS: Final = {
    "AnthropicProvider": "gm_chat.providers.anthropic",
    "GeminiProvider": "gm_chat.providers.google",
    "GoogleProvider": "gm_chat.providers.google",
    "OllamaProvider": "gm_chat.providers.ollama",
    "OpenAIProvider": "gm_chat.providers.openai",
}


def __getattr__(name: str) -> Any:
    if name in _DOORS:
        return getattr(importlib.import_module(_DOORS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
