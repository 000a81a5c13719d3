"""What :mod:`gm_chat.doors` leads to: the Runtime that serves this process at the moment of the call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gm_chat.host.providers import resolve
from gm_chat.wiring.runtime import get_runtime

if TYPE_CHECKING:
    from gm_chat.engine.audit import AuditTrail
    from gm_chat.plugin import ProviderSpec
    from gm_chat.settings import ChatSettings

__all__ = ["Doors"]


class Doors:
    """Implements ``gm_chat.doors.CurrentRuntime``."""

    @property
    def settings(self) -> ChatSettings:
        """The chat settings."""
        return get_runtime().settings

    @property
    def audit(self) -> AuditTrail:
        """The chat's audit sinks."""
        return get_runtime().audit

    def provider_spec(self, name_or_path: str) -> ProviderSpec:
        """Find a provider by a plugin's name or a class's path."""
        return resolve(name_or_path, get_runtime().host)
