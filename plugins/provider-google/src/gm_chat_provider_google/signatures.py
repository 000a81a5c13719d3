"""Thought signatures: kept with the conversation, and sent back on the very parts that they came with.

A thinking model signs parts of its answer: mostly the first call, but text too, and often an empty text at the end.
A call whose signature does not come back is refused by newer models; a signature of another model is refused by all.
(Faults P12.) A call's signature is the call's metadata. For the rest the message's metadata has the parts in order::

    {"model": "gemini-3.1-pro", "parts": [{"text": 17}, {"call": 0}, {"text": 0, "thoughtSignature": "c2ln..."}]}

where ``text`` counts characters of the message's content. Thoughts themselves are kept only if they are signed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from gm_chat.providers.base import Message, ToolCallEvent

__all__ = ["KEY", "PLACEHOLDER", "PartsLog", "arranged", "plain", "signature_of"]

KEY: Final = "thoughtSignature"
PLACEHOLDER: Final = "skip_thought_signature_validator"
"""What Google documents for a call that has no signature because another model made it."""


class PartsLog:
    """Notes the order of a message's parts while they come in."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._parts: list[dict[str, Any]] = []
        self._calls = 0
        self._is_signed = False

    def text(self, length: int, signature: object) -> None:
        """Note a text. Unsigned neighbours become one; a signed one is never merged, as that voids its signature."""
        if _usable(signature):
            self._parts.append({"text": length, KEY: signature})
            self._is_signed = True
        elif self._parts and self._parts[-1].keys() == {"text"}:
            self._parts[-1]["text"] += length
        elif length:
            self._parts.append({"text": length})

    def thought(self, text: str, signature: object) -> None:
        """Note a thought, if it is signed."""
        if _usable(signature):
            self._parts.append({"thought": True, "text": text, KEY: signature})
            self._is_signed = True

    def call(self, signature: object) -> dict[str, Any]:
        """Note a call; return its metadata."""
        self._parts.append({"call": self._calls})
        self._calls += 1
        return {"model": self._model, KEY: signature} if _usable(signature) else {}

    def metadata(self) -> dict[str, Any]:
        """Return the message's metadata: empty if nothing but calls is signed."""
        return {"model": self._model, "parts": self._parts} if self._is_signed else {}


def signature_of(call: ToolCallEvent, model: str) -> str | None:
    """Return the signature that ``model`` gave to a call."""
    signature = call.metadata.get(KEY)
    return signature if _usable(signature) and call.metadata.get("model") == model else None


def arranged(message: Message, calls: Sequence[Mapping[str, Any]], model: str) -> list[Mapping[str, Any]]:
    """Return an assistant's message, whose ``calls`` are parts already, as ``model`` made it: in order, and signed.

    If another model made it, or something was changed since, it is returned :func:`plain`.
    """
    parts = message.metadata.get("parts")
    made = None
    if message.metadata.get("model") == model and isinstance(parts, Sequence):
        made = _made(message.content, calls, parts)
    return plain(message, calls) if made is None else made


def plain(message: Message, calls: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return an assistant's message as parts: its text, unsigned, then its ``calls``."""
    return [*([{"text": message.content}] if message.content else []), *calls]


def _made(text: str, calls: Sequence[Mapping[str, Any]], parts: Sequence[Any]) -> list[Mapping[str, Any]] | None:
    """Put text and calls into the order of ``parts``; ``None`` if they are not the ones that it tells of."""
    made: list[Mapping[str, Any]] = []
    position = used = 0
    for part in parts:
        match part:
            case {"thought": True, "text": str(thought)} if _usable(part.get(KEY)):
                made.append({"thought": True, "text": thought, KEY: part[KEY]})
            case {"text": int(length)} if length >= 0:
                signature = {KEY: part[KEY]} if _usable(part.get(KEY)) else {}
                made.append({"text": text[position : position + length], **signature})
                position += length
            case {"call": _} if used < len(calls):
                made.append(calls[used])
                used += 1
            case _:
                return None
    return made if position == len(text) and used == len(calls) else None


def _usable(signature: object) -> bool:
    return isinstance(signature, str) and bool(signature)
