"""Following a turn that another process, or another event loop, runs: through the store that all of them share."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from gm_chat.engine.events import LoggedEvent
    from gm_chat.engine.ports import TurnStore
    from gm_chat.plugin.context import Actor

__all__ = ["FOLLOW_SECONDS", "UnknownTurnError", "follow_store"]

FOLLOW_SECONDS: Final = 0.25
"""Between two looks. A turn shows itself every 0.4 s, so its events come after 0.65 s at most."""


class UnknownTurnError(LookupError):
    """No such turn of this actor: there is none, it is another's, or it was forgotten."""

    def __init__(self, turn_id: str) -> None:
        """Name the turn."""
        super().__init__(f"turn {turn_id!r} is unknown, or not this user's")


async def follow_store(
    store: TurnStore, turn_id: str, after_seq: int, actor: Actor
) -> AsyncGenerator[LoggedEvent, None]:
    """Yield the events of the actor's turn with a ``seq`` above ``after_seq``, as they are stored, up to its end."""
    while True:
        turn = await store.read_turn(turn_id, actor, after_seq=after_seq)
        if turn is None:
            raise UnknownTurnError(turn_id)
        for logged in turn.events:
            yield logged
            after_seq = logged.seq
        if not turn.running:
            return
        await asyncio.sleep(FOLLOW_SECONDS)
