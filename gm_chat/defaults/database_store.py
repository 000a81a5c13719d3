"""Counting in the chat's own database: exact for all processes, and for projects that have no cache server."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gm_chat.persistence import rate_counts
from gm_chat.persistence.threads import run_db

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gm_chat.plugin import Charge, Tally

__all__ = ["DatabaseRateLimitStore"]


class DatabaseRateLimitStore:
    """The store ``database``. Its windows are fixed, its clock is that of the process."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        """``clock`` tells which window it is."""
        self._clock = clock

    async def take(self, charges: Sequence[Charge], *, window_seconds: int) -> Tally:
        """Take all or none."""
        return await run_db(rate_counts.take, charges, window_seconds, self._clock())

    async def correct(self, charges: Sequence[Charge], *, window_seconds: int, at: float) -> Tally:
        """Add to what was taken at that time, as long as its window is the newest."""
        return await run_db(rate_counts.correct, charges, window_seconds, self._clock(), at)
