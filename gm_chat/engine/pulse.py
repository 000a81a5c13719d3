"""The heartbeat of a running turn: it shows the turn to other processes and brings their wishes."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from gm_chat.engine.log import EventLog
    from gm_chat.engine.ports import Pulse, TurnStore

__all__ = ["PULSE_SECONDS", "pulsing"]

logger = logging.getLogger("gm_chat.engine")

PULSE_SECONDS: Final = 0.4
"""Between two pulses, and before the first one: most turns of a fast model end without any."""


@asynccontextmanager
async def pulsing(store: TurnStore, log: EventLog, heard: Callable[[Pulse], None]) -> AsyncGenerator[None, None]:
    """Pulse while the block runs, and hand each answer to ``heard``. No pulse is under way any more after it."""
    over = asyncio.Event()
    beats = asyncio.create_task(_beat(store, log, heard, over))
    try:
        yield
    finally:
        over.set()
        await asyncio.wait({beats})


async def _beat(store: TurnStore, log: EventLog, heard: Callable[[Pulse], None], over: asyncio.Event) -> None:
    while not await _is_set(over):
        try:
            heard(await store.pulse(log.turn_id, log.events))
        except Exception:
            logger.warning("turn %s could not be shown to other processes", log.turn_id, exc_info=True)


async def _is_set(over: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(PULSE_SECONDS):
            return await over.wait()
    except TimeoutError:
        return False
