"""Whether a question is worth a plan: a few signs in its words, and how many managers it names. Nothing is asked.

A plan costs two or three provider calls more than the ordinary loop. It pays where a question has parts, compares, or
needs arithmetic; it does not for a greeting, one look-up, or a short reply that lives on what was said before, all of
which the ordinary loop sees.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gm_chat.planned.resolver import ManagerCandidate

__all__ = ["is_worth_a_plan"]

LONG: Final = 30
"""Words from which on a question counts as having parts."""

SHORT: Final = 6
"""Words up to which a message in a conversation may be a reply to what was said."""

_ARITHMETIC: Final = re.compile(
    r"\b(?:differences?|ratio|percent(?:age)?|share|proportion|versus|vs|compared?|comparison|more than|less than|"
    r"unterschied|verhältnis|prozent|anteil|verglichen|vergleich)\b|%",
    re.IGNORECASE,
)
_PARTS: Final = re.compile(
    r"[?;]\s+\S|\b(?:and (?:also|how|what|which|who|when|where)|as well as|"
    r"und (?:auch|wie|was|welche[rsn]?|wer|wann|wo)|sowie)\b|\n\s*(?:[-*]|\d+[.)])\s",
    re.IGNORECASE,
)


def is_worth_a_plan(question: str, candidates: Sequence[ManagerCandidate], *, has_history: bool) -> bool:
    """Decide by the question, the managers that it may be about, and whether there was a conversation before.

    ``candidates`` are the resolver's for the question.
    """
    if not candidates:
        return False
    words = len(question.split())
    named = sum(candidate.named or candidate.exact for candidate in candidates)
    if has_history and words <= SHORT and named < 2:
        return False
    signs = (named >= 2, bool(_ARITHMETIC.search(question)), bool(_PARTS.search(question)), words >= LONG)
    return sum(signs) >= 2 or named >= 3
