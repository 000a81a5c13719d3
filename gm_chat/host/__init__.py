"""Finds plugins, checks that they keep the contract, and is the only caller of their hooks.

``wiring`` builds one :class:`PluginHost`; everybody else is handed it. A new registration hook is a line in
``registration``, a new per-turn hook a method of the facade, both beside their specification in
:mod:`gm_chat.plugin.hookspecs`.
"""

from gm_chat.host.facade import PluginHost
from gm_chat.host.problems import PluginRecord, Problem

__all__ = ["PluginHost", "PluginRecord", "Problem"]
