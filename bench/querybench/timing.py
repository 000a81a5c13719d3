"""Times two functions in turns, and listens to the statements of one."""

from __future__ import annotations

import gc
import statistics
import time
from typing import TYPE_CHECKING, Any

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["heard", "in_turns"]


def in_turns(yardstick: Callable[[], Any], measured: Callable[[], Any], rounds: int) -> dict[str, float]:
    """Milliseconds of both (medians), and the median of the rounds' ratios, as what disturbs one round hits both.

    Both functions have run before.
    """
    pairs = []
    for _ in range(rounds):
        gc.collect()
        pairs.append((_timed(yardstick), _timed(measured)))
    hand, ours = (statistics.median(times) for times in zip(*pairs, strict=True))
    return {"raw": hand, "ms": ours, "ratio": statistics.median(one / other for other, one in pairs)}


def _timed(function: Callable[[], Any]) -> float:
    # SQLite works in this process, whose processor time is less disturbed by others than the clock.
    clock = time.process_time if connection.vendor == "sqlite" else time.perf_counter
    start = clock()
    function()
    return (clock() - start) * 1000


def heard(function: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What a function returns, and the statements that it runs, with marks for their values."""
    statements: list[str] = []

    def listen(execute: Any, sql: str, *rest: Any) -> Any:
        statements.append(" ".join(sql.split()))
        return execute(sql, *rest)

    with connection.execute_wrapper(listen):
        return function(), statements
