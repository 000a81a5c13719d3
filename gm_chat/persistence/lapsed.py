"""What is over although nobody is left to end it: turns whose process died, claims that never got an outcome.

Whoever looks writes it down. Clocks of the servers are trusted to differ by less than the time that a turn counts as
alive, and a claim as leased.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from gm_chat.engine.failures import INTERRUPTED
from gm_chat.models import ChatPendingConfirmation, ChatTurn
from gm_chat.persistence.database import chat_database, transact
from gm_chat.persistence.rows import pack_event
from gm_chat.persistence.segments import add_segment, last_seq

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
    rows = abandoned.annotate(last=last_seq()).values_list("pk", "state", "alive_until", "events", "last", named=True)
    return sum(transact(partial(_interrupt, row=row, now=now)) for row in list(rows))


def _interrupt(alias: str, *, row: Any, now: datetime) -> int:
    unchanged = ChatTurn.objects.using(alias).filter(pk=row.pk, state=row.state, alive_until=row.alive_until)
    end: dict[str, Any] = {
        "state": ChatTurn.State.FAILED,
        "error_code": INTERRUPTED.code,
        "active_key": None,
        "alive_until": None,
        "finished": now,
    }
    if row.last is None:
        end["events"] = [*row.events, pack_event(INTERRUPTED)]
    ended = unchanged.update(**end)
    if ended and row.last is not None:
        add_segment(alias, row.pk, [INTERRUPTED], row.last)
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
