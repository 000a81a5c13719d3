"""Whether a text that a dataset expects occurs: numbers as numbers, words as whole words in any case."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from gm_chat.encoding import to_json

__all__ = ["abbreviated", "occurs", "searchable"]

_NUMBER: Final = re.compile(r"(?<![\w.,-])\d{1,60}(?:,\d{3})*(?:\.\d{1,60})?(?![\w-]|[.,]\d)", re.ASCII)
_WANTED: Final = re.compile(r"\d{1,60}(?:\.\d{1,60})?", re.ASCII)
_THOUSANDS: Final = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+", re.ASCII)
"""Written with points between the thousands, it is found as it stands only: 250.000 must not mean 250."""


def occurs(text: str, where: str) -> bool:
    """Whether ``text`` occurs. A number does if an equal one does: ``3`` in "3.00", but not in "13" or "PO-3"."""
    if _WANTED.fullmatch(text) and not _THOUSANDS.fullmatch(text):
        return Decimal(text) in {Decimal(found.replace(",", "")) for found in _NUMBER.findall(where)}
    pattern = _edge(text[0], "before") + re.escape(text) + _edge(text[-1], "after")
    return re.search(pattern, where, re.IGNORECASE) is not None


def _edge(character: str, side: str) -> str:
    """What may not stand beside a text that begins or ends so."""
    if character.isdecimal():
        return r"(?<!\w)(?<!\d[.,])" if side == "before" else r"(?!\w|[.,]\d)"
    if character.isalnum():
        return r"(?<!\w)" if side == "before" else r"(?!\w)"
    return ""


def searchable(results: Iterator[Any]) -> str:
    """The text of tool results to be searched: their JSON, and the texts as they are where JSON escapes them."""
    parts = []
    for result in results:
        parts.append(to_json(result))
        parts += [text for text in _texts(result) if re.search(r'["\\\x00-\x1f]', text)]
    return "\n".join(parts)


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)


def abbreviated(value: Any, length: int = 160) -> str:
    """A value in one line, cut in its middle if it is long: the end of an answer often says what matters."""
    text = " ".join((value if isinstance(value, str) else to_json(value)).split())
    if len(text) <= length:
        return text
    tail = length // 3
    return f"{text[: length - tail - 3]}...{text[-tail:]}"
