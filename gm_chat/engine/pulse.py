"""The heartbeat of a running turn: it shows the turn to other processes and brings their wishes."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from gm_chat.engine.bus import TurnBus
    from gm_chat.engine.log import EventLog
    from gm_chat.engine.ports import Pulse, TurnStore

__all__ = ["PULSE_SECONDS", "pulsing"]

logger = logging.getLogger("gm_chat.engine")

PULSE_SECONDS: Final = 0.4
"""Between two pulses, and before the first one: most turns of a fast model end without any."""

LIVE_SECONDS: Final = 0.1
"""Between two pulses of a turn that is followed elsewhere, as long as it has something new and they can be told so."""


@asynccontextmanager
async def pulsing(
    store: TurnStore, log: EventLog, bus: TurnBus, heard: Callable[[Pulse], None]
) -> AsyncGenerator[None, None]:
    """Pulse while the block runs, and hand each answer to ``heard``. No pulse is under way any more after it."""
    heart = _Heart(store, log, bus, heard)
    with bus.on_requested(log.turn_id, heart.hurry):
        first = asyncio.get_running_loop().call_later(PULSE_SECONDS, heart.hurry)
        try:
            yield
        finally:
            first.cancel()
            await heart.stop()


class _Heart:
    def __init__(self, store: TurnStore, log: EventLog, bus: TurnBus, heard: Callable[[Pulse], None]) -> None:
        self._store = store
        self._log = log
        self._bus = bus
        self._heard = heard
        self._beats: asyncio.Task[None] | None = None  # most turns end before the first pulse, and need none
        self._due = asyncio.Event()
        self._is_over = False
        self._is_live = False  # followed elsewhere, by somebody who can be told
        self._announced = 0

    def hurry(self) -> None:
        """Pulse now, and from now on."""
        self._due.set()
        if self._beats is None:
            self._beats = asyncio.create_task(self._beat())

    async def stop(self) -> None:
        """Let the current pulse be the last one, and wait for it."""
        self._is_over = True
        self._due.set()
        if self._beats is not None:
            await asyncio.wait({self._beats})

    async def _beat(self) -> None:
        while not await self._rest():
            self._due.clear()
            try:
                await self._pulse()
            except Exception:
                logger.warning("turn %s could not be shown to other processes", self._log.turn_id, exc_info=True)

    async def _pulse(self) -> None:
        self._is_live = False
        events = self._log.events
        pulse = await self._store.pulse(self._log.turn_id, events)
        self._heard(pulse)
        self._is_live = pulse.followed and self._bus.reaches_others
        if self._is_live and len(events) > self._announced:
            self._announced = len(events)
            self._bus.announce(self._log.turn_id, self._announced)

    async def _rest(self) -> bool:
        """Wait until the next pulse is due; whether there is to be none."""
        now = asyncio.get_running_loop().time
        until = now() + PULSE_SECONDS
        while not self._due.is_set() and (left := until - now()) > 0:
            await _wait(self._due, min(left, LIVE_SECONDS) if self._is_live else left)
            if self._is_live and len(self._log) > self._announced:
                break
        return self._is_over


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
