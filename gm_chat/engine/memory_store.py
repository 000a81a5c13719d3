"""A :class:`~gm_chat.engine.ports.TurnStore` in the memory of one process.

For tests, and for projects that have not created the chat's tables: turns then run, and a mutation can be confirmed,
as long as it is the same process that is asked.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from gm_chat.encoding import jsonable
from gm_chat.engine.confirmation import timed_out, timed_out_events
from gm_chat.engine.events import Event, LoggedEvent
from gm_chat.engine.failures import INTERRUPTED, TurnStopped
from gm_chat.engine.history import window
from gm_chat.engine.ports import (
    ClosedTurn,
    ConfirmationLapsed,
    ConfirmRequest,
    ExpiredMutation,
    JoinedTurn,
    OpenedTurn,
    PendingMutation,
    Pulse,
    ResumedTurn,
    StoredMessage,
    StoredTurn,
    TurnRequest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gm_chat.plugin.context import Actor

__all__ = ["ALIVE_SECONDS", "FOLLOWED_SECONDS", "ConfirmationState", "MemoryTurnStore"]

ALIVE_SECONDS: Final = 15.0
"""How long after its start or its last pulse a running turn counts as alive."""

FOLLOWED_SECONDS: Final = 2.0
"""How long after it was last read a turn counts as followed; followers look at least once a second."""

ConfirmationState: TypeAlias = Literal["pending", "claimed", "executed", "failed", "rejected", "expired", "unknown"]


@dataclass(slots=True)
class _Confirmation:
    pending: PendingMutation
    state: ConfirmationState = "pending"
    lease_until: float = 0.0


@dataclass(slots=True)
class _Turn:
    id: str
    actor: Actor
    text: str
    key: str | None
    alive_until: float
    state: str = "running"
    events: Sequence[Event] = ()
    cancel: bool = False
    followed_at: float = float("-inf")
    confirmations: dict[str, _Confirmation] = field(default_factory=dict)

    @property
    def is_active(self) -> bool:
        """Whether it keeps its actor's next message waiting."""
        return self.state in {"running", "paused"}

    def end(self, state: str, events: Sequence[Event]) -> None:
        self.state, self.events = state, events


class MemoryTurnStore:
    """One conversation per actor. Safe to use from several threads: nothing in it waits.

    Unless it is to ``remember``, a conversation is forgotten with the end of its turn. ``keep_turns`` bounds the turns
    that are not running: the oldest are forgotten, a confirmation that one of them waits for included.
    """

    def __init__(
        self,
        *,
        remember: bool = True,
        keep_turns: int = 1000,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(tz=UTC),
    ) -> None:
        """Start empty. ``clock`` measures lives and leases (seconds), ``now`` judges the time for a confirmation."""
        self.rows: dict[str, list[StoredMessage]] = {}
        self._turns: dict[str, _Turn] = {}
        self._remember = remember
        self._keep_turns = keep_turns
        self._clock = clock
        self._now = now
        self._lock = threading.Lock()

    async def open_turn(self, request: TurnRequest, turn_id: str, *, max_messages: int) -> OpenedTurn | JoinedTurn:
        """Accept a message."""
        owner = request.actor.key
        with self._lock:
            if (joined := self._joined(request)) is not None:
                return joined
            self._make_way(owner)
            self._forget_old()
            self._turns[turn_id] = _Turn(
                turn_id, request.actor, request.text, request.key, self._clock() + ALIVE_SECONDS
            )
            rows = self.rows.setdefault(owner, [])
            history = tuple(window(rows, max_messages))
            rows.append(StoredMessage(role="user", content=request.text))
            return OpenedTurn(owner, history)

    async def earlier(self, request: TurnRequest) -> JoinedTurn | None:
        """The turn of an earlier request with the same key."""
        with self._lock:
            return self._joined(request)

    async def pulse(self, turn_id: str, events: Sequence[Event]) -> Pulse:
        """Keep a turn alive."""
        with self._lock:
            turn = self._turns.get(turn_id)
            if turn is None:
                return Pulse()
            if turn.state != "running":
                return Pulse(cancel=True)
            now = self._clock()
            turn.alive_until = now + ALIVE_SECONDS
            turn.events = events
            return Pulse(turn.cancel, followed=turn.followed_at > now - FOLLOWED_SECONDS)

    async def close_turn(self, turn: ClosedTurn) -> None:
        """Record what a turn left, unless it was taken for dead meanwhile."""
        with self._lock:
            stored = self._turns.get(turn.turn_id)
            if stored is None or stored.state != "running":
                return
            stored.end(turn.outcome.state, turn.events)
            if turn.pending is not None:
                told = jsonable({"input": turn.pending.input, "preview": turn.pending.preview})
                pending = replace(turn.pending, turn_id=stored.id, **told)
                stored.confirmations[pending.id] = _Confirmation(pending)
            self._add(stored, turn.messages)

    async def claim(self, request: ConfirmRequest, *, max_messages: int, lease_seconds: float) -> ResumedTurn:
        """Take a pending mutation."""
        with self._lock:
            turn, confirmation = self._confirmation(request.actor, request.confirmation_id)
            if confirmation.state != "pending":
                raise TurnStopped("confirmation_unavailable")
            if confirmation.pending.expires_at <= self._now():
                raise ConfirmationLapsed(request.confirmation_id)
            confirmation.state = "claimed"
            confirmation.lease_until = self._clock() + lease_seconds
            turn.state, turn.alive_until, turn.cancel = "running", self._clock() + ALIVE_SECONDS, False
            return ResumedTurn(
                turn_id=turn.id,
                conversation_id=turn.actor.key,
                text=turn.text,
                history=tuple(window(self.rows[turn.actor.key], max_messages)),
                pending=confirmation.pending,
                events=turn.events,
            )

    async def settle(
        self, resumed: ResumedTurn, *, state: Literal["executed", "failed", "rejected"], answer: StoredMessage
    ) -> None:
        """Record what a claimed mutation came to; late is better than never."""
        with self._lock:
            turn = self._turns[resumed.turn_id]
            turn.confirmations[resumed.pending.id].state = state
            self._add(turn, [answer])

    async def expire(self, actor: Actor | None = None, *, now: datetime | None = None) -> Sequence[ExpiredMutation]:
        """End what nobody confirmed in time."""
        with self._lock:
            now = self._now() if now is None else now
            return [
                self._expire(turn, confirmation)
                for turn, confirmation in self._waiting(actor)
                if confirmation.pending.expires_at <= now
            ]

    async def pending(self, actor: Actor) -> Sequence[PendingMutation]:
        """The actor's confirmations that still can be given."""
        with self._lock:
            waiting = [confirmation.pending for _, confirmation in self._waiting(actor)]
            return [pending for pending in waiting if pending.expires_at > self._now()]

    async def read_turn(self, turn_id: str, actor: Actor, *, after_seq: int) -> StoredTurn | None:
        """The actor's turn as far as it got."""
        with self._lock:
            turn = self._turns.get(turn_id)
            if turn is None or turn.actor.key != actor.key:
                return None
            self._bury(turn)
            turn.followed_at = self._clock()
            logged = [LoggedEvent(turn_id, seq, event) for seq, event in enumerate(turn.events, 1)]
            return StoredTurn(turn.state == "running", logged[after_seq:])

    async def request_cancel(self, turn_id: str, actor: Actor) -> bool:
        """Leave word for the turn's next pulse."""
        with self._lock:
            turn = self._turns.get(turn_id)
            if turn is None or turn.actor.key != actor.key or turn.state != "running":
                return False
            turn.cancel = True
            return True

    def confirmation_state(self, confirmation_id: str) -> ConfirmationState:
        """What became of a confirmation; a claim that was not settled in time is ``unknown``."""
        with self._lock:
            confirmation = next(
                turn.confirmations[confirmation_id]
                for turn in self._turns.values()
                if confirmation_id in turn.confirmations
            )
            if confirmation.state == "claimed" and confirmation.lease_until <= self._clock():
                confirmation.state = "unknown"
            return confirmation.state

    def _by_key(self, request: TurnRequest) -> _Turn | None:
        if request.key is None:
            return None
        mine = (turn for turn in self._turns.values() if turn.actor.key == request.actor.key)
        return next((turn for turn in mine if turn.key == request.key), None)

    def _joined(self, request: TurnRequest) -> JoinedTurn | None:
        earlier = self._by_key(request)
        if earlier is None:
            return None
        if earlier.text != request.text:
            raise TurnStopped("idempotency_conflict")
        return JoinedTurn(earlier.id)

    def _make_way(self, owner: str) -> None:
        """Refuse the actor's next message as long as a turn is in its way."""
        active = next((turn for turn in self._turns.values() if turn.is_active and turn.actor.key == owner), None)
        if active is None:
            return
        self._bury(active)
        if active.state == "running":
            raise TurnStopped("turn_in_progress")
        for _, confirmation in self._waiting(active.actor):
            if confirmation.pending.expires_at <= self._now():
                raise ConfirmationLapsed(confirmation.pending.id)
            raise TurnStopped("confirmation_pending")

    def _bury(self, turn: _Turn) -> None:
        if turn.state == "running" and turn.alive_until <= self._clock():
            turn.end("failed", [*turn.events, INTERRUPTED])
            self._add(turn, ())

    def _confirmation(self, actor: Actor, confirmation_id: str) -> tuple[_Turn, _Confirmation]:
        for turn in self._turns.values():
            if turn.actor.key == actor.key and confirmation_id in turn.confirmations:
                return turn, turn.confirmations[confirmation_id]
        raise TurnStopped("bad_event")

    def _waiting(self, actor: Actor | None) -> Iterator[tuple[_Turn, _Confirmation]]:
        for turn in self._turns.values():
            if turn.state == "paused" and (actor is None or turn.actor.key == actor.key):
                for confirmation in turn.confirmations.values():
                    if confirmation.state == "pending":
                        yield turn, confirmation

    def _expire(self, turn: _Turn, confirmation: _Confirmation) -> ExpiredMutation:
        pending = confirmation.pending
        confirmation.state = "expired"
        turn.end("done", [*turn.events, *timed_out_events(pending)])
        self._add(turn, [timed_out(pending)])
        return ExpiredMutation(
            turn_id=turn.id, conversation_id=turn.actor.key, actor=turn.actor, text=turn.text, pending=pending
        )

    def _add(self, turn: _Turn, messages: Sequence[StoredMessage]) -> None:
        if turn.is_active or self._remember:
            self.rows[turn.actor.key].extend(messages)
        else:
            self.rows.pop(turn.actor.key, None)

    def _forget_old(self) -> None:
        resting = [turn.id for turn in self._turns.values() if turn.state != "running"]
        for turn_id in resting[: max(0, len(resting) - self._keep_turns + 1)]:
            turn = self._turns.pop(turn_id)
            if turn.state == "paused" and not self._remember:
                self.rows.pop(turn.actor.key, None)
