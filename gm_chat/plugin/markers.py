"""The two pluggy markers. A plugin imports ``hookimpl``; only the host uses ``hookspec``."""

from typing import Final

import pluggy

PROJECT_NAME: Final = "gm_chat"
"""The pluggy project and the entry-point group that a plugin registers in."""

CONTRACT_VERSION: Final = 1
"""Counts incompatible changes of this package. A plugin may state ``GM_CHAT_CONTRACT = 1`` in its module."""

hookspec = pluggy.HookspecMarker(PROJECT_NAME)
hookimpl = pluggy.HookimplMarker(PROJECT_NAME)
