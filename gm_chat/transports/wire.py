"""The one wire format: the public form of events, with their place in the turn. Every transport uses it.

(Specification: "Server event contract".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gm_chat.engine.public import event_object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gm_chat.engine.events import LoggedEvent
    from gm_chat.engine.ports import PendingMutation

__all__ = ["envelope", "event_object", "logged_object", "pending_object"]


def logged_object(logged: LoggedEvent) -> dict[str, Any]:
    """The public form of an event of a turn: with the turn's id, and its place in the turn's log."""
    return {**event_object(logged.event), "turn_id": logged.turn_id, "seq": logged.seq}


def pending_object(pending: PendingMutation) -> dict[str, Any]:
    """The public form of a mutation that waits for its owner's word: the event's fields, its turn, and until when."""
    told = {} if pending.preview is None else {"preview": pending.preview}
    return {
        "id": pending.id,
        "mutation": pending.mutation,
        "input": pending.input,
        **told,
        "turn_id": pending.turn_id,
        "expires_at": pending.expires_at,
    }


def envelope(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The body of a non-streaming answer: all events, the text in one piece, and the turn's id (null without one)."""
    answer = "".join(event["content"] for event in events if event["type"] == "text_chunk")
    return {"events": events, "answer": answer, "turn_id": events[0].get("turn_id")}
