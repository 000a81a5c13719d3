"""What a plugin's tests need: hosts, contract tests, a scripted provider, a server that replays recorded bytes.

======================= ==========================================================================================
``make_host``           a plugin host from modules and objects, nothing installed (also a pytest fixture)
``hook_contracts``      one class of ready tests for each hook: inherit, name your plugin, run pytest
``ProviderContract``    ready tests for a provider's streams, over ``ReplayServer``
``ScriptedProvider``    a provider that says what a test tells it to
``MemoryServices``      everything a turn needs, in memory
======================= ==========================================================================================

Names are looked up on first use: importing this package imports none of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from gm_chat.testing.contract import ProviderContract as ProviderContract
    from gm_chat.testing.contract import Recording as Recording
    from gm_chat.testing.hosts import make_host as make_host
    from gm_chat.testing.replay import ReplayServer as ReplayServer
    from gm_chat.testing.replay import Reply as Reply
    from gm_chat.testing.scripted import ScriptedProvider as ScriptedProvider
    from gm_chat.testing.services import MemoryServices as MemoryServices

__all__ = [
    "MemoryServices",
    "ProviderContract",
    "Recording",
    "ReplayServer",
    "Reply",
    "ScriptedProvider",
    "make_host",
]

_MODULES: Final = {
    "MemoryServices": "services",
    "ProviderContract": "contract",
    "Recording": "contract",
    "ReplayServer": "replay",
    "Reply": "replay",
    "ScriptedProvider": "scripted",
    "make_host": "hosts",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
