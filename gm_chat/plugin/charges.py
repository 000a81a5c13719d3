"""What is counted in a rate-limit store, and what the store answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Charge:
    """What one budget is charged: ``amount`` of what counts under ``key``, of which a window allows ``limit``.

    ``key`` is opaque ASCII of at most 100 characters; nothing personal stands in it. An ``amount`` of 0 asks whether
    anything is left. Only :meth:`~gm_chat.plugin.RateLimitStore.correct` is given negative ones.
    """

    key: str
    amount: int
    limit: int


@dataclass(frozen=True, slots=True)
class Standing:
    """How one budget stands: what counts in its window now, never below zero, and when that becomes less.

    ``wait_seconds`` is the time until something is left of a budget that is used up, else until the first of what
    counts leaves the window; 0 where nothing counts.
    """

    used: int
    wait_seconds: float


@dataclass(frozen=True, slots=True)
class Tally:
    """A store's answer: whether the charges were taken, how their budgets stand after that, in the order of charges.

    ``at`` is the store's own time, in whatever it counts; give it back with a correction.
    """

    granted: bool
    standings: tuple[Standing, ...]
    at: float
