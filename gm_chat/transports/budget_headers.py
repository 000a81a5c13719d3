"""How an actor's budgets stand, in response headers.

``RateLimit-Policy`` and ``RateLimit`` follow draft-ietf-httpapi-ratelimit-headers-10: one item for each kind of
budget, with its quota and window, what remains of it, and in how many seconds there is more. ``Retry-After`` (RFC 9110)
says when it makes sense to come back.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gm_chat.engine.budgets import BudgetState

__all__ = ["budget_headers"]


def budget_headers(
    budgets: Sequence[BudgetState], *, window_seconds: int, retry_after_seconds: int | None = None
) -> dict[str, str]:
    """The headers for these budgets; none for none."""
    headers = {}
    if budgets:
        policies = (f'"{item.kind}";q={item.limit}{_unit(item)};w={window_seconds}' for item in budgets)
        limits = (f'"{item.kind}";r={item.remaining};t={math.ceil(item.reset_seconds)}' for item in budgets)
        headers = {"RateLimit-Policy": ", ".join(policies), "RateLimit": ", ".join(limits)}
    if retry_after_seconds is not None:
        headers["Retry-After"] = str(retry_after_seconds)
    return headers


def _unit(item: BudgetState) -> str:
    """What is counted, where it is not requests."""
    return "" if item.kind == "requests" else ';qu="tokens"'
