"""The provider class. It imports no SDK; ``complete`` and ``check_configuration`` do, at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from gm_chat.providers.adapter import completion
from gm_chat.providers.base import (
    BaseLLMProvider,
    CallOptions,
    Capability,
    ChatEvent,
    Message,
    ToolDefinition,
)
from gm_chat.providers.door import SDKDoor
from gm_chat.providers.ollama import OllamaDependencyImportError
from gm_chat_provider_ollama.config import OllamaConfig
from gm_chat_provider_ollama.request import build_request
from gm_chat_provider_ollama.stream import StreamAssembler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

__all__ = ["OllamaProvider"]

_SDK: Final = SDKDoor("gm_chat_provider_ollama.sdk", missing=OllamaDependencyImportError, extra="chat-ollama")


class OllamaProvider(BaseLLMProvider):
    """Streams chat answers from an Ollama server.

    Configuration keys: ``model`` (default ``gemma4:e4b``), ``base_url`` (default ``http://127.0.0.1:11434``),
    ``api_key``, ``num_ctx``, ``timeout_seconds`` (default 60), ``temperature``, ``tool_call_format``.
    (Specification: "Provider adapters", "Provider protocol".)
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset({"tool_choice", "response_format"})
    required_extra: ClassVar[str | None] = "chat-ollama"

    @classmethod
    def check_configuration(cls, config: Mapping[str, Any] | None = None) -> None:
        """Raise :class:`OllamaDependencyImportError` without the SDK, ``ValueError`` for an unusable value,
        in particular :class:`~gm_chat.providers.ollama.OllamaBaseUrlError`. Nothing is sent to the server.
        """
        _SDK.open()
        OllamaConfig.read(cls(config).provider_config)

    def complete(
        self, messages: list[Message], tools: list[ToolDefinition], *, options: CallOptions | None = None
    ) -> AsyncIterator[ChatEvent]:
        """Stream one completion: text as it comes, then the tool calls, then one ``DoneEvent``.

        Raises :class:`~gm_chat.providers.base.ProviderError` and its kinds, in the middle of the stream too.
        """
        options = options or CallOptions()
        config = OllamaConfig.read(self.provider_config)
        body = build_request(config, messages, tools, options)
        return completion(_SDK, config, body, StreamAssembler(), tools=tools, options=options)
