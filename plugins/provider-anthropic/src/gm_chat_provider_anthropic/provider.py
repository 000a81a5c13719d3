"""The provider class. It imports no SDK; ``complete`` and ``check_configuration`` do, at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from gm_chat.providers.adapter import completion
from gm_chat.providers.anthropic import AnthropicDependencyImportError
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
from gm_chat_provider_anthropic.config import OWN_SERVER, AnthropicConfig
from gm_chat_provider_anthropic.request import build_request
from gm_chat_provider_anthropic.stream import StreamAssembler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

__all__ = ["AnthropicProvider"]

_SDK: Final = SDKDoor("gm_chat_provider_anthropic.sdk", missing=AnthropicDependencyImportError, extra="chat-anthropic")


class AnthropicProvider(BaseLLMProvider):
    """Streams messages from Anthropic or a server that speaks the same API.

    Configuration keys: ``model`` (default ``claude-3-5-haiku-latest``), ``api_key``, ``base_url``, ``max_tokens``
    (default 1024), ``timeout_seconds`` (default 60), ``thinking_budget``, ``temperature``, ``tool_call_format``.
    (Specification: "Provider adapters", "Provider protocol".)
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset({"tool_choice", "response_format"})
    required_extra: ClassVar[str | None] = "chat-anthropic"

    @classmethod
    def check_configuration(cls, config: Mapping[str, Any] | None = None) -> list[CheckWarning]:
        """Raise :class:`AnthropicDependencyImportError` without the SDK, ``ValueError`` for an unusable value.

        Return warnings if Anthropic itself is to be called: for a retired model, and without any way in. The SDK has
        more of these than an ``api_key``, here or in the environment.
        """
        sdk = _SDK.open()
        read = AnthropicConfig.read(cls(config).provider_config)
        missing = read.missing_key("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", own_server=OWN_SERVER)
        return [*read.retired_model(), *(() if missing and sdk.is_let_in(read) else missing)]

    def complete(
        self, messages: list[Message], tools: list[ToolDefinition], *, options: CallOptions | None = None
    ) -> AsyncIterator[ChatEvent]:
        """Stream one completion: text as it comes, then the tool calls, then one ``DoneEvent``.

        Raises :class:`~gm_chat.providers.base.ProviderError` and its kinds, in the middle of the stream too.
        """
        options = options or CallOptions()
        config = AnthropicConfig.read(self.provider_config)
        body = build_request(config, messages, tools, options)
        return completion(_SDK, config, body, StreamAssembler(), tools=tools, options=options)
