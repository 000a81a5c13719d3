"""The provider class. It imports no SDK; ``complete`` and ``check_configuration`` do, at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from gm_chat.providers.adapter import completion
from gm_chat.providers.base import (
    BaseLLMProvider,
    CallOptions,
    Capability,
    ChatEvent,
    CheckWarning,
    Message,
    ToolDefinition,
)
from gm_chat.providers.door import SDKDoor
from gm_chat.providers.openai import OpenAIDependencyImportError
from gm_chat_provider_openai.config import OpenAIConfig
from gm_chat_provider_openai.request import build_request
from gm_chat_provider_openai.stream import StreamAssembler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

__all__ = ["OpenAIProvider"]

_SDK: Final = SDKDoor("gm_chat_provider_openai.sdk", missing=OpenAIDependencyImportError, extra="chat-openai")


class OpenAIProvider(BaseLLMProvider):
    """Streams chat completions from OpenAI or a server that speaks the same API.

    Configuration keys: ``model`` (default ``gpt-4.1-mini``), ``api_key``, ``base_url``, ``timeout_seconds`` (default
    60), ``temperature``, ``tool_call_format``. (Specification: "Provider adapters", "Provider protocol".)
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset({"tool_choice", "response_format"})
    required_extra: ClassVar[str | None] = "chat-openai"

    @classmethod
    def check_configuration(cls, config: Mapping[str, Any] | None = None) -> list[CheckWarning]:
        """Raise :class:`OpenAIDependencyImportError` without the SDK, ``ValueError`` for an unusable value.

        Return a warning if OpenAI itself is to be called and there is no ``api_key``, here or in the environment.
        """
        _SDK.open()
        read = OpenAIConfig.read(cls(config).provider_config)
        return read.missing_key("OPENAI_API_KEY", own_server="OPENAI_BASE_URL")

    def complete(
        self, messages: list[Message], tools: list[ToolDefinition], *, options: CallOptions | None = None
    ) -> AsyncIterator[ChatEvent]:
        """Stream one completion: text as it comes, then the tool calls, then one ``DoneEvent``.

        Raises :class:`~gm_chat.providers.base.ProviderError` and its kinds, in the middle of the stream too.
        """
        options = options or CallOptions()
        config = OpenAIConfig.read(self.provider_config)
        body = build_request(config, messages, tools, options)
        return completion(_SDK, config, body, StreamAssembler(), tools=tools, options=options)
