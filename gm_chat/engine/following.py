"""Following a turn that another process, or another event loop, runs: through the store that all of them share."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from gm_chat.engine.bus import TurnBus
    from gm_chat.engine.events import LoggedEvent
    from gm_chat.engine.ports import StoredTurn, TurnStore
    from gm_chat.plugin.context import Actor

__all__ = ["FOLLOW_SECONDS", "UnknownTurnError", "follow_store"]

FOLLOW_SECONDS: Final = 0.25
"""Between two looks. A turn shows itself every 0.4 s, so its events come after 0.65 s at most."""

TOLD_SECONDS: Final = 1.0
"""The same as long as the bus brings the news. Each look also shows the turn that it is followed."""


class UnknownTurnError(LookupError):
    """No such turn of this actor: there is none, it is another's, or it was forgotten."""

    def __init__(self, turn_id: str) -> None:
        """Name the turn."""
        super().__init__(f"turn {turn_id!r} is unknown, or not this user's")


async def follow_store(
    store: TurnStore, bus: TurnBus, turn_id: str, after_seq: int, actor: Actor
) -> AsyncGenerator[LoggedEvent, None]:
    """Yield the events of the actor's turn with a ``seq`` above ``after_seq``, as they are stored, up to its end."""
    turn = None
    while turn is None or turn.has_more:
        turn = await _look(store, turn_id, after_seq, actor)
        for logged in turn.events:
            yield logged
            after_seq = logged.seq
    if not turn.running:
        return
    news = _News(after_seq)
    with bus.on_announced(turn_id, news.heard):
        bus.request(turn_id)  # that it be shown at once, and as it happens from now on
        while turn.running or turn.has_more:
            if not turn.has_more:
                await news.wait()
            turn = await _look(store, turn_id, news.seen, actor)
            news.found(len(turn.events))
            for logged in turn.events:
                yield logged


async def _look(store: TurnStore, turn_id: str, after_seq: int, actor: Actor) -> StoredTurn:
    turn = await store.read_turn(turn_id, actor, after_seq=after_seq)
    if turn is None:
        raise UnknownTurnError(turn_id)
    return turn


class _News:
    """When to look. The bus is relied on as long as it tells of events before a look finds them."""

    def __init__(self, seen: int) -> None:
        self.seen = seen
        self._bell = asyncio.Event()
        self._was_told = False
        self._is_relied_on = False

    def heard(self, seq: int) -> None:
        if seq > self.seen:
            self._bell.set()

    async def wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(TOLD_SECONDS if self._is_relied_on else FOLLOW_SECONDS):
                await self._bell.wait()
        self._was_told = self._bell.is_set()
        self._bell.clear()  # before the look: what is told during it may have come too late for it

    def found(self, events: int) -> None:
        self.seen += events
        self._is_relied_on = self._was_told or (self._is_relied_on and not events)
