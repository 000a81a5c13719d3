"""A model for GeneralManager's chat, by its contract; it says the same each time, which is no plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from general_manager.chat.providers.base import DoneEvent, TextChunkEvent, TokenUsage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class TheirProvider:
    calls: ClassVar[int] = 0

    async def complete(self, messages: list[Any], tools: list[Any]) -> AsyncIterator[Any]:
        TheirProvider.calls += 1
        yield TextChunkEvent("theirs")
        yield DoneEvent(TokenUsage(1, 1))
