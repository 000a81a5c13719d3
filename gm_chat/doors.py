"""Doors from functions whose arguments the specification fixes to the parts that the composition root has built.

``get_planned_chat_settings()``, ``build_profile_provider(profile)`` and ``emit_planned_audit_event(...)`` name no host
and no sink; they ask here. The app tells where its Runtime is when Django is ready, so that nothing below imports the
composition root. Whoever has a Runtime at hand passes it on and needs no door.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gm_chat.plugin.specs import ProviderSpec
    from gm_chat.providers.base import ToolDefinition

__all__ = ["CurrentRuntime", "PlannedAudit", "current_runtime", "set_runtime_source"]


class PlannedAudit(Protocol):
    """The audit's part for planned turns."""

    def planned(self, event: Mapping[str, Any]) -> None:
        """Record an event that :func:`gm_chat.planned_audit.planned_audit_event` has made."""
        ...


class CurrentRuntime(Protocol):
    """What the doors need of the Runtime."""

    @property
    def settings(self) -> Any:
        """The chat settings."""
        ...

    @property
    def audit(self) -> PlannedAudit:
        """The chat's audit sinks."""
        ...

    @property
    def read_tools(self) -> Sequence[ToolDefinition]:
        """The chat's tools that change nothing."""
        ...

    async def read(self, name: str, args: Mapping[str, Any], scope: Mapping[str, Any]) -> Any:
        """Run one of :attr:`read_tools` as the ``user`` of a scope; return its result, or ``{"error": {...}}``."""
        ...

    def provider_spec(self, name_or_path: str) -> ProviderSpec:
        """Find a provider by a plugin's name or a class's path. Raises if there is none."""
        ...


_source: Callable[[], CurrentRuntime] | None = None


def set_runtime_source(source: Callable[[], CurrentRuntime]) -> None:
    """Tell where the process's Runtime is. Called once, when Django is ready."""
    global _source  # noqa: PLW0603 (one hook for the composition root, instead of an import of it)
    _source = source


def current_runtime() -> CurrentRuntime:
    """Return the process's Runtime. Raises ``LookupError`` where the app is not installed or Django not set up."""
    if _source is None:
        raise LookupError('there is no chat in this process: add "gm_chat" to INSTALLED_APPS and call django.setup()')
    return _source()
