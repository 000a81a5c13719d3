"""What an open socket shows: one turn, or the confirmation that the turn waits for. Each in a task of its own."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from gm_chat.engine import UnknownTurnError
from gm_chat.engine.events import Error
from gm_chat.engine.failures import report
from gm_chat.plugin import TurnContext
from gm_chat.transports import asks
from gm_chat.transports.asks import Showing
from gm_chat.transports.checked import BadEvent
from gm_chat.transports.line import DENIED
from gm_chat.transports.turns import follow
from gm_chat.transports.wire import event_object

if TYPE_CHECKING:
    from gm_chat.plugin import Actor
    from gm_chat.transports.asks import Ask, Place
    from gm_chat.transports.handshake import Visit
    from gm_chat.transports.line import Line
    from gm_chat.wiring import Runtime

__all__ = ["Stage"]

ENDS: Final = frozenset({"done", "error", "confirm_mutation"})
MOST_TASKS: Final = 8
LAPSE_SECONDS: Final = 0.2
"""How much later than the confirmation the socket's timer ends: the store goes by another clock."""


class Stage:
    """Shows turns to one client. Leaving the block leaves the running one to the runner's grace."""

    def __init__(self, runtime: Runtime, visit: Visit, line: Line) -> None:
        """Show to ``visit`` over ``line``."""
        self._runtime = runtime
        self._runner = runtime.runner
        self._visit = visit
        self._line = line
        self._tasks: set[asyncio.Task[None]] = set()
        self.showing: Showing | None = None
        self.paused: Place | None = None
        self._expiry: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop_waiting()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def room(self) -> None:
        """Wait while the client asks for more than it is answered: it is not listened to meanwhile."""
        while len(self._tasks) >= MOST_TASKS:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    def show(self, ask: Ask, key: str | None = None) -> None:
        """Ask for a turn and show it, in a task. Where one is shown already, only a refusal comes of it."""
        showing = Showing(key=key)
        self.showing = self.showing or showing
        task = asyncio.create_task(self._run(showing, ask))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, showing: Showing, ask: Ask) -> None:
        try:
            visit = await self._visit.again()
            if visit.actor != self._visit.actor or not await visit.is_permitted(self._runtime):
                await self._line.close(DENIED)
                return
            match await ask(visit):
                case Error() as refusal:
                    await self._emit(event_object(refusal), showing)
                case turn_id, after_seq:
                    await self._stream(showing, turn_id, after_seq, visit.actor)
        except UnknownTurnError:
            await self._emit(event_object(BadEvent().event), showing)
        except Exception as error:  # noqa: BLE001 - logged, and told to the client in general words
            context = TurnContext(showing.turn_id or "", None, self._visit.actor, "", "websocket", self._visit.scope)
            await self._emit(event_object(await report(self._runtime.observer, context, error)), showing)
        finally:
            self.showing = None if self.showing is showing else self.showing

    async def _stream(self, showing: Showing, turn_id: str, after_seq: int, actor: Actor) -> None:
        showing.turn_id = turn_id
        if showing.cancelled:
            await self._runner.cancel(turn_id, actor=actor)
        async with aclosing(follow(self._runner, turn_id, after_seq, actor)) as events:
            async for event in events:
                self._stop_waiting()
                if event["type"] == "confirm_mutation":
                    self._wait_for_word((turn_id, event["seq"]))
                await self._emit(event, showing)

    def _wait_for_word(self, place: Place) -> None:
        self.paused = place
        seconds = self._runtime.settings.confirm_timeout_seconds + LAPSE_SECONDS
        lapse = partial(asks.lapse, self._runner, place)
        self._expiry = asyncio.get_running_loop().call_later(seconds, self.show, lapse)

    def _stop_waiting(self) -> None:
        self.paused = None
        if self._expiry is not None:
            self._expiry.cancel()

    async def _emit(self, event: dict[str, Any], showing: Showing) -> None:
        """Send; what ends a stream frees the socket before that, as the client's next message may come at once."""
        if event["type"] in ENDS and self.showing is showing:
            self.showing = None
        await self._line.emit(event)
