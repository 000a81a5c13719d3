"""What processes tell each other of a turn through its row: its log, that it lives, that it should stop."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.utils import timezone

from gm_chat.encoding import jsonable
from gm_chat.engine.events import LoggedEvent
from gm_chat.engine.memory_store import FOLLOWED_SECONDS
from gm_chat.engine.ports import Pulse, StoredTurn
from gm_chat.models import ChatTurn
from gm_chat.persistence.database import chat_database, transact
from gm_chat.persistence.lapsed import end_interrupted
from gm_chat.persistence.prepared import update
from gm_chat.persistence.rows import unpack_event
from gm_chat.persistence.segments import (
    MOST_READ,
    add_segments,
    has_segments,
    last_seq,
    read_log,
    row_after,
    row_part,
    stored_events,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

    from gm_chat.engine.events import Event
    from gm_chat.persistence.owner import Owner

__all__ = ["pulse", "read_turn", "request_cancel"]

# A follower asks several times a second; that it does is written down now and then, and counts a little longer.
_NOTE_EVERY: Final = timedelta(seconds=0.5)
_FOLLOWED_FOR: Final = timedelta(seconds=FOLLOWED_SECONDS)


def pulse(turn_id: str, events: Sequence[Event], *, shown: int | None, alive_seconds: float) -> Pulse:
    """See :meth:`gm_chat.engine.ports.TurnStore.pulse`. A turn that others have closed meanwhile must stop.

    ``shown`` says how many of the events are stored, ``None`` that nobody knows. Two statements; of a long turn that
    has new events, three in a transaction.
    """
    alias, now = chat_database(), timezone.now()
    known = stored_events(alias, turn_id) if shown is None else shown
    row = {"alive_until": now + timedelta(seconds=alive_seconds), **row_part(events, known)}

    def show(alias: str) -> bool:
        is_running = bool(update(alias, ChatTurn, row, id=turn_id, state=ChatTurn.State.RUNNING))
        if is_running:
            add_segments(alias, turn_id, events, known)
        return is_running

    if not (transact(show) if has_segments(events, known) else show(alias)):
        return Pulse(cancel=True)
    wishes = ChatTurn.objects.using(alias).filter(pk=turn_id).values_list("cancel_requested", "followed_at")
    asked = wishes.first()
    if asked is None:
        return Pulse(cancel=True)
    cancel, followed_at = asked
    return Pulse(cancel, followed=followed_at is not None and followed_at > now - _FOLLOWED_FOR)


def read_turn(owner: Owner, turn_id: str, *, after_seq: int) -> StoredTurn | None:
    """See :meth:`gm_chat.engine.ports.TurnStore.read_turn`.

    One statement, and one for the segments that have something new, a few at a time; now and then another one.
    """
    now = timezone.now()
    turns = _own(owner, turn_id)
    rows = turns.values("state", "alive_until", "followed_at", in_row=row_after(after_seq), last=last_seq())
    turn = rows.first()
    if turn is None:
        return None
    running, alive_until = turn["state"] == ChatTurn.State.RUNNING, turn["alive_until"]
    if running and alive_until is not None and alive_until <= now and end_interrupted(turns, now):
        running, turn = False, rows.get()
    if running and (turn["followed_at"] is None or turn["followed_at"] <= now - _NOTE_EVERY):
        turns.update(followed_at=now)
    log = read_log(turns.db, turn_id, turn["in_row"], turn["last"], after_seq, most=MOST_READ)
    has_more = turn["last"] is not None and (log[-1][0] if log else after_seq) < turn["last"]
    events = tuple(LoggedEvent(turn_id, seq, unpack_event(event)) for seq, event in log)
    return StoredTurn(running, events, has_more=has_more)


def request_cancel(owner: Owner, turn_id: str) -> bool:
    """See :meth:`gm_chat.engine.ports.TurnStore.request_cancel`. A turn whose process died is ended at once."""
    now = timezone.now()
    turns = _own(owner, turn_id).filter(state=ChatTurn.State.RUNNING)
    if turns.filter(alive_until__gt=now).update(cancel_requested=True):
        return True
    end_interrupted(turns, now)
    return False


def _own(owner: Owner, turn_id: str) -> QuerySet[ChatTurn]:
    """The turn if it is the owner's; the id is whatever a client sent."""
    return ChatTurn.objects.using(chat_database()).filter(pk=jsonable(turn_id), owner_key=owner.key)
