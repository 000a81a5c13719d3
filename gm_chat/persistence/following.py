"""What processes tell each other of a turn through its row: its log, that it lives, that it should stop."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.utils import timezone

from gm_chat.encoding import jsonable
from gm_chat.engine.events import LoggedEvent
from gm_chat.engine.ports import Pulse, StoredTurn
from gm_chat.models import ChatTurn
from gm_chat.persistence.database import chat_database
from gm_chat.persistence.lapsed import end_interrupted
from gm_chat.persistence.rows import pack_event, unpack_event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

    from gm_chat.engine.events import Event
    from gm_chat.persistence.owner import Owner

__all__ = ["pulse", "read_turn", "request_cancel"]

# A follower asks several times a second; that it does is written down now and then, and counts a little longer.
_NOTE_EVERY: Final = timedelta(seconds=0.5)
_FOLLOWED_FOR: Final = timedelta(seconds=2)


def pulse(turn_id: str, events: Sequence[Event], *, packed: list[dict[str, Any]], alive_seconds: float) -> Pulse:
    """See :meth:`gm_chat.engine.ports.TurnStore.pulse`. A turn that others have closed meanwhile must stop.

    ``packed`` belongs to the turn and grows from pulse to pulse: each event is packed once.
    """
    packed.extend(pack_event(event) for event in events[len(packed) :])
    now = timezone.now()
    turns = ChatTurn.objects.using(chat_database()).filter(pk=turn_id, state=ChatTurn.State.RUNNING)
    turns.update(alive_until=now + timedelta(seconds=alive_seconds), events=packed)
    asked = turns.values_list("cancel_requested", "followed_at").first()
    if asked is None:
        return Pulse(cancel=True)
    cancel, followed_at = asked
    return Pulse(cancel, followed=followed_at is not None and followed_at > now - _FOLLOWED_FOR)


def read_turn(owner: Owner, turn_id: str, *, after_seq: int) -> StoredTurn | None:
    """See :meth:`gm_chat.engine.ports.TurnStore.read_turn`: one statement, now and then a second one."""
    now = timezone.now()
    turns = _own(owner, turn_id)
    turn = turns.values("state", "events", "alive_until", "followed_at").first()
    if turn is None:
        return None
    running, alive_until = turn["state"] == ChatTurn.State.RUNNING, turn["alive_until"]
    if running and alive_until is not None and alive_until <= now and end_interrupted(turns, now):
        running, turn["events"] = False, turns.values_list("events", flat=True).get()
    if running and (turn["followed_at"] is None or turn["followed_at"] <= now - _NOTE_EVERY):
        turns.update(followed_at=now)
    return StoredTurn(
        running,
        tuple(
            LoggedEvent(turn_id, seq, unpack_event(event))
            for seq, event in enumerate(turn["events"][after_seq:], after_seq + 1)
        ),
    )


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
