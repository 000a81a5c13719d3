"""The provider class. It imports no SDK; ``complete`` and ``check_configuration`` do, at first use."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, ClassVar, Final

from gm_chat.providers.adapter import completion
from gm_chat.providers.base import (
    BaseLLMProvider,
    CallOptions,
    Capability,
    ChatEvent,
    CheckWarning,
    Message,
    TextChunkEvent,
    ToolDefinition,
)
from gm_chat.providers.door import SDKDoor
from gm_chat.providers.google import GoogleDependencyImportError
from gm_chat_provider_google.config import GoogleConfig
from gm_chat_provider_google.failures import SignatureError
from gm_chat_provider_google.request import build_request, wire_name
from gm_chat_provider_google.stream import StreamAssembler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

__all__ = ["GeminiProvider", "GoogleProvider"]

_SDK: Final = SDKDoor("gm_chat_provider_google.sdk", missing=GoogleDependencyImportError, extra="chat-google")

_KEYS: Final = ("GEMINI_API_KEY", "GOOGLE_API_KEY")


class GeminiProvider(BaseLLMProvider):
    """Streams answers of Google's Gemini models, from the Gemini API or, if the environment says so, Vertex AI.

    Configuration keys: those of :class:`~gm_chat_provider_google.config.GoogleConfig`, ``model`` being
    ``gemini-2.5-flash`` by default. (Specification: "Provider adapters", "Provider protocol".)
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset({"tool_choice", "response_format"})
    required_extra: ClassVar[str | None] = "chat-google"

    @classmethod
    def check_configuration(cls, config: Mapping[str, Any] | None = None) -> list[CheckWarning]:
        """Raise :class:`GoogleDependencyImportError` without the SDK, ``ValueError`` for an unusable value.

        Return a warning if there is no ``api_key`` for Google's Gemini API, here or in the environment. Vertex AI,
        which the SDK's environment chooses, has other ways to let one in.
        """
        sdk = _SDK.open()
        read = GoogleConfig.read(cls(config).provider_config)
        return [] if sdk.uses_vertex() else read.missing_key(*_KEYS, own_server="GOOGLE_GEMINI_BASE_URL")

    async def complete(
        self, messages: list[Message], tools: list[ToolDefinition], *, options: CallOptions | None = None
    ) -> AsyncIterator[ChatEvent]:
        """Stream one completion: text as it comes, then the tool calls, then one ``DoneEvent``.

        Raises :class:`~gm_chat.providers.base.ProviderError` and its kinds, in the middle of the stream too.

        If Google refuses the thought signatures of the history, it is sent once more without them: one can become void
        (another account, another model behind the same name) and would then block its conversation for good.
        """
        config = GoogleConfig.read(self.provider_config)
        asked = options or CallOptions()
        names = {wire_name(tool.name): tool.name for tool in tools}
        has_begun = False
        for signed in (True, False):
            body = build_request(config, messages, tools, asked, signed=signed)
            assembler = StreamAssembler(config.model, names)
            try:
                async with aclosing(completion(_SDK, config, body, assembler, tools=tools, options=asked)) as events:
                    async for event in events:
                        has_begun = has_begun or event != TextChunkEvent("")  # that is a sign of life
                        yield event
                return
            except SignatureError:
                if has_begun or not signed:
                    raise


GoogleProvider = GeminiProvider
