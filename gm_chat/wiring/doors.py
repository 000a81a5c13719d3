"""What :mod:`gm_chat.doors` leads to: the Runtime that serves this process at the moment of the call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gm_chat.engine.messages import Call
from gm_chat.engine.tools import Toolbox
from gm_chat.host.providers import resolve
from gm_chat.plugin import Actor, TurnContext
from gm_chat.wiring.runtime import get_runtime

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gm_chat.engine.audit import AuditTrail
    from gm_chat.plugin import ProviderSpec, ToolDefinition, ToolSpec
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

    @property
    def read_tools(self) -> Sequence[ToolDefinition]:
        """The chat's tools that change nothing."""
        return [tool.definition for tool in self._reading]

    async def read(self, name: str, args: Mapping[str, Any], scope: Mapping[str, Any]) -> Any:
        """Run a read tool as the ``user`` of a scope, with everything that is asked of a call in a turn."""
        user = scope.get("user")
        actor = Actor() if user is None or not user.is_authenticated else Actor(str(user.pk), user=user)
        runtime = get_runtime()
        context = TurnContext(runtime.new_id(), None, actor, "", "terminal", scope)
        tools = Toolbox(self._reading, services=runtime, context=context)
        (answer,) = await tools.run([Call(runtime.new_id(), name, args)])
        if answer.failure is not None:
            raise answer.failure
        return answer.result

    @property
    def _reading(self) -> list[ToolSpec]:
        runtime = get_runtime()
        disabled = runtime.settings.disabled_tools
        return [tool for tool in runtime.host.tools if tool.kind == "read" and tool.definition.name not in disabled]

    def provider_spec(self, name_or_path: str) -> ProviderSpec:
        """Find a provider by a plugin's name or a class's path."""
        return resolve(name_or_path, get_runtime().host)
