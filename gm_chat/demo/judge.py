"""What makes an answer right. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Expected", "problem_with"]


@dataclass(frozen=True, slots=True)
class Expected:
    """What a right answer holds, as whole words or numbers, and what it must not hold.

    ``in_order``: the words stand in this order. ``queried``: the answer rests on a query of the data.
    """

    holds: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    in_order: bool = False
    queried: bool = True


def problem_with(answer: str, tools: Sequence[str], expected: Expected) -> str | None:
    """Say what is wrong with an answer, or return ``None``."""
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", answer)
    places = [place for wanted in expected.holds if (place := _find(wanted, text)) is not None]
    if len(places) < len(expected.holds):
        missing = [wanted for wanted in expected.holds if _find(wanted, text) is None]
        return f"lacks {', '.join(missing[:3])}"
    if expected.in_order and places != sorted(places):
        return "has the rows in another order"
    if forbidden := [unwanted for unwanted in expected.lacks if _find(unwanted, text) is not None]:
        return f"must not hold {', '.join(forbidden[:3])}"
    if expected.queried and "query" not in tools:
        return "rests on no query"
    return None


def _find(wanted: str, text: str) -> int | None:
    match = re.search(rf"(?<![\w.-]){re.escape(wanted)}(?![\w-]|\.\d)", text)
    return None if match is None else match.start()
