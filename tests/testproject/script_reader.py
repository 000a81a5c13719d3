"""A model that knows what to call and to say to each question, by the scripts of the packaged datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from gm_chat.providers.base import BaseLLMProvider, DoneEvent, TextChunkEvent, TokenUsage, ToolCallEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from gm_chat.providers.base import CallOptions, ChatEvent, Message, ToolDefinition

__all__ = ["ScriptReader"]


class ScriptReader(BaseLLMProvider):
    """Makes one call after the other, and then gives the answer; to what is not in ``known`` it says a word."""

    known: ClassVar[Mapping[str, tuple[Sequence[Mapping[str, Any]], str]]] = {}

    async def complete(
        self, messages: list[Message], tools: list[ToolDefinition], *, options: CallOptions | None = None
    ) -> AsyncIterator[ChatEvent]:
        said = [message.content.rpartition("</managers>\n\n")[2] for message in messages]
        asked = max(at for at, text in enumerate(said) if text in self.known or messages[at].role == "user")
        calls, answer = self.known.get(said[asked], ((), "All right."))
        made = sum(message.role == "tool" for message in messages[asked:])
        if made < len(calls):
            ((name, args),) = calls[made].items()
            yield ToolCallEvent(str(made), name, args)
        else:
            yield TextChunkEvent(answer)
        yield DoneEvent(TokenUsage(10, 5))
