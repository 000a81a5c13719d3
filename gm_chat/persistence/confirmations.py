"""Mutations that wait for their owner's word: each leaves ``pending`` once, by one conditional UPDATE.

Where eight threads read, check and write, a mutation runs up to eight times. Here the database decides: the UPDATE
names the owner, the state and the time, and whoever changed the row may go on.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from django.db import DatabaseError
from django.utils import timezone

from gm_chat.encoding import jsonable
from gm_chat.engine.confirmation import timed_out, timed_out_events
from gm_chat.engine.failures import TurnStopped
from gm_chat.engine.ports import ConfirmationLapsed, ExpiredMutation, PendingMutation, ResumedTurn
from gm_chat.models import ChatConversation, ChatMessage, ChatPendingConfirmation, ChatTurn
from gm_chat.persistence.closing import add_messages
from gm_chat.persistence.database import chat_database, transact
from gm_chat.persistence.lapsed import lapse_claims
from gm_chat.persistence.owner import actor_of
from gm_chat.persistence.rows import pack_event, read_time, unpack_event, unpack_input, unpack_progress
from gm_chat.persistence.segments import add_segment, last_seq, read_log
from gm_chat.persistence.window import read_window

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.db.models import QuerySet

    from gm_chat.engine.events import Event
    from gm_chat.engine.ports import ConfirmRequest, StoredMessage
    from gm_chat.persistence.owner import Owner
    from gm_chat.plugin.context import Actor

__all__ = ["claim", "expire", "pending", "settle"]

logger = logging.getLogger("gm_chat.persistence")

State = ChatPendingConfirmation.State


def claim(
    owner: Owner, request: ConfirmRequest, *, max_messages: int, lease_seconds: float, alive_seconds: float
) -> ResumedTurn:
    """See :meth:`gm_chat.engine.ports.TurnStore.claim`. The turn runs again from here on."""
    now = timezone.now()

    def take(alias: str) -> ResumedTurn | None:
        mine = _own(alias, owner).filter(confirmation_id=jsonable(request.confirmation_id))
        claimed = {"state": State.CLAIMED, "lease_until": now + timedelta(seconds=lease_seconds)}
        if not mine.filter(state=State.PENDING, expires_at__gt=now).update(**claimed):
            return None
        row = mine.select_related("turn").annotate(last=last_seq("turn_id")).get()
        waiting = _waiting(row)
        paused = ChatTurn.objects.using(alias).filter(pk=row.turn_id, state=ChatTurn.State.PAUSED)
        alive_until = now + timedelta(seconds=alive_seconds)
        resumes = {"state": ChatTurn.State.RUNNING, "alive_until": alive_until, "cancel_requested": False}
        if waiting is None or not paused.update(**resumes):
            raise TurnStopped("confirmation_unavailable")  # and so the claim is taken back
        # Cleanup goes by the last activity: an unknown outcome is to be seen for ttl_hours from now on.
        ChatConversation.objects.using(alias).filter(pk=row.conversation_id).update(updated=now)
        log = read_log(alias, row.turn_id, row.turn.events, row.last)
        return _resumed(alias, row, waiting, [unpack_event(event) for _, event in log], max_messages)

    resumed = transact(take)
    if resumed is None:
        raise _refusal(owner, request, now)
    return resumed


def _resumed(
    alias: str, row: ChatPendingConfirmation, waiting: PendingMutation, events: Sequence[Event], max_messages: int
) -> ResumedTurn:
    # The turn that waited is the newest one, and is whole in any window that holds a message.
    window = read_window(alias, row.conversation_id, max(max_messages, 1))
    history = () if window is None else window.history
    return ResumedTurn(
        turn_id=row.turn_id,
        conversation_id=str(row.conversation_id),
        text=next((message.content for message in reversed(history) if message.role == "user"), ""),
        history=history,
        pending=waiting,
        events=tuple(events),
        summary="" if window is None else window.summary,
    )


def _refusal(owner: Owner, request: ConfirmRequest, now: datetime) -> Exception:
    mine = _own(chat_database(), owner).filter(confirmation_id=jsonable(request.confirmation_id))
    lapse_claims(mine, now)
    match mine.values_list("state", "expires_at").first():
        case None:
            return TurnStopped("bad_event")
        case (State.PENDING, expires_at) if expires_at <= now:
            return ConfirmationLapsed()
    return TurnStopped("confirmation_unavailable")


def settle(resumed: ResumedTurn, *, state: Literal["executed", "failed", "rejected"], answer: StoredMessage) -> None:
    """See :meth:`gm_chat.engine.ports.TurnStore.settle`. An outcome that comes late is still better than none."""
    if not transact(partial(_settle, resumed=resumed, state=state, answer=answer)):
        logger.warning("Confirmation %r was not claimed any more: %r is dropped.", resumed.pending.id, state)


def _settle(alias: str, *, resumed: ResumedTurn, state: str, answer: StoredMessage) -> bool:
    conversation_id = int(resumed.conversation_id or 0)
    claimed = ChatPendingConfirmation.objects.using(alias).filter(
        conversation_id=conversation_id,
        confirmation_id=resumed.pending.id,
        state__in=(State.CLAIMED, State.UNKNOWN),
    )
    if not claimed.update(state=state, resolved_at=timezone.now()):
        return False
    add_messages(alias, conversation_id, resumed.turn_id, [answer])
    return True


def expire(actor: Actor | None, owner: Owner | None, now: datetime) -> list[ExpiredMutation]:
    """See :meth:`gm_chat.engine.ports.TurnStore.expire`. Without ``actor`` and ``owner``, everybody's."""
    alias = chat_database()
    confirmations = ChatPendingConfirmation.objects.using(alias) if owner is None else _own(alias, owner)
    due = confirmations.filter(state=State.PENDING, expires_at__lte=now).order_by("expires_at", "pk")
    ended: list[ExpiredMutation] = []
    for key in list(due.values_list("pk", flat=True)):
        try:
            expired = transact(partial(_expire, key=key, actor=actor, now=now))
        except DatabaseError:
            if not ended:
                raise
            logger.exception("Some confirmations could not be ended; they are left for the next time.")
            break  # what was ended is told: it is handed out once
        if expired is not None:
            ended.append(expired)
    return ended


def _expire(alias: str, *, key: int, actor: Actor | None, now: datetime) -> ExpiredMutation | None:
    this = ChatPendingConfirmation.objects.using(alias).filter(pk=key)
    if not this.filter(state=State.PENDING, expires_at__lte=now).update(state=State.EXPIRED, resolved_at=now):
        return None
    row = this.select_related("turn", "conversation__user").annotate(last=last_seq("turn_id")).get()
    waiting = _waiting(row) or _mutation(row, {})
    events = timed_out_events(waiting)
    end: dict[str, Any] = {"state": ChatTurn.State.DONE, "active_key": None, "finished": now}
    if row.last is None:
        end["events"] = [*row.turn.events, *map(pack_event, events)]
    if ChatTurn.objects.using(alias).filter(pk=row.turn_id, state=ChatTurn.State.PAUSED).update(**end) and row.last:
        add_segment(alias, row.turn_id, events, row.last)
    add_messages(alias, row.conversation_id, row.turn_id, [timed_out(waiting)])
    question = ChatMessage.objects.using(alias).filter(turn_id=row.turn_id, role=ChatMessage.Role.USER)
    return ExpiredMutation(
        turn_id=row.turn_id,
        conversation_id=str(row.conversation_id),
        actor=actor or actor_of(row.conversation),
        text=question.values_list("content", flat=True).first() or "",
        pending=waiting,
    )


def pending(owner: Owner) -> list[PendingMutation]:
    """See :meth:`gm_chat.engine.ports.TurnStore.pending`."""
    now = timezone.now()
    mine = _own(chat_database(), owner)
    lapse_claims(mine, now)
    rows = mine.filter(state=State.PENDING, expires_at__gt=now).order_by("pk")
    return [waiting for row in rows if (waiting := _waiting(row)) is not None]


def _own(alias: str, owner: Owner) -> QuerySet[ChatPendingConfirmation]:
    return ChatPendingConfirmation.objects.using(alias).filter(owner_key=owner.key)


def _waiting(row: ChatPendingConfirmation) -> PendingMutation | None:
    """What the row stands for; ``None`` if its arguments are not those that were stored."""
    arguments = unpack_input(row.payload, row.payload_sha256)
    return None if arguments is None else _mutation(row, arguments)


def _mutation(row: ChatPendingConfirmation, arguments: dict[str, Any]) -> PendingMutation:
    return PendingMutation(
        id=row.confirmation_id,
        mutation=row.mutation_name,
        input=arguments,
        expires_at=read_time(row.expires_at),
        progress=unpack_progress(row.progress),
        turn_id=row.turn_id,
        preview=row.preview,
    )
