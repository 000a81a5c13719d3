"""A model for tests with several processes, where no script can be shared: the message says what it does."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from gm_chat.providers.base import DoneEvent, TextChunkEvent, TokenUsage, ToolCallEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from gm_chat.providers.base import ChatEvent, Message, ToolDefinition


class SlowProvider:
    """``"count to 20"`` counts, ten a second; ``"add zinc"`` asks for the mutation, and then says what came of it."""

    async def complete(self, messages: list[Message], tools: list[ToolDefinition]) -> AsyncIterator[ChatEvent]:
        last = messages[-1]
        if last.role == "tool":
            yield TextChunkEvent(f"It is {last.tool_result['status']}.")
        elif counting := re.fullmatch(r"count to (\d+)", last.content):
            for number in range(1, int(counting[1]) + 1):
                yield TextChunkEvent(f"{number} ")
                await asyncio.sleep(0.1)
        elif adding := re.fullmatch(r"add (\w+)", last.content):
            row = {"name": adding[1], "density": 7.1}
            yield ToolCallEvent("call", "mutate", {"mutation": "createMaterial", "input": row})
        else:
            yield TextChunkEvent("Hm.")
        yield DoneEvent(TokenUsage(10, 5))
