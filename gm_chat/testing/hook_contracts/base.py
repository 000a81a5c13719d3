"""What every hook's contract tests share."""

# ruff: noqa: S101 (these are tests, which pytest runs from here)

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from gm_chat.plugin import (
    Actor,
    TurnContext,
)
from gm_chat.testing.hosts import make_host

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.host import PluginHost

__all__ = ["HookContract"]

SDKS: Final = ("openai", "ollama", "anthropic", "google.genai")
"""Modules that an entry-point module must not import: they cost up to two seconds in every process."""


class HookContract:
    """What holds for every plugin: it keeps the contract and implements the hook."""

    plugin: ClassVar[object]
    name: ClassVar[str] = "under_test"
    options: ClassVar[Mapping[str, Any]] = {}
    hooks: ClassVar[tuple[str, ...]] = ()

    actor: ClassVar[Actor] = Actor(user_id="1")

    def host(self) -> PluginHost:
        """A host with this plugin alone; fails if the plugin has a problem."""
        return make_host({self.name: self.plugin}, options={self.name: self.options} if self.options else {})

    def context(self) -> TurnContext:
        """A turn for the per-turn hooks."""
        return TurnContext("turn-1", "conversation-1", self.actor, "Which parts use aluminium?", "http")

    def test_it_keeps_the_contract(self) -> None:
        """No problem, and the hook is found."""
        record = self.host().plugins[0]
        assert record.state == "active"
        assert set(self.hooks) <= set(record.hooks)

    def test_importing_it_imports_no_sdk(self) -> None:
        """The entry-point module leaves the vendors' SDKs alone."""
        if isinstance(self.plugin, ModuleType):
            code = f"import sys, {self.plugin.__name__}; print([name for name in {SDKS!r} if name in sys.modules])"
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603 - our own code
            assert done.stdout.strip() == "[]", done.stdout + done.stderr
