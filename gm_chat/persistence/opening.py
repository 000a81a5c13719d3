"""Accepting a message: one INSERT that the database refuses when the owner's turn is still open or the key is known.

Four statements when it is accepted. Only a refused one reads more, to learn why.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from django.db import IntegrityError
from django.utils import timezone

from gm_chat.engine.failures import TurnStopped
from gm_chat.engine.ports import ConfirmationLapsed, JoinedTurn, OpenedTurn, StoredMessage
from gm_chat.models import ChatConversation, ChatMessage, ChatPendingConfirmation, ChatTurn
from gm_chat.persistence.database import chat_database, transact
from gm_chat.persistence.lapsed import end_interrupted
from gm_chat.persistence.prepared import insert, insert_one, update
from gm_chat.persistence.rows import message_values, sha256_hex
from gm_chat.persistence.window import read_current_window

if TYPE_CHECKING:
    from datetime import datetime

    from gm_chat.engine.ports import TurnRequest
    from gm_chat.persistence.owner import Owner
    from gm_chat.persistence.window import Window

__all__ = ["AcceptedTurn", "earlier_turn", "open_turn"]

# The conversation's other first message may win, then its turn may end, or prove dead, before we look.
_ATTEMPTS: Final = 4


class AcceptedTurn(NamedTuple):
    """What the engine is told, and the id of the user's message, which everything that answers it has as parent."""

    opened: OpenedTurn
    question_id: int


def open_turn(
    owner: Owner,
    request: TurnRequest,
    turn_id: str,
    *,
    max_messages: int,
    summarize_after: int | None,
    alive_seconds: float,
) -> AcceptedTurn | JoinedTurn:
    """See :meth:`gm_chat.engine.ports.TurnStore.open_turn`."""

    def accept(alias: str) -> AcceptedTurn:
        now = timezone.now()
        conversation_id, window = _enter(alias, owner, now, max_messages, summarize_after)
        turn = {
            "id": turn_id,
            "conversation_id": conversation_id,
            "owner_key": owner.key,
            "active_key": owner.key,
            "alive_until": now + timedelta(seconds=alive_seconds),
            "request_key": None if request.key is None else sha256_hex(request.key),
            "request_sha256": "" if request.key is None else sha256_hex(request.text),
            "created": now,
        }
        insert(alias, ChatTurn, [turn])
        question = {
            "conversation_id": conversation_id,
            "turn_id": turn_id,
            "parent_id": None if window is None else window.newest_id,
            "created": now,
        }
        values = message_values(StoredMessage(role="user", content=request.text))
        question_id = insert_one(alias, ChatMessage, question | values)
        opened = OpenedTurn(str(conversation_id), ())
        if window is not None:
            opened = OpenedTurn(str(conversation_id), window.history, window.summary, window.due)
        return AcceptedTurn(opened, question_id)

    for _ in range(_ATTEMPTS - 1):
        try:
            # From the start each time, and not from a savepoint: on MariaDB the losers of a race keep shared locks
            # on the winner's row until they roll back, and would deadlock over it.
            return transact(accept)
        except IntegrityError:
            joined = _conflict(owner, request)
            if joined is not None:
                return joined
    return transact(accept)


def _enter(
    alias: str, owner: Owner, now: datetime, max_messages: int, summarize_after: int | None
) -> tuple[int, Window | None]:
    """Find the owner's current conversation or create it; return its id, and its window if it has messages."""
    if not update(alias, ChatConversation, {"updated": now}, current_key=owner.key):
        created = ChatConversation(
            user_id=owner.user_id, session_key=owner.session_key, current_key=owner.key, updated=now
        )
        created.save(using=alias, force_insert=True)
        return created.pk, None
    window = read_current_window(alias, owner.key, max_messages, summarize_after=summarize_after)
    if window is not None:
        return window.conversation_id, window
    current = ChatConversation.objects.using(alias).filter(current_key=owner.key)
    return current.values_list("pk", flat=True).get(), None


def earlier_turn(owner: Owner, request: TurnRequest) -> JoinedTurn | None:
    """See :meth:`gm_chat.engine.ports.TurnStore.earlier`."""
    if request.key is None:
        return None
    turns = ChatTurn.objects.using(chat_database()).filter(owner_key=owner.key, request_key=sha256_hex(request.key))
    match turns.values_list("pk", "request_sha256").first():
        case None:
            return None
        case (turn_id, digest):
            if digest != sha256_hex(request.text):
                raise TurnStopped("idempotency_conflict")
            return JoinedTurn(turn_id)


def _conflict(owner: Owner, request: TurnRequest) -> JoinedTurn | None:
    """Say why the message was refused, by value or exception. ``None``: nothing is in its way any more."""
    if (joined := earlier_turn(owner, request)) is not None:
        return joined
    turns = ChatTurn.objects.using(chat_database())
    active = turns.filter(active_key=owner.key)
    now = timezone.now()
    match active.values_list("pk", "state").first():
        case (_, ChatTurn.State.RUNNING):
            if not end_interrupted(active, now):
                raise TurnStopped("turn_in_progress")
        case (turn_id, ChatTurn.State.PAUSED):
            waiting = ChatPendingConfirmation.objects.using(turns.db).filter(
                turn_id=turn_id, state=ChatPendingConfirmation.State.PENDING
            )
            expires_at = waiting.values_list("expires_at", flat=True).first()
            if expires_at is None:
                end_interrupted(active, now)
            else:
                raise TurnStopped("confirmation_pending") if expires_at > now else ConfirmationLapsed
    return None
