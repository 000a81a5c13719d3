"""What is over although nobody is left to end it: turns whose process died, claims that never got an outcome.

Whoever looks writes it down. Clocks of the servers are trusted to differ by less than the time that a turn counts as
alive, and a claim as leased.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from gm_chat.engine.failures import INTERRUPTED
from gm_chat.models import ChatPendingConfirmation, ChatTurn
from gm_chat.persistence.database import chat_database
from gm_chat.persistence.rows import pack_event

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

__all__ = ["end_interrupted", "end_lapsed", "lapse_claims"]


def end_interrupted(turns: QuerySet[ChatTurn], now: datetime) -> int:
    """Close those of ``turns`` that no process works on any more, as failed; return how many this caller closed.

    That is a running turn that was not renewed in time, and a paused one without anything that it could wait for.
    """
    waiting = ChatPendingConfirmation.objects.using(turns.db).filter(
        turn_id=OuterRef("pk"), state=ChatPendingConfirmation.State.PENDING
    )
    abandoned = turns.filter(
        Q(state=ChatTurn.State.RUNNING, alive_until__lte=now) | (Q(state=ChatTurn.State.PAUSED) & ~Exists(waiting))
    )
    ended = 0
    for turn_id, state, alive_until, events in abandoned.values_list("pk", "state", "alive_until", "events"):
        unchanged = ChatTurn.objects.using(turns.db).filter(pk=turn_id, state=state, alive_until=alive_until)
        ended += unchanged.update(
            state=ChatTurn.State.FAILED,
            error_code=INTERRUPTED.code,
            active_key=None,
            alive_until=None,
            events=[*events, pack_event(INTERRUPTED)],
            finished=now,
        )
    return ended


def lapse_claims(confirmations: QuerySet[ChatPendingConfirmation], now: datetime) -> int:
    """Store ``unknown`` for those whose lease is over: nobody can say whether the mutation ran. Return how many."""
    leased = confirmations.filter(state=ChatPendingConfirmation.State.CLAIMED, lease_until__lte=now)
    return leased.update(state=ChatPendingConfirmation.State.UNKNOWN)


def end_lapsed() -> None:
    """Do both for everybody: before an operator looks, and when ``chat_cleanup`` runs."""
    alias, now = chat_database(), timezone.now()
    lapse_claims(ChatPendingConfirmation.objects.using(alias), now)
    end_interrupted(ChatTurn.objects.using(alias).filter(active_key__isnull=False), now)
