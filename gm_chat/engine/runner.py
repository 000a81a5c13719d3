"""Who runs turns: a task of its own for each, so that no transport's fate is a turn's fate."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gm_chat.engine.failures import CANCELLED, unexpected
from gm_chat.engine.log import EventLog
from gm_chat.engine.turn import run_turn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from gm_chat.engine.events import LoggedEvent
    from gm_chat.engine.ports import TurnRequest, TurnServices
    from gm_chat.engine.state import Loop

__all__ = ["TurnRunner", "UnknownTurnError"]


class UnknownTurnError(LookupError):
    """No such turn runs in this process, and none that ended recently has the id."""


@dataclass(slots=True)
class _Run:
    log: EventLog
    task: asyncio.Task[None]
    loop: asyncio.AbstractEventLoop
    ended_at: float | None = None


class TurnRunner:
    """Starts turns, lets any number of subscribers follow them, cancels them.

    Serves a long-lived event loop (ASGI) and one loop per request (WSGI), where the view that starts a turn must
    follow it to its end. Logs of ended turns are kept for ``keep_seconds``, at most ``keep_turns`` of them.
    """

    def __init__(
        self,
        services: TurnServices,
        loop: Loop,
        *,
        keep_seconds: float = 60.0,
        keep_turns: int = 256,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Run every turn with ``services``, by ``loop``."""
        self._services = services
        self._loop = loop
        self._keep_seconds = keep_seconds
        self._keep_turns = keep_turns
        self._clock = clock
        self._runs: dict[str, _Run] = {}

    async def start(self, request: TurnRequest) -> str:
        """Start a turn and return its id; its events are in its log from the first one on."""
        self._forget_old()
        turn_id = self._services.new_id()
        log = EventLog(turn_id)
        task = asyncio.create_task(self._drive(request, log), name=f"gm-chat-turn-{turn_id}")
        run = self._runs[turn_id] = _Run(log, task, asyncio.get_running_loop())
        task.add_done_callback(lambda _: self._ended(run))
        return turn_id

    def subscribe(self, turn_id: str, after_seq: int = 0) -> AsyncGenerator[LoggedEvent, None]:
        """Follow a turn: its events after ``after_seq``, up to its end. Leaving early does not disturb the turn."""
        return self._find(turn_id).log.read(after_seq)

    async def cancel(self, turn_id: str) -> bool:
        """Stop a turn and wait until it is closed. Returns whether it was still running; unknown ids are not."""
        run = self._runs.get(turn_id)
        if run is None or run.task.done():
            return False
        await self._stop(run)
        return True

    async def wait_closed(self, *, grace_seconds: float = 5.0) -> None:
        """For shutdown: give the turns of this event loop ``grace_seconds`` to end, then cancel those that remain."""
        here = asyncio.get_running_loop()
        tasks = {run.task for run in list(self._runs.values()) if run.loop is here and not run.task.done()}
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=grace_seconds)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    def _find(self, turn_id: str) -> _Run:
        try:
            return self._runs[turn_id]
        except KeyError:
            raise UnknownTurnError(f"turn {turn_id!r} is not running here and did not end recently") from None

    async def _drive(self, request: TurnRequest, log: EventLog) -> None:
        turn = run_turn(request, self._services, loop=self._loop, turn_id=log.turn_id)
        async with aclosing(turn):
            async for event in turn:
                log.append(event)

    async def _stop(self, run: _Run) -> None:
        if run.loop is asyncio.get_running_loop():
            run.task.cancel()
            await asyncio.wait({run.task})
        else:
            # Another thread's loop runs the turn: the request reaches it, its end cannot be awaited from here.
            run.loop.call_soon_threadsafe(run.task.cancel)

    def _ended(self, run: _Run) -> None:
        """See to it that every log has an end, also that of a task which was cancelled before its first step."""
        run.ended_at = self._clock()
        if run.log.is_finished:
            return
        error = None if run.task.cancelled() else run.task.exception()
        run.log.append(CANCELLED if error is None else unexpected(error, run.log.turn_id))

    def _forget_old(self) -> None:
        ended = [(id, run.ended_at) for id, run in list(self._runs.items()) if run.ended_at is not None]
        too_many = len(ended) - self._keep_turns
        horizon = self._clock() - self._keep_seconds
        for position, (turn_id, ended_at) in enumerate(sorted(ended, key=lambda pair: pair[1])):
            if position < too_many or ended_at < horizon:
                self._runs.pop(turn_id, None)
