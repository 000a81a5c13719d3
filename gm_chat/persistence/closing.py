"""Recording what a turn left when it ends or pauses: two statements, four with a confirmation to wait for.

One more where the user's message is not known: when the turn was resumed, maybe by another process.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError
from django.utils import timezone

from gm_chat.models import ChatMessage, ChatPendingConfirmation, ChatTurn
from gm_chat.persistence.database import transact
from gm_chat.persistence.prepared import insert, update
from gm_chat.persistence.rows import message_values, pack_event, pack_input, pack_progress, pack_usage, stored_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gm_chat.engine.ports import ClosedTurn, PendingMutation, StoredMessage

__all__ = ["add_messages", "close_turn"]

logger = logging.getLogger("gm_chat.persistence")


def close_turn(turn: ClosedTurn, *, question_id: int | None = None) -> None:
    """See :meth:`gm_chat.engine.ports.TurnStore.close_turn`. A turn that is not running is left as it is."""
    try:
        ended = transact(partial(_close, turn=turn, question_id=question_id))
    except IntegrityError:
        if question_id is None:
            raise
        ended = transact(partial(_close, turn=turn, question_id=None))  # somebody deleted the question meanwhile
    if not ended:
        logger.warning("Turn %r was not running any more: its end as %r is dropped.", turn.turn_id, turn.outcome.state)


def _close(alias: str, *, turn: ClosedTurn, question_id: int | None) -> bool:
    end: dict[str, Any] = {
        "state": turn.outcome.state,
        "error_code": turn.outcome.code or "",
        "usage": pack_usage(turn.usage),
        "events": [pack_event(event) for event in turn.events],
        "alive_until": None,
    }
    if turn.pending is None:
        end |= {"active_key": None, "finished": timezone.now()}
    if not update(alias, ChatTurn, end, id=turn.turn_id, state=ChatTurn.State.RUNNING):
        return False
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
