"""Who runs turns: a task of its own for each, so that no transport's fate is a turn's fate."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import aclosing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from gm_chat.engine.admission import accept, expire, resume
from gm_chat.engine.bus import SILENCE
from gm_chat.engine.failures import CANCELLED, TurnStopped, unexpected
from gm_chat.engine.following import UnknownTurnError, follow_store
from gm_chat.engine.ports import ConfirmRequest, JoinedTurn
from gm_chat.engine.pulse import pulsing
from gm_chat.engine.turn import BREATH, Turn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence

    from gm_chat.engine.budgets import BudgetState
    from gm_chat.engine.bus import TurnBus
    from gm_chat.engine.events import Event, LoggedEvent
    from gm_chat.engine.log import EventLog
    from gm_chat.engine.ports import ExpiredMutation, PendingMutation, Pulse, TurnRequest, TurnServices
    from gm_chat.engine.rate_limit import Allowance
    from gm_chat.engine.state import Loop
    from gm_chat.plugin.context import Actor

__all__ = ["TurnRunner", "UnknownTurnError"]

T = TypeVar("T")

UNCLAIMED_SECONDS: Final = 5.0
"""How long a turn runs at most, whatever the grace period, for a client that never came to follow it."""

FOLLOWED_ELSEWHERE_SECONDS: Final = 1.0
"""How long a sign of a follower in another process counts; each pulse brings one as long as there is one."""

STOP_SECONDS: Final = 10.0
"""How long ``cancel`` waits for a turn to be closed. A write that has begun gets five of them."""


@dataclass(slots=True)
class _Run:
    """What is left of a turn to others: who owns it, what it said, and how to stop it."""

    owner: str
    log: EventLog
    task: asyncio.Task[None]
    loop: asyncio.AbstractEventLoop
    allowance: Allowance
    followers: int = 0
    followed_elsewhere_at: float = float("-inf")
    alone: asyncio.TimerHandle | None = None
    stopping: bool = False
    ended_at: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether it ended for good: a pause may be taken up again, perhaps by another process."""
        return self.ended_at is not None and not self.log.is_paused

    def stop(self) -> None:
        """Cancel the turn, once: a second cancellation would tear a close or a write that the first one waits for."""
        if not self.stopping:
            self.stopping = True
            self.task.cancel()


class TurnRunner:
    """Starts turns, takes paused ones up again, lets any number of subscribers follow them, cancels them.

    Serves a long-lived event loop (ASGI) and one loop per request (WSGI), where the view that starts a turn must
    follow it to its end. Logs of ended turns are kept for ``keep_seconds``, at most ``keep_turns`` of them. Turns
    that run elsewhere are followed and cancelled through the store; over a ``bus``, they learn of it at once.
    """

    def __init__(
        self,
        services: TurnServices,
        loop: Loop,
        *,
        bus: TurnBus = SILENCE,
        keep_seconds: float = 60.0,
        keep_turns: int = 256,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Run every turn with ``services``, by ``loop``."""
        self._services = services
        self._loop = loop
        self._bus = bus
        self._keep_seconds = keep_seconds
        self._keep_turns = keep_turns
        self._clock = clock
        self._runs: dict[str, _Run] = {}
        self._rested: deque[tuple[_Run, float]] = deque()  # ended or paused, in the order in which they did
        self._tasks: set[asyncio.Task[None]] = set()

    # --- what users ask -------------------------------------------------------------------------------------------

    async def start(self, request: TurnRequest) -> str:
        """Have a message accepted, and return the id of its turn, which runs from now on; follow it at once.

        A repeated request returns the id of the turn that it joins. Raises
        :class:`~gm_chat.engine.failures.TurnStopped` where no turn comes of it: its ``event`` is the whole answer.
        A caller that is cancelled meanwhile leaves a turn that nobody follows.
        """
        self._forget_old()
        admitted = await self._admit(accept(self._services, request))
        return admitted.turn_id if isinstance(admitted, JoinedTurn) else admitted.context.turn_id

    async def confirm(self, request: ConfirmRequest) -> tuple[str, int]:
        """Take a paused turn up with its user's word; return its id and the ``seq`` after which it goes on.

        Raises :class:`~gm_chat.engine.failures.TurnStopped` where the word comes to nothing: ``bad_event``,
        ``confirmation_unavailable``.
        """
        turn = await self._admit(resume(self._services, request))
        return turn.context.turn_id, turn.resumed_after

    async def subscribe(self, turn_id: str, after_seq: int = 0, *, actor: Actor) -> AsyncGenerator[LoggedEvent, None]:
        """Follow the actor's turn: its events after ``after_seq``, up to its end or pause.

        Leaving early starts the grace period, if nobody else follows; close the generator with ``aclosing``. The
        first step raises :class:`UnknownTurnError` for a turn that is not the actor's, or not known any more.
        """
        run = self._run_here(turn_id, actor)
        if run is None:
            source = follow_store(self._services.store, self._bus, turn_id, after_seq, actor)
        else:
            source = run.log.read(after_seq)
        with nullcontext() if run is None else self._following(run):
            async with aclosing(source) as events:
                async for logged in events:
                    yield logged
                    if not logged.seq % BREATH:
                        await asyncio.sleep(0)  # what is there already is not waited for, however much it is

    async def collect(self, turn_id: str, after_seq: int = 0, *, actor: Actor) -> Sequence[LoggedEvent]:
        """Follow the actor's turn like :meth:`subscribe`, and return all of its events at its end or pause."""
        run = self._run_here(turn_id, actor)
        if run is not None:
            with self._following(run):
                return await run.log.collect(after_seq)
        async with aclosing(self.subscribe(turn_id, after_seq, actor=actor)) as events:
            return [logged async for logged in events]

    async def cancel(self, turn_id: str, *, actor: Actor) -> bool:
        """Stop the actor's turn, wherever it runs; return whether there was anything to stop.

        A turn of this event loop is closed when this returns. A paused one ends too, its mutation rejected.
        """
        run = self._runs.get(turn_id)
        if run is not None and run.owner != actor.key:
            return False
        if run is not None and run.ended_at is None and not run.loop.is_closed():
            await self._stop(run)
            if not run.log.is_paused:
                return True
        if await self._reject(turn_id, actor):
            return True
        requested = await self._services.store.request_cancel(turn_id, actor)
        if requested:
            self._bus.request(turn_id)
        return requested

    def budgets(self, turn_id: str) -> Sequence[BudgetState]:
        """How the budgets of a turn's actor stand, as far as that turn has heard of them and this process runs it."""
        run = self._runs.get(turn_id)
        return () if run is None else run.allowance.states

    async def pending(self, actor: Actor) -> Sequence[PendingMutation]:
        """The mutations that wait for the actor's word, oldest first."""
        return await self._services.store.pending(actor)

    async def expire(self, actor: Actor | None = None) -> Sequence[ExpiredMutation]:
        """End the confirmations, the actor's or everybody's, whose time is over, with the turns that wait for them.

        Returns those that this call ended: the ends of their turns can be read with :meth:`subscribe`.
        """
        return await expire(self._services, actor)

    async def wait_closed(self, *, grace_seconds: float = 5.0) -> None:
        """For shutdown: give the turns of this event loop ``grace_seconds`` to end, then cancel those that remain."""
        here = asyncio.get_running_loop()
        runs = [run for run in list(self._runs.values()) if run.loop is here and not run.task.done()]
        if runs:
            _, late = await asyncio.wait({run.task for run in runs}, timeout=grace_seconds)
            for run in runs:
                if run.task in late:
                    run.stop()
            if late:
                await asyncio.wait(late)
        await self._bus.aclose()

    # --- a turn's task --------------------------------------------------------------------------------------------

    async def _admit(self, admission: Coroutine[Any, Any, T]) -> T:
        """Let a task of its own pass the door and, if a turn comes of it, run that; return what came."""
        admitted: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._drive(admission, admitted))
        self._tasks.add(task)  # the event loop itself holds tasks but weakly
        task.add_done_callback(self._tasks.discard)
        return await admitted

    async def _drive(self, admission: Coroutine[Any, Any, T], admitted: asyncio.Future[T]) -> None:
        try:
            result = await admission
        except BaseException as error:
            if not admitted.done():
                admitted.set_exception(error)
            if isinstance(error, Exception):
                return
            raise
        asker_is_there = not admitted.done()
        if asker_is_there:
            admitted.set_result(result)
        if isinstance(result, Turn):
            run = self._register(result)
            self._wait_for_followers(run, max(self._grace, UNCLAIMED_SECONDS) if asker_is_there else self._grace)
            heartbeat = pulsing(self._services.store, result.log, self._bus, partial(self._heard, run))
            await result.run(self._loop, heartbeat, lambda: run.stopping)

    def _register(self, turn: Turn) -> _Run:
        """Enter the turn that the current task is about to run."""
        task = cast("asyncio.Task[None]", asyncio.current_task())
        context = turn.context
        run = _Run(context.actor.key, turn.log, task, asyncio.get_running_loop(), turn.allowance)
        self._runs[context.turn_id] = run
        task.add_done_callback(lambda _: self._ended(run, turn.last))
        return run

    def _ended(self, run: _Run, last: Event | None) -> None:
        """Add the last event, now that nothing is left to do; that of a turn which could not even be closed, too."""
        run.ended_at = self._clock()
        if run.alone is not None:
            run.alone.cancel()
        if last is None:
            error = None if run.task.cancelled() else run.task.exception()
            last = CANCELLED if error is None else unexpected(error, run.log.turn_id)
        run.log.append(last)
        if run.followed_elsewhere_at > float("-inf"):
            self._bus.announce(run.log.turn_id, len(run.log))
        self._rested.append((run, run.ended_at))

    def _heard(self, run: _Run, pulse: Pulse) -> None:
        if pulse.followed:
            run.followed_elsewhere_at = self._clock()
        if pulse.cancel:
            run.stop()

    async def _stop(self, run: _Run) -> None:
        if run.loop is asyncio.get_running_loop():
            run.stop()
            await asyncio.wait({run.task}, timeout=STOP_SECONDS)
        else:
            # Another thread's loop runs the turn: the request reaches it, its end cannot be awaited from here.
            run.loop.call_soon_threadsafe(run.stop)

    async def _reject(self, turn_id: str, actor: Actor) -> bool:
        """End a paused turn in its user's stead."""
        waiting = [pending.id for pending in await self._services.store.pending(actor) if pending.turn_id == turn_id]
        for confirmation_id in waiting:
            request = ConfirmRequest(actor=actor, confirmation_id=confirmation_id, approved=False, transport="http")
            try:
                await self._admit(resume(self._services, request, stop=True))
            except TurnStopped:
                return False  # somebody's word was faster
            await asyncio.wait({self._runs[turn_id].task}, timeout=STOP_SECONDS)
        return bool(waiting)

    # --- followers ------------------------------------------------------------------------------------------------

    @property
    def _grace(self) -> float:
        return float(self._services.settings.resume_grace_seconds)

    def _run_here(self, turn_id: str, actor: Actor) -> _Run | None:
        """The actor's turn, if its log can be read here; raise :class:`UnknownTurnError` for another's."""
        run = self._runs.get(turn_id)
        if run is None:
            return None
        if run.owner != actor.key:
            raise UnknownTurnError(turn_id)
        here = run.is_over or (run.ended_at is None and run.loop is asyncio.get_running_loop())
        return run if here else None

    @contextmanager
    def _following(self, run: _Run) -> Iterator[None]:
        """Count who follows a turn; the last one to leave starts the grace period."""
        run.followers += 1
        try:
            yield
        finally:
            run.followers -= 1
            if not run.followers and run.ended_at is None:
                self._wait_for_followers(run, self._grace)

    def _wait_for_followers(self, run: _Run, seconds: float) -> None:
        if run.alone is not None:
            run.alone.cancel()
        run.alone = run.loop.call_later(seconds, self._stop_if_alone, run)

    def _stop_if_alone(self, run: _Run) -> None:
        if run.followers or run.ended_at is not None:
            return
        good_for = max(self._grace, FOLLOWED_ELSEWHERE_SECONDS)
        seconds = run.followed_elsewhere_at + good_for - self._clock()
        if seconds > 0:
            self._wait_for_followers(run, seconds)
        else:
            run.stop()

    def _forget_old(self) -> None:
        horizon = self._clock() - self._keep_seconds
        with suppress(IndexError):  # another thread forgot the last one
            while len(self._rested) > self._keep_turns or self._rested[0][1] < horizon:
                run, _ = self._rested.popleft()
                # The turn may have been taken up again since it paused.
                if self._runs.get(run.log.turn_id) is run:
                    self._runs.pop(run.log.turn_id, None)
