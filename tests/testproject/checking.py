"""A chat of a test's own making, for the checks to judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gm_chat.managers.api import FieldInfo, ManagerInfo, MutationInfo
from gm_chat.plugin import CheckResult, ProviderSpec, hookimpl
from gm_chat.providers.base import BaseLLMProvider, Provider

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CHAT = {"enabled": True, "provider": "echo"}
PART = ManagerInfo(
    name="PartManager",
    description="Parts.",
    fields=(FieldInfo(name="id", type="integer"), FieldInfo(name="name", type="string")),
    mutations=(MutationInfo(name="createPart", manager="PartManager", kind="create"),),
)


@dataclass(eq=False)
class EchoPlugin:
    """Offers the provider ``echo``, and what a test wants it to complain about."""

    check: Callable[[Mapping[str, Any] | None], Any] | None = None
    findings: list[CheckResult] = field(default_factory=list)
    extra: str | None = "chat-echo"

    @hookimpl
    def gm_chat_providers(self) -> list[ProviderSpec]:
        def build(config: Mapping[str, Any] | None) -> Provider:
            return BaseLLMProvider(config)

        return [ProviderSpec(name="echo", build=build, check=self.check, required_extra=self.extra)]

    @hookimpl
    def gm_chat_system_checks(self) -> list[CheckResult]:
        return self.findings
