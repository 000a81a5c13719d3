"""What an audit at level ``all`` must say of a turn, worked out from the events that its clients could see."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.db import connections

from gm_chat.audit import DEFAULT_REDACT_FIELDS
from gm_chat.engine.events import ConfirmMutation, TextChunk, ToolCall, ToolResult
from gm_chat.engine.failures import INTERRUPTED
from gm_chat.models import ChatTurn
from gm_chat.persistence.rows import unpack_event
from gm_chat.persistence.segments import whole_log
from gm_chat.redaction import redact_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gm_chat.engine.events import Event

__all__ = ["PLANTED", "AuditBook"]

PLANTED = "hunter2-Zq9"
"""A secret for scenarios to say where it must not be audited."""

Shape = tuple[str, ...]


class AuditBook:
    """A sink that remembers, and compares what it was told with the logs of the turns in the database."""

    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []

    async def __call__(self, event: Mapping[str, Any]) -> None:
        """Take an event: this is what the setting ``audit["logger"]`` calls."""
        self.events.append(event)

    async def faults(self) -> list[str]:
        """What the audit left out, said twice, in another order or not of a turn at all; and forget everything.

        The last word of a turn whose client has gone may come after its row says that it is over.
        """
        for _ in range(20):
            found = await sync_to_async(self._faults)()
            if not found:
                break
            await asyncio.sleep(0.02)
        self.events.clear()
        return found

    def _faults(self) -> list[str]:
        found = []
        turns = {turn.pk: turn for turn in ChatTurn.objects.all()}
        # What a planned turn tells of itself beside this has tests of its own.
        spoken = [event for event in self.events if not event["event_type"].startswith("planned_")]
        for turn_id in {str(event["turn_id"]) for event in spoken} | turns.keys():
            told = [_told(event) for event in spoken if event["turn_id"] == turn_id]
            if turn_id not in turns:
                found.append(f"no turn, and yet {told}")
                continue
            log = list(map(unpack_event, whole_log(turns[turn_id])))
            if INTERRUPTED in log:
                continue  # its process died: the log lacks the end of what was said and audited
            if (expected := _expected(log)) != told:
                found.append(f"{told}\n instead of {expected}")
        if PLANTED in repr(self.events):
            found.append("a secret stands in the audit")
        connections.close_all()
        return found


def _told(event: Mapping[str, Any]) -> Shape:
    match event:
        case {"event_type": "tool_call", "call_id": id, "approved": True}:
            return "approved call", id
        case {"event_type": "tool_call" | "tool_result" as kind, "call_id": id}:
            return kind, id
        case {"event_type": "assistant_message", "content": content}:
            return "assistant_message", content
    return (str(event["event_type"]),)


def _expected(log: Sequence[Event]) -> list[Shape]:
    """The user's message, every call and every result once, what was said once it is complete, and no more."""
    shapes: list[Shape] = [("user_message",)]
    said, asked = "", None
    for event in log:
        match event:
            case TextChunk(content=content):
                said += content
            case ToolCall(id=id):
                shapes.append(("tool_call", id))
            case ToolResult(id=id, result=result):
                if asked == id and result.get("status") == "executed":
                    shapes.append(("approved call", id))
                shapes.append(("tool_result", id))
            case ConfirmMutation(id=id):
                asked = id
                shapes += _words(said)
                said = ""
    return [*shapes, *_words(said)]


def _words(said: str) -> list[Shape]:
    return [("assistant_message", redact_text(said, DEFAULT_REDACT_FIELDS))] if said else []
