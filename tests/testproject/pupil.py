"""A model for evaluations, in this process or another: the message says how it does."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, ClassVar

from gm_chat.providers.base import (
    BaseLLMProvider,
    DoneEvent,
    ProviderQuotaError,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from gm_chat.providers.base import CallOptions, ChatEvent, Message, ToolDefinition

__all__ = ["Classmate", "Pupil"]

MATERIALS = {"manager": "MaterialManager", "fields": ["name"]}
WISHES: Mapping[str, Any] = {
    "create": {"mutation": "createMaterial", "input": {"name": "Zinc", "density": 7.1, "price_per_kg": "2.90"}},
    "zinc": {"mutation": "createMaterial", "input": {"name": "Zinc", "density": 7.1}},
    "delete": {"mutation": "deleteOrder", "input": {"id": 7}},
}


class Pupil(BaseLLMProvider):
    """``right`` looks up the materials and tells them, ``wrong`` tells others, ``loop`` only ever looks.

    ``meet`` waits for another of its kind first. ``limited`` and ``crash`` raise, ``never`` does not answer.
    ``create``, ``delete`` and, in the shop, ``zinc`` change data. ``provider_config`` may hold ``answer``, which it
    then gives to everything.
    """

    model: ClassVar[str] = "pupil-1"
    asked: ClassVar[list[str]] = []
    """The messages that reached it in this process."""
    met: ClassVar[asyncio.Event | None] = None

    async def complete(
        self, messages: list[Message], tools: list[ToolDefinition], *, options: CallOptions | None = None
    ) -> AsyncIterator[ChatEvent]:
        question = next(message.content for message in reversed(messages) if message.role == "user")
        mood = question.split()[0].strip(":").lower()
        results = [message.tool_result for message in messages if message.role == "tool"]
        if messages[-1].role == "user":
            self.asked.append(question)
        if mood == "limited":
            raise ProviderQuotaError("too many requests", retryable=False)
        if mood == "crash":
            raise RuntimeError("the pupil fell from the chair")
        if mood == "never":
            await asyncio.Event().wait()
        if mood == "meet" and messages[-1].role == "user":
            await self._meet()
        if answer := self.provider_config.get("answer"):
            yield TextChunkEvent(answer)
        elif mood == "wrong":
            yield TextChunkEvent("Gold and silver.")
        elif mood in WISHES:
            if messages[-1].role == "user":
                yield ToolCallEvent("1", "mutate", WISHES[mood])
            else:
                yield TextChunkEvent(f"It is {results[-1].get('status', 'refused')}.")
        elif messages[-1].role == "user" or mood == "loop":
            yield ToolCallEvent("1", "query", MATERIALS)
        else:
            yield TextChunkEvent(f"They are {', '.join(re.findall('[A-Z][a-z]+', str(results[-1].get('data'))))}.")
        yield DoneEvent(TokenUsage(100, 10))

    @classmethod
    async def _meet(cls) -> None:
        if cls.met is None:
            cls.met = asyncio.Event()
            await cls.met.wait()
            cls.met = None
        else:
            cls.met.set()


class Classmate(Pupil):
    """Another one, to compare with."""

    model: ClassVar[str] = "classmate-1"
