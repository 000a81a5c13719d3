"""What a client may say, as values.

(Specification: "Routes and request contracts".)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gm_chat.encoding import jsonable
from gm_chat.transports.checked import BadEvent, BadMessage, json_object, usable_key, usable_text

__all__ = ["Cancel", "Confirm", "Resume", "Say", "read_confirm", "read_frame", "read_say"]


@dataclass(frozen=True, slots=True)
class Say:
    """A user's message; a second one with the same ``key`` is the same message."""

    text: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Confirm:
    """The user's word on a pending mutation."""

    confirmation_id: str
    confirmed: bool


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop a turn; on a socket, the one that it shows."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Send what came after ``after_seq`` in a turn that was begun elsewhere."""

    turn_id: str
    after_seq: int


def read_say(payload: dict[str, Any], *, max_characters: int) -> Say:
    """Read ``{"text": "...", "id": "..."}``; ``id`` may be absent, and other keys are ignored."""
    return Say(usable_text(payload.get("text"), max_characters=max_characters), usable_key(payload.get("id")))


def read_confirm(payload: dict[str, Any]) -> Confirm:
    """Read ``{"confirmation_id": "...", "confirmed": true}``."""
    match payload:
        case {"confirmation_id": str(id), "confirmed": bool(confirmed)} if id:
            return Confirm(str(jsonable(id)), confirmed)
    raise BadEvent


def read_frame(frame: str | None, *, max_characters: int) -> Say | Confirm | Cancel | Resume:
    """Read what came through a socket, ``None`` being a binary frame; its ``type`` says what it is."""
    if frame is None:
        raise BadMessage("Send text frames; this socket reads no binary ones.")
    match payload := json_object(frame, max_characters=max_characters):
        case {"type": "message"}:
            return read_say(payload, max_characters=max_characters)
        case {"type": "confirm"}:
            return read_confirm(payload)
        case {"type": "cancel"}:
            return Cancel()
        case {"type": "resume", "turn_id": str(turn_id)}:
            after_seq = payload.get("after_seq", 0)
            if type(after_seq) is int and after_seq >= 0:
                return Resume(str(jsonable(turn_id)), after_seq)
    raise BadEvent
