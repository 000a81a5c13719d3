"""The log of a turn in the database: the first events in the turn's row, those of a long turn in segments after it.

The row is written anew while it holds them all. From then on each pulse, and the end, add what is new as a segment:
that costs what is new, however long the turn has become. A log has one writer, the process that runs the turn, and then
whoever ends it in that one's stead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Case, Exists, F, JSONField, OuterRef, Subquery, When

from gm_chat.models import ChatEventSegment
from gm_chat.persistence.database import chat_database
from gm_chat.persistence.prepared import insert
from gm_chat.persistence.rows import pack_event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gm_chat.engine.events import Event
    from gm_chat.models import ChatTurn

__all__ = [
    "MOST_EVENTS",
    "MOST_READ",
    "add_segment",
    "add_segments",
    "has_segments",
    "last_seq",
    "read_log",
    "row_after",
    "row_part",
    "stored_events",
    "whole_log",
]

MOST_EVENTS: Final = 200
"""Events in a row, the turn's or a segment's. So many take the ``json`` module less than a millisecond, in which no
other thread gets to run.
"""

MOST_READ: Final = 5 * MOST_EVENTS
"""Events after which a follower reads no further segment at once: more would keep a thread busy for so long that the
event loop, which needs the interpreter's lock as well, is late for everybody else.
"""


# --- writing -----------------------------------------------------------------------------------------------------


def row_part(events: Sequence[Event], shown: int) -> dict[str, Any]:
    """What changes in the turn's row, by column, when the first ``shown`` of ``events`` are stored."""
    return {} if shown >= MOST_EVENTS or shown == len(events) else {"events": _pack(events[:MOST_EVENTS])}


def has_segments(events: Sequence[Event], shown: int) -> bool:
    """Whether :func:`add_segments` has anything to add."""
    return len(events) > max(shown, MOST_EVENTS)


def add_segments(alias: str, turn_id: str, events: Sequence[Event], shown: int) -> None:
    """Add what is not stored and does not go into the turn's row, in one statement, if there is any.

    Raises ``IntegrityError`` if more than the first ``shown`` of ``events`` are stored.
    """
    starts = range(max(shown, MOST_EVENTS), len(events), MOST_EVENTS)
    segments = [_segment(turn_id, start, events[start : start + MOST_EVENTS]) for start in starts]
    if segments:
        insert(alias, ChatEventSegment, segments)


def add_segment(alias: str, turn_id: str, events: Sequence[Event], after_seq: int) -> None:
    """Add the last few events of a log that has segments."""
    insert(alias, ChatEventSegment, [_segment(turn_id, after_seq, events)])


def _segment(turn_id: str, after_seq: int, events: Sequence[Event]) -> dict[str, Any]:
    return {
        "turn_id": turn_id,
        "first_seq": after_seq + 1,
        "last_seq": after_seq + len(events),
        "events": _pack(events),
    }


def _pack(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [pack_event(event) for event in events]


# --- reading -----------------------------------------------------------------------------------------------------


def last_seq(turn: str = "pk") -> Subquery:
    """The ``seq`` of a turn's last segmented event, ``None`` without segments; of the turn that the column names."""
    segments = ChatEventSegment.objects.filter(turn_id=OuterRef(turn)).order_by("-first_seq")
    return Subquery(segments.values("last_seq")[:1])


def row_after(after_seq: int) -> Case:
    """The events in a turn's row, or ``None`` if all those after ``after_seq`` are in segments."""
    passed = ChatEventSegment.objects.filter(turn_id=OuterRef("pk"), first_seq__lte=after_seq + 1)
    return Case(When(~Exists(passed), then=F("events")), output_field=JSONField())


def read_log(
    alias: str,
    turn_id: str,
    in_row: Sequence[dict[str, Any]] | None,
    last: int | None,
    after_seq: int = 0,
    *,
    most: int | None = None,
) -> list[tuple[int, dict[str, Any]]]:
    """Put together the events after ``after_seq`` with their ``seq``, in one statement if there are segments.

    ``in_row`` is :func:`row_after`, or the row's whole column, and ``last`` is :func:`last_seq`. With ``most``, only
    those segments are read that begin within so many events.
    """
    log = list(enumerate((in_row or ())[after_seq:], after_seq + 1))
    if last is not None and last > after_seq:
        segments = ChatEventSegment.objects.using(alias).filter(turn_id=turn_id, last_seq__gt=after_seq)
        if most is not None:
            segments = segments.filter(first_seq__lte=after_seq + most)
        for first, events in segments.order_by("first_seq").values_list("first_seq", "events"):
            log += [(seq, event) for seq, event in enumerate(events, first) if seq > after_seq]
    return log


def whole_log(turn: ChatTurn) -> list[dict[str, Any]]:
    """All events of a turn, as they are stored."""
    alias = turn._state.db or chat_database()
    return [event for _, event in read_log(alias, turn.pk, turn.events, stored_events(alias, turn.pk) or None)]


def stored_events(alias: str, turn_id: str) -> int:
    """How many events of a turn are stored for good; 0 if the row may be written anew."""
    segments = ChatEventSegment.objects.using(alias).filter(turn_id=turn_id).order_by("-first_seq")
    return segments.values_list("last_seq", flat=True).first() or 0
