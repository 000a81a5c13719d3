"""Turns and their conversations in Django's database: the engine's :class:`~gm_chat.engine.ports.TurnStore`.

Here are the hops to the database threads, and what happens where the tables are missing; what each method does in the
database lies in ``opening``, ``closing``, ``confirmations`` and ``following``. A text-only turn costs six
statements, four when it is accepted and two at its end, each group in one transaction. How a log is kept is told in
``segments``.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from django.db import OperationalError, ProgrammingError, connections

from gm_chat.engine.failures import TurnStopped
from gm_chat.engine.memory_store import ALIVE_SECONDS, MemoryTurnStore
from gm_chat.engine.ports import JoinedTurn, OpenedTurn, Pulse
from gm_chat.models import ChatConversation, ChatEventSegment, ChatMessage, ChatPendingConfirmation, ChatTurn
from gm_chat.persistence import closing, confirmations, following, opening
from gm_chat.persistence.database import chat_database
from gm_chat.persistence.owner import owner_of
from gm_chat.persistence.rows import stored_time
from gm_chat.persistence.threads import run_db, run_db_apart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gm_chat.engine.events import Event
    from gm_chat.engine.ports import (
        ClosedTurn,
        ConfirmRequest,
        ExpiredMutation,
        PendingMutation,
        ResumedTurn,
        StoredMessage,
        StoredTurn,
        TurnRequest,
    )
    from gm_chat.plugin.context import Actor

__all__ = ["DjangoTurnStore"]

T = TypeVar("T")

logger = logging.getLogger("gm_chat.persistence")

_TABLES: Final = frozenset(
    model._meta.db_table
    for model in (ChatConversation, ChatEventSegment, ChatMessage, ChatPendingConfirmation, ChatTurn)
)


class DjangoTurnStore:
    """Keeps the turns of users and sessions; an actor with neither gets turns that leave nothing behind.

    Where the chat's tables do not exist, turns live in this process's memory while they run or wait, and the log says
    so once. ``summarize_after`` is the setting of that name; without it no summary is ever due. ``alive_seconds`` is
    how long after its start or its last pulse a running turn counts as alive.
    """

    def __init__(self, *, summarize_after: int | None = None, alive_seconds: float = ALIVE_SECONDS) -> None:
        """Hold no state but what there are no rows for."""
        self._summarize_after = summarize_after
        self._alive_seconds = alive_seconds
        self._memory = MemoryTurnStore(remember=False)
        self._without_rows: set[str] = set()
        self._shown: dict[str, int | None] = {}
        self._questions: dict[str, int] = {}
        self._said_tables_are_missing = False

    async def open_turn(self, request: TurnRequest, turn_id: str, *, max_messages: int) -> OpenedTurn | JoinedTurn:
        """Record the message and its turn; return the window of at most ``max_messages`` rows before it.

        The window starts at a user's message. When the newest turn alone is longer than the window, it is returned
        whole: a cut would separate tool calls from their results.
        """
        owner = owner_of(request.actor)
        if owner is None:
            self._without_rows.add(turn_id)
            return OpenedTurn(None, ())
        answer = await self._run(
            partial(
                opening.open_turn,
                owner,
                request,
                turn_id,
                max_messages=max_messages,
                summarize_after=self._summarize_after,
                alive_seconds=self._alive_seconds,
            )
        )
        if isinstance(answer, JoinedTurn):
            return answer
        if answer is not None:
            self._questions[turn_id] = answer.question_id
            return answer.opened
        remembered = await self._memory.open_turn(request, turn_id, max_messages=max_messages)
        if isinstance(remembered, JoinedTurn):
            return remembered
        self._without_rows.add(turn_id)
        return replace(remembered, conversation_id=None)

    async def earlier(self, request: TurnRequest) -> JoinedTurn | None:
        """The turn that an earlier request with the same key and text started."""
        owner = owner_of(request.actor)
        if owner is None:
            return None
        found = await self._run(partial(opening.earlier_turn, owner, request))
        return found or await self._memory.earlier(request)

    async def pulse(self, turn_id: str, events: Sequence[Event]) -> Pulse:
        """Renew the turn and its log, and read what others want of it.

        In a thread apart: while slow queries keep all others busy, no turn is to be taken for dead.
        """
        if turn_id in self._without_rows:
            return await self._memory.pulse(turn_id, events)
        shown, self._shown[turn_id] = self._shown.get(turn_id, 0), None  # if it fails, nobody knows what it stored
        work = partial(following.pulse, turn_id, events, shown=shown, alive_seconds=self._alive_seconds)
        pulse = await run_db_apart(self._unless_tables_are_missing, work)
        if pulse is None:
            return Pulse()
        if turn_id in self._shown:  # else the turn, cancelled, did not wait for this pulse to be closed
            self._shown[turn_id] = len(events)
        return pulse

    async def close_turn(self, turn: ClosedTurn) -> None:
        """Record the turn's messages, outcome, usage and events. A turn that is not running is left as it is."""
        shown = self._shown.pop(turn.turn_id, 0)
        question_id = self._questions.pop(turn.turn_id, None)
        if turn.turn_id in self._without_rows:
            self._without_rows.discard(turn.turn_id)
            await self._memory.close_turn(turn)
        else:
            await self._run(partial(closing.close_turn, turn, shown=shown, question_id=question_id))

    async def claim(self, request: ConfirmRequest, *, max_messages: int, lease_seconds: float) -> ResumedTurn:
        """Take a pending mutation, and let its turn run again."""
        owner = owner_of(request.actor)
        if owner is None:
            raise TurnStopped("bad_event")
        resumed = await self._run(
            partial(
                confirmations.claim,
                owner,
                request,
                max_messages=max_messages,
                lease_seconds=lease_seconds,
                alive_seconds=self._alive_seconds,
            )
        )
        if resumed is not None:
            self._shown[resumed.turn_id] = len(resumed.events)
            return resumed
        remembered = await self._memory.claim(request, max_messages=max_messages, lease_seconds=lease_seconds)
        self._without_rows.add(remembered.turn_id)
        return replace(remembered, conversation_id=None)

    async def settle(
        self, resumed: ResumedTurn, *, state: Literal["executed", "failed", "rejected"], answer: StoredMessage
    ) -> None:
        """Record the outcome of a claim and the answer to the call; an outcome that comes late is taken too."""
        if resumed.turn_id in self._without_rows:
            await self._memory.settle(resumed, state=state, answer=answer)
        else:
            await self._run(partial(confirmations.settle, resumed, state=state, answer=answer))

    async def expire(self, actor: Actor | None = None, *, now: datetime | None = None) -> Sequence[ExpiredMutation]:
        """End confirmations whose time is over; each is handed out once, whichever process asks."""
        now = datetime.now(tz=UTC) if now is None else now
        owner = None if actor is None else owner_of(actor)
        if actor is not None and owner is None:
            return ()
        expired = await self._run(partial(confirmations.expire, actor, owner, stored_time(now)))
        return await self._memory.expire(actor, now=now) if expired is None else expired

    async def pending(self, actor: Actor) -> Sequence[PendingMutation]:
        """The actor's confirmations that can still be given, oldest first."""
        owner = owner_of(actor)
        if owner is None:
            return ()
        waiting = await self._run(partial(confirmations.pending, owner))
        return await self._memory.pending(actor) if waiting is None else waiting

    async def read_turn(self, turn_id: str, actor: Actor, *, after_seq: int) -> StoredTurn | None:
        """The actor's turn as its process last showed it, at most a pulse ago."""
        owner = owner_of(actor)
        if owner is None:
            return None
        found = await self._run(partial(following.read_turn, owner, turn_id, after_seq=after_seq))
        return found or await self._memory.read_turn(turn_id, actor, after_seq=after_seq)

    async def request_cancel(self, turn_id: str, actor: Actor) -> bool:
        """Leave word for the next pulse of the process that runs the turn."""
        owner = owner_of(actor)
        if owner is None:
            return False
        asked = await self._run(partial(following.request_cancel, owner, turn_id))
        return asked or await self._memory.request_cancel(turn_id, actor)

    async def _run(self, work: Callable[[], T]) -> T | None:
        """Do the work in a database thread; ``None`` if that cannot be, since tables are missing."""
        return await run_db(self._unless_tables_are_missing, work)

    def _unless_tables_are_missing(self, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except (OperationalError, ProgrammingError):
            connection = connections[chat_database()]
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
            return None
