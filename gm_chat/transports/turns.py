"""A turn as long as somebody listens: what HTTP and SSE have in common after the request is read."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from gm_chat.engine import TurnRunner
    from gm_chat.engine.events import LoggedEvent
    from gm_chat.engine.ports import TurnRequest

__all__ = ["follow"]


async def follow(runner: TurnRunner, request: TurnRequest) -> AsyncGenerator[LoggedEvent, None]:
    """Start a turn and yield its events. Closed or cancelled before the last one, it cancels the turn.

    Close it with ``aclosing``: a generator that is merely dropped lets the provider go on streaming, and billing.
    """
    turn_id = await runner.start(request)
    ended = False
    try:
        async with aclosing(runner.subscribe(turn_id)) as events:
            async for logged in events:
                ended = logged.is_last
                yield logged
    finally:
        if not ended:
            await runner.cancel(turn_id)
