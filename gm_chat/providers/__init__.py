"""Language-model providers: the neutral contract in ``base``, and one door per provider to its plugin.

``OpenAIProvider`` and ``OllamaProvider`` are found here, and in their own modules, as soon as their plugin is
installed; the classes are looked up on first access, so that importing this package imports no plugin and no SDK.
The other modules hold what every adapter needs and a plugin may use: ``history`` (repair before conversion),
``arguments`` (reading a tool call's JSON), ``failures`` (mapping errors) and ``pool`` (clients per event loop).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from gm_chat.providers.ollama import OllamaProvider as OllamaProvider
    from gm_chat.providers.openai import OpenAIProvider as OpenAIProvider

__all__ = ["OllamaProvider", "OpenAIProvider"]

_DOORS: Final = {
    "OllamaProvider": "gm_chat.providers.ollama",
    "OpenAIProvider": "gm_chat.providers.openai",
}


def __getattr__(name: str) -> Any:
    if name in _DOORS:
        return getattr(importlib.import_module(_DOORS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
