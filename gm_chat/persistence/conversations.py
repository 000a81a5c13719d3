"""Turns and their conversations in Django's database: the engine's :class:`~gm_chat.engine.ports.TurnStore`.

A text-only turn costs seven statements, four when it is accepted and three at its end, each group in one transaction
and one hop to a database thread. Both groups begin with an UPDATE: it takes the row's lock before anything is read,
so that on SQLite a deferred transaction never has to upgrade a read lock ("database is locked").
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.db import IntegrityError, OperationalError, ProgrammingError, connections, router, transaction
from django.db.models import Max
from django.utils import timezone

from gm_chat.engine.history import window
from gm_chat.engine.ports import OpenedTurn, StoredMessage
from gm_chat.models import ChatConversation, ChatMessage, ChatTurn
from gm_chat.persistence.owner import owner_of
from gm_chat.persistence.rows import (
    MESSAGE_COLUMNS,
    message_from_row,
    message_values,
    pack_event,
    pack_usage,
)
from gm_chat.persistence.threads import run_db

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django.db.models import QuerySet

    from gm_chat.engine.ports import ClosedTurn, TurnRequest
    from gm_chat.persistence.owner import Owner

__all__ = ["DjangoTurnStore"]

T = TypeVar("T")

logger = logging.getLogger("gm_chat.persistence")

_TABLES: Final = frozenset(model._meta.db_table for model in (ChatConversation, ChatMessage, ChatTurn))
_NOTHING: Final = OpenedTurn(None, ())


class DjangoTurnStore:
    """Keeps the turns of users and sessions; an actor with neither gets turns that leave nothing behind.

    Where the chat's tables do not exist, turns run without persistence, and the log says so once.
    """

    def __init__(self) -> None:
        """Hold no state but whether the log knows of missing tables."""
        self._said_tables_are_missing = False

    async def open_turn(self, request: TurnRequest, turn_id: str, *, max_messages: int) -> OpenedTurn:
        """Record the message and its turn; return the window of at most ``max_messages`` rows before it.

        The window starts at a user's message. When the newest turn alone is longer than the window, it is returned
        whole: a cut would separate tool calls from their results.
        """
        owner = owner_of(request.actor)
        if owner is None:
            return _NOTHING
        work = partial(_open, owner, request, turn_id, max_messages)
        return await run_db(self._unless_tables_are_missing, work, _NOTHING)

    async def close_turn(self, turn: ClosedTurn) -> None:
        """Record the turn's messages, outcome, usage and events. A turn that is not running is left as it is."""
        if turn.conversation_id is not None:
            await run_db(self._unless_tables_are_missing, partial(_close, turn, int(turn.conversation_id)), None)

    def _unless_tables_are_missing(self, work: Callable[[], T], otherwise: T) -> T:
        try:
            return work()
        except (OperationalError, ProgrammingError):
            connection = connections[_database()]
            missing = _TABLES.difference(connection.introspection.table_names())
            if not missing:
                raise
            if not self._said_tables_are_missing:
                self._said_tables_are_missing = True
                logger.warning(
                    "The chat keeps no conversations: the database %r lacks %s. Run: python manage.py migrate gm_chat",
                    connection.alias,
                    ", ".join(sorted(missing)),
                )
            return otherwise


def _database() -> str:
    return router.db_for_write(ChatConversation)


def _open(owner: Owner, request: TurnRequest, turn_id: str, max_messages: int) -> OpenedTurn:
    database = _database()
    try:
        return _accept(database, owner, request, turn_id, max_messages)
    except IntegrityError:
        # Most likely the owner's other first message created the conversation between our look and our insert. Once
        # more from the start, and not from a savepoint: on MariaDB the losers of a race keep shared locks on the
        # winner's row until they roll back, and would deadlock over it.
        return _accept(database, owner, request, turn_id, max_messages)


def _accept(database: str, owner: Owner, request: TurnRequest, turn_id: str, max_messages: int) -> OpenedTurn:
    with transaction.atomic(using=database):
        conversation_id, newest_id, history = _enter(database, owner, max_messages)
        turn = ChatTurn(pk=turn_id, conversation_id=conversation_id)
        turn.save(using=database, force_insert=True)
        values = message_values(StoredMessage(role="user", content=request.text))
        message = ChatMessage(conversation_id=conversation_id, turn=turn, parent_id=newest_id, **values)
        message.save(using=database, force_insert=True)
    return OpenedTurn(str(conversation_id), history)


def _enter(database: str, owner: Owner, max_messages: int) -> tuple[int, int | None, Sequence[StoredMessage]]:
    """Find the owner's current conversation or create it; return its id, its newest message's id and the window."""
    current = ChatConversation.objects.using(database).filter(current_key=owner.current_key)
    now = timezone.now()
    if not current.update(updated=now):
        created = ChatConversation(
            user_id=owner.user_id, session_key=owner.session_key, current_key=owner.current_key, updated=now
        )
        created.save(using=database, force_insert=True)
        return created.pk, None, ()
    messages = ChatMessage.objects.using(database).filter(conversation_id=current.values("pk")[:1])
    return _window(messages, max_messages) or (current.values_list("pk", flat=True).get(), None, ())


def _window(messages: QuerySet[ChatMessage], limit: int) -> tuple[int, int, Sequence[StoredMessage]] | None:
    newest_first = messages.order_by("-pk").values("pk", "conversation_id", *MESSAGE_COLUMNS)
    # One row is read even when no history is wanted: it tells where the conversation stands.
    rows = list(newest_first[: max(limit, 1)])
    if not rows:
        return None
    conversation_id, newest_id = rows[0]["conversation_id"], rows[0]["pk"]
    if limit < 1:
        return conversation_id, newest_id, ()
    if all(row["role"] != ChatMessage.Role.USER for row in rows):
        last_question = messages.filter(role=ChatMessage.Role.USER).aggregate(last=Max("pk"))["last"]
        rows = list(newest_first.filter(pk__gte=last_question)) if last_question is not None else []
    history = window([message_from_row(row) for row in reversed(rows)], limit)
    return conversation_id, newest_id, tuple(history)


def _close(turn: ClosedTurn, conversation_id: int) -> None:
    database = _database()
    with transaction.atomic(using=database):
        running = ChatTurn.objects.using(database).filter(pk=turn.turn_id, state=ChatTurn.State.RUNNING)
        ended: dict[str, Any] = {
            "state": turn.outcome.state,
            "error_code": turn.outcome.code or "",
            "usage": pack_usage(turn.usage),
            "events": [pack_event(event) for event in turn.events],
            "finished": timezone.now(),
        }
        if not running.update(**ended):
            logger.warning("Turn %r was not running any more: its end as %r is dropped.", turn.turn_id, ended["state"])
            return
        if not turn.messages:
            return
        messages = ChatMessage.objects.using(database)
        question = messages.filter(conversation_id=conversation_id, turn_id=turn.turn_id, role=ChatMessage.Role.USER)
        parent_id = question.values_list("pk", flat=True).first()
        messages.bulk_create(
            ChatMessage(
                conversation_id=conversation_id, turn_id=turn.turn_id, parent_id=parent_id, **message_values(message)
            )
            for message in turn.messages
        )
