"""Thinking blocks: how they travel from one answer to the request that continues it.

The API signs what a model thought and, while that model works with tools, wants it back unchanged and where it stood.
The neutral history has no place for it, so the blocks travel in the message's metadata, each with its place: how many
characters of the text, and how many of the calls, came before it.

A signature also covers everything before its block: on newer models, the system prompt, the tools and the whole
history. None of that changes within a turn, all of it may between two (a summary, a moved window), so only the blocks
of the running turn are sent, which are those that the API demands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from anthropic.types import RedactedThinkingBlockParam, ThinkingBlockParam

    ThinkingParam = ThinkingBlockParam | RedactedThinkingBlockParam

__all__ = ["Thought", "read_thoughts", "thought_metadata"]

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
"""Per type of block, the fields that it consists of."""


@dataclass(frozen=True, slots=True)
class Thought:
    """A thinking block, and how many characters of text and how many calls came before it in the same message."""

    block: ThinkingParam
    characters: int
    calls: int


def thought_metadata(thoughts: Sequence[Thought]) -> dict[str, Any]:
    """Return what a message keeps of its thoughts: plain JSON, which :func:`read_thoughts` reads."""
    if not thoughts:
        return {}
    return {
        "thinking": [
            {"block": dict(thought.block), "characters": thought.characters, "calls": thought.calls}
            for thought in thoughts
        ]
    }


def read_thoughts(metadata: Mapping[str, Any]) -> list[Thought]:
    """Return the thoughts of a message, or none if this adapter did not write them."""
    stored = metadata.get("thinking")
    if not isinstance(stored, Sequence) or isinstance(stored, str):
        return []
    thoughts = [_read(item) for item in stored]
    return [] if None in thoughts else [thought for thought in thoughts if thought is not None]


def _read(item: object) -> Thought | None:
    if not isinstance(item, Mapping):
        return None
    block, characters, calls = item.get("block"), item.get("characters"), item.get("calls")
    if not isinstance(block, Mapping) or not isinstance(characters, int) or not isinstance(calls, int):
        return None
    kind = block.get("type")
    fields = _FIELDS.get(kind, ()) if isinstance(kind, str) else ()
    if not fields or block.keys() != {"type", *fields} or not all(isinstance(block[name], str) for name in fields):
        return None
    return Thought(cast("ThinkingParam", dict(block)), characters, calls)
