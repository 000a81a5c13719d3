"""Names as models spell them, and values as errors show them: tolerant in, precise out.

Callers pass untrusted text of any length, so nothing here recurses into it or is quadratic in it.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

__all__ = ["MAX_ALLOWED", "match_name", "nearest", "shown"]

MAX_ALLOWED: Final = 20
"""How many allowed names an error lists."""
_SHOWN: Final = 80


def match_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` spells: itself, else the only one equal but for case and underscores."""
    names = known if isinstance(known, Collection) else tuple(known)
    if name in names:
        return name
    wanted = _bare(name)
    matches = [candidate for candidate in names if _bare(candidate) == wanted]
    return matches[0] if len(matches) == 1 else None


def nearest(name: str, known: Iterable[str], *, limit: int = MAX_ALLOWED) -> list[str]:
    """At most ``limit`` known names, the likeliest meant first, ties by name."""
    wanted = _bare(name[:_SHOWN])
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)

    def distance(candidate: str) -> tuple[float, str]:
        matcher.set_seq1(_bare(candidate))
        return -matcher.ratio(), candidate

    return sorted(known, key=distance)[:limit]


def shown(value: Any) -> str:
    """A short ``repr`` for messages. Of containers only the kind: they may be huge, deep or cyclic."""
    match value:
        case str():
            text = value if len(value) <= _SHOWN else value[:_SHOWN] + "..."
            return ascii(text) if not text.isprintable() else repr(text)
        case bool() | None:
            return {True: "true", False: "false", None: "null"}[value]
        case int() if value.bit_length() > 256:
            return f"an integer of {value.bit_length()} bits"
        case int() | float():
            return repr(value)
        case Mapping():
            return "an object"
        case Sequence():
            return "a list"
    return f"a {type(value).__name__}"


def _bare(name: str) -> str:
    return name.replace("_", "").casefold()
