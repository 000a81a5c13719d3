"""Words of a question: split, brought to a comparable form, read as numbers and dates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from itertools import product
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Token", "canonical", "day", "name_words", "number", "plural", "spellings", "stem", "stems", "tokens"]

MAX_TOKENS: Final = 60
"""Longer questions are cut: they are beyond these rules anyway."""

_PIECE: Final = re.compile(r'"([^"]+)"|“([^”]+)”|(\S+)')
_EDGES: Final = ",.;:!?()[]{}'\u2019"
_NAME_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_NUMBER: Final = re.compile(r"[€$£]?(-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?)([a-z%€]{0,4})")

_BRITISH: Final = {
    "aluminium": "aluminum", "artefact": "artifact", "catalogue": "catalog", "centre": "center", "cheque": "check",
    "colour": "color", "fibre": "fiber", "flavour": "flavor", "grey": "gray", "harbour": "harbor",
    "jewellery": "jewelry", "labelling": "labeling", "licence": "license", "litre": "liter", "metre": "meter",
    "mould": "mold", "palletiser": "palletizer", "programme": "program", "sulphur": "sulfur", "theatre": "theater",
    "tyre": "tire", "organisation": "organization",
}  # fmt: skip
_AMERICAN: Final = {american: british for british, american in _BRITISH.items()}

_NUMBER_WORDS: Final = {
    word: value
    for value, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    )
} | {"fifteen": 15, "twenty": 20, "thirty": 30, "fifty": 50, "hundred": 100}


@dataclass(frozen=True, slots=True)
class Token:
    """A word as it was typed, its comparable form, whether it was quoted, and whether a comma or the end follows."""

    text: str
    stem: str
    quoted: bool = False
    closed: bool = False


def tokens(text: str) -> list[Token]:
    """Split a question. A quoted text is one token; punctuation at the edges of words is dropped, inside it stays."""
    found: list[Token] = []
    for match in _PIECE.finditer(text):
        quoted = match[1] or match[2]
        if quoted:
            found.append(Token(quoted.strip(), quoted.strip().casefold(), quoted=True))
            continue
        piece = match[3]
        word = piece.strip(_EDGES)
        for ending in ("'s", "\u2019s"):
            word = word.removesuffix(ending)
        if word:
            found.append(Token(word, stem(word), closed=piece[-1] in ",;"))
    return found[:MAX_TOKENS]


def stem(word: str) -> str:
    """Lower-case, American, without an English plural: ``Alloys`` -> ``alloy``, ``aluminium`` -> ``aluminum``."""
    word = word.casefold()
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes", "zes")):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    return _BRITISH.get(word, word)


def stems(words: Iterable[str]) -> tuple[str, ...]:
    """The comparable form of several words."""
    return tuple(stem(word) for word in words)


def name_words(name: str) -> tuple[str, ...]:
    """The words of a name in code: ``BOMLine`` -> BOM, Line; ``lead_time_days`` -> lead, time, days."""
    return tuple(_NAME_PART.findall(name))


def canonical(text: str) -> str:
    """Text in comparable form, word for word and with single spaces, but plurals kept: for comparing with values."""
    return " ".join(_BRITISH.get(word, word) for word in text.casefold().split())


def spellings(text: str) -> tuple[str, ...]:
    """The text as it was typed, then with British or American spellings where they differ; at most four."""
    choices: list[Sequence[str]] = []
    for word in text.split():
        other = _BRITISH.get(word.casefold()) or _AMERICAN.get(word.casefold())
        choices.append((word,) if other is None else (word, other))
    return tuple(" ".join(words) for _, words in zip(range(4), product(*choices), strict=False))


def number(word: str) -> int | float | None:
    """A number in digits or an English word, a currency sign or a short unit allowed: ``five``, ``1,200``, ``5kg``."""
    if word.casefold() in _NUMBER_WORDS:
        return _NUMBER_WORDS[word.casefold()]
    match = _NUMBER.fullmatch(word.casefold())
    if match is None:
        return None
    digits = match[1].replace(",", "")
    return float(digits) if "." in digits else int(digits)


def day(word: str) -> str | None:
    """An ISO date, unchanged, if the word is one."""
    try:
        return date.fromisoformat(word).isoformat() if len(word) == 10 else None
    except ValueError:
        return None


def plural(noun: str, count: int) -> str:
    """The noun for a count: ``part`` -> ``parts``, ``assembly`` -> ``assemblies``."""
    if count == 1 or stem(noun.split()[-1]) != noun.split()[-1].casefold():
        return noun
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh", "z")) else "s")
