"""Work that must not stop half-way when the turn is cancelled: the store's, and a write that has begun."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

__all__ = ["to_the_end"]

T = TypeVar("T")


async def to_the_end(work: Coroutine[Any, Any, T], *, patience: float | None = None) -> T:
    """Await ``work``: a cancellation meanwhile is raised after it, not into it.

    With ``patience`` the work is given so many seconds from the cancellation on, and is then cancelled itself.
    """
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=patience)
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not report it as forgotten: the cancellation counts
        raise
