"""Help with misspelt names."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["canonical", "did_you_mean", "nearest"]


def nearest(name: str, known: Iterable[str], *, count: int = 1) -> list[str]:
    """The known names most like ``name``, best first; none if nothing is similar."""
    by_folded = {candidate.lower(): candidate for candidate in known}
    return [by_folded[match] for match in difflib.get_close_matches(name.lower(), by_folded, n=count, cutoff=0.6)]


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint for a human, or ``None``."""
    match nearest(name, known):
        case [only]:
            return f"Did you mean {only!r}?"
        case _:
            return None


def canonical(name: str) -> str:
    """The one spelling of a plugin's or distribution's name: ``Gm_Chat.X`` and ``gm-chat-x`` are the same."""
    return re.sub(r"[-_.]+", "-", name).lower()
