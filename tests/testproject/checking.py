"""A chat of a test's own making, for the checks to judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from gm_chat.managers.api import FieldInfo, ManagerInfo, MutationInfo
from gm_chat.plugin import CheckResult, ProviderSpec, hookimpl
from gm_chat.providers.base import BaseLLMProvider, DoneEvent, Provider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from gm_chat.providers.base import ChatEvent, Message, ToolDefinition

CHAT = {"enabled": True, "provider": "echo"}
PART = ManagerInfo(
    name="PartManager",
    description="Parts.",
    fields=(FieldInfo(name="id", type="integer"), FieldInfo(name="name", type="string")),
    mutations=(MutationInfo(name="createPart", manager="PartManager", kind="create"),),
)


class Bare:
    """The least that a provider is: it takes no configuration."""

    async def complete(self, messages: list[Message], tools: list[ToolDefinition]) -> AsyncIterator[ChatEvent]:
        """Say nothing."""
        yield DoneEvent()


class Strict(BaseLLMProvider):
    """Takes a ``model`` that is a text; the one called ``missing`` needs a package that is not there."""

    checked: ClassVar[list[Mapping[str, Any] | None]] = []

    @classmethod
    def check_configuration(cls, config: Mapping[str, Any] | None = None) -> None:
        """Note what is to be checked, and judge it."""
        cls.checked.append(config)
        model = (config or {}).get("model", "")
        if not isinstance(model, str):
            raise ValueError("model must be a text")
        if model == "missing":
            raise ImportError("no package 'acme'")


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
