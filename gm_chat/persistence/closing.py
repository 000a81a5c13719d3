"""Recording what a turn left when it ends or pauses: two statements, four with a confirmation to wait for.

One more where the user's message is not known, as when the turn was resumed, maybe by another process; and one more for
the rest of a long turn's events.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError
from django.utils import timezone

from gm_chat.encoding import jsonable
from gm_chat.models import ChatMessage, ChatPendingConfirmation, ChatTurn
from gm_chat.persistence.database import transact
from gm_chat.persistence.prepared import insert, update
from gm_chat.persistence.rows import message_values, pack_input, pack_progress, pack_spent, pack_usage, stored_time
from gm_chat.persistence.segments import add_segments, row_part, stored_events

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gm_chat.engine.ports import ClosedTurn, PendingMutation, StoredMessage

__all__ = ["add_messages", "close_turn"]

logger = logging.getLogger("gm_chat.persistence")


def close_turn(turn: ClosedTurn, *, shown: int | None = 0, question_id: int | None = None) -> None:
    """See :meth:`gm_chat.engine.ports.TurnStore.close_turn`. A turn that is not running is left as it is.

    Of its events ``shown`` are stored; ``None``: nobody knows how many.
    """
    close = partial(_close, turn=turn)
    try:
        ended = transact(partial(close, shown=_shown(turn) if shown is None else shown, question_id=question_id))
    except IntegrityError:
        # Somebody deleted the question meanwhile, or a pulse that was given up came through.
        ended = transact(partial(close, shown=_shown(turn), question_id=None))
    if not ended:
        logger.warning("Turn %r was not running any more: its end as %r is dropped.", turn.turn_id, turn.outcome.state)


def _shown(turn: ClosedTurn) -> int:
    return transact(partial(stored_events, turn_id=turn.turn_id))  # it begins anew where the connection was lost


def _close(alias: str, *, turn: ClosedTurn, shown: int, question_id: int | None) -> bool:
    end: dict[str, Any] = {
        "state": turn.outcome.state,
        "error_code": turn.outcome.code or "",
        "usage": pack_usage(turn.usage),
        "spent": pack_spent(turn.spent),
        "alive_until": None,
        **row_part(turn.events, shown),
    }
    if turn.pending is None:
        end |= {"active_key": None, "finished": timezone.now()}
    if not update(alias, ChatTurn, end, id=turn.turn_id, state=ChatTurn.State.RUNNING):
        return False
    add_segments(alias, turn.turn_id, turn.events, shown)
    conversation_id = int(turn.conversation_id or 0)
    add_messages(alias, conversation_id, turn.turn_id, turn.messages, question_id=question_id)
    if turn.pending is not None:
        _wait_for(alias, conversation_id, turn.turn_id, turn.pending)
    return True


def _wait_for(alias: str, conversation_id: int, turn_id: str, pending: PendingMutation) -> None:
    payload, digest = pack_input(pending.input)
    owner = ChatTurn.objects.using(alias).values_list("owner_key", flat=True).get(pk=turn_id)
    ChatPendingConfirmation(
        conversation_id=conversation_id,
        turn_id=turn_id,
        owner_key=owner,
        confirmation_id=pending.id,
        mutation_name=pending.mutation,
        payload=payload,
        payload_sha256=digest,
        preview=None if pending.preview is None else jsonable(pending.preview),
        progress=pack_progress(pending.progress),
        expires_at=stored_time(pending.expires_at),
    ).save(using=alias, force_insert=True)


def add_messages(
    alias: str,
    conversation_id: int,
    turn_id: str,
    messages: Sequence[StoredMessage],
    *,
    question_id: int | None = None,
) -> None:
    """Add what answers the turn's question, below it."""
    if not messages:
        return
    if question_id is None:
        # By the turn alone: beside the conversation, SQLite would walk through all of its messages.
        question = ChatMessage.objects.using(alias).filter(turn_id=turn_id, role=ChatMessage.Role.USER)
        question_id = question.values_list("pk", flat=True).first()
    place = {
        "conversation_id": conversation_id,
        "turn_id": turn_id,
        "parent_id": question_id,
        "created": timezone.now(),
    }
    insert(alias, ChatMessage, [place | message_values(message) for message in messages])
