"""A rate-limit store in memory: for tests of what is counted, and when."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING

from gm_chat.plugin.charges import Charge, Standing, Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["MemoryRateLimitStore"]


class MemoryRateLimitStore:
    """Fixed windows in one process. ``used`` is what counts, by key and window; ``calls`` how often it was asked."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """Go by ``clock``, in seconds."""
        self.used: dict[tuple[str, int], int] = defaultdict(int)
        self.calls = 0
        self._clock = clock

    async def take(self, charges: Sequence[Charge], *, window_seconds: int) -> Tally:
        """Take all or none."""
        self.calls += 1
        now = self._clock()
        window = int(now // window_seconds)
        granted = all(self.used[item.key, window] < item.limit for item in charges)
        return self._add(charges if granted else (), charges, window, window_seconds, now, granted=granted)

    async def correct(self, charges: Sequence[Charge], *, window_seconds: int, at: float) -> Tally:
        """Change the window of that time."""
        self.calls += 1
        return self._add(charges, charges, int(at // window_seconds), window_seconds, self._clock(), granted=True)

    def _add(
        self,
        added: Sequence[Charge],
        asked: Sequence[Charge],
        window: int,
        window_seconds: int,
        now: float,
        *,
        granted: bool,
    ) -> Tally:
        for item in added:
            self.used[item.key, window] = max(0, self.used[item.key, window] + item.amount)
        current = int(now // window_seconds)
        wait = (current + 1) * window_seconds - now
        standings = [Standing(used, wait if used else 0.0) for used in (self.used[i.key, current] for i in asked)]
        return Tally(granted, tuple(standings), now)
