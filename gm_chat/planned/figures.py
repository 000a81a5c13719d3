"""Numbers, dates, times and codes in free text, with every way in which they may be meant.

``1,234`` is 1234 or 1.234, ``02/03/2026`` is a day in February or March: whoever compares is content if one of the
readings fits. English and German names of months are known, and number words up to ninety.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DIGIT", "Date", "Figure", "Time", "figures", "numbers_of"]

Date: TypeAlias = tuple[int | None, int | None, int | None]
"""Year, month and day; ``None`` for what is not said."""

Time: TypeAlias = tuple[int, int]
"""Hour and minute."""

_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january januar jan",
            "february februar feb",
            "march märz mar",
            "april apr",
            "may mai",
            "june juni jun",
            "july juli jul",
            "august aug",
            "september sept sep",
            "october oktober oct okt",
            "november nov",
            "december dezember dec dez",
        ),
        start=1,
    )
    for name in names.split()
}
_MONTH: Final = "|".join(sorted(_MONTHS, key=len, reverse=True))
_NUMBER_WORDS: Final = {
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "thirteen": 13,
    "fourteen": 14,
    "fifteen": 15,
    "sixteen": 16,
    "seventeen": 17,
    "eighteen": 18,
    "nineteen": 19,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
}
_SCALES: Final = {
    "k": 3,
    "thousand": 3,
    "tausend": 3,
    "m": 6,
    "mio": 6,
    "million": 6,
    "millions": 6,
    "millionen": 6,
    "bn": 9,
    "mrd": 9,
    "billion": 9,
    "billions": 9,
    "milliarden": 9,
}
_ABOUT: Final = re.compile(
    r"(?:\b(?:about|approximately|approx\.?|around|roughly|nearly|almost|rounded|circa|ca\.?|etwa|rund|ungefähr)|[~≈])"
    r"\s*(?:to\s+)?[$€£]?\s*$",
    re.IGNORECASE,
)
_GAPS: Final = "\u00a0\u202f\u2009'\u2019"
"""What may stand between the thousands, beside points and commas."""

_NUMBER: Final = rf"\d+(?:[.,{_GAPS}]\d+)*"
_GLYPHS: Final = "\u00bc-\u00be\u2150-\u2188\u2460-\u249b\u24ea-\u24ff\u2776-\u2793"
"""Fractions, Roman numerals and numbers in circles, each one character."""

DIGIT: Final = re.compile(rf"[\d{_GLYPHS}]")
"""What every figure but a number word has."""

_FIGURE: Final = re.compile(
    rf"""
    (?P<iso>(?<![\w-])\d{{4}}-\d{{2}}(?:-\d{{2}})?(?![\w-]|T?\d))
    | (?P<moment>(?<![\w-])\d{{4}}-\d{{2}}-\d{{2}}(?=T\d))
    | (?P<numeric>(?<![\w.,/])\d{{1,2}}[./]\d{{1,2}}[./]\d{{4}}(?!\w))
    | (?P<named>\b(?:(?P<day1>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?)?(?P<month>{_MONTH})\b\.?
        (?:\s+(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d))?(?:,?\s+(?P<year>\d{{4}})\b)?)
    | (?P<time>(?<![\d:.])\d{{1,2}}:\d{{2}}(?::\d{{2}}(?:\.\d+)?)?(?:Z|[+-]\d{{2}}:\d{{2}})?(?![\d:]))
    | (?P<word>(?<!\w)(?:{"|".join(_NUMBER_WORDS)})(?!\w))
    | (?P<unit>(?<=\d\s)(?-i:(?:[a-zA-Z]{{1,4}}/)?(?:[kcdmµ]?m|ft|in|yd)[23])(?!\w))
    | (?P<code>(?<![\w])(?=[\w/.+@-]*[^\W\d_])(?=[\w/.+@-]*\d)\w(?:[\w/.+@-]*\w)?)
    | (?P<number>{_NUMBER})
    | (?P<glyph>[{_GLYPHS}])
    """,
    re.VERBOSE | re.IGNORECASE,
)
_WITH_UNIT: Final = re.compile(rf"({_NUMBER})([^\W\d_]{{1,9}})")
_SCALE: Final = "|".join(sorted(_SCALES, key=len, reverse=True))
_AFTER: Final = re.compile(
    rf"\s?(?:(?P<scale>{_SCALE})\b\.?)?\s?(?P<percent>%|percent\b|per cent\b|prozent\b)?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Figure:
    """Something in a text that can be right or wrong, with its readings.

    ``tolerance`` is how far a number may be off to count as rounded; ``is_word`` says that the text itself, such as a
    code, may be what is meant.
    """

    text: str
    start: int
    numbers: frozenset[Decimal] = frozenset()
    dates: frozenset[Date] = frozenset()
    times: frozenset[Time] = frozenset()
    tolerance: Decimal = Decimal(0)
    is_percentage: bool = False
    is_word: bool = False


def figures(text: str) -> Iterator[Figure]:
    """Yield the figures of a text, in order."""
    for found in _FIGURE.finditer(text):
        match found.lastgroup:
            case "iso" | "moment":
                yield _iso(found)
            case "numeric":
                yield _numeric(found)
            case "time":
                hour, minute = found.group().split(":")[:2]
                yield Figure(found.group(), found.start(), times=frozenset({(int(hour), int(minute[:2]))}))
            case "word":
                number = Decimal(_NUMBER_WORDS[found.group().lower()])
                yield Figure(found.group(), found.start(), numbers=frozenset({number}), is_word=True)
            case "glyph":
                number = Decimal(str(unicodedata.numeric(found.group())))
                yield Figure(found.group(), found.start(), numbers=frozenset({number}))
            case "code":
                yield _code(found, text)
            case "unit":
                continue  # the number before it is the figure
            case "number":
                yield _number(found.group(), found.start(), found.end(), text)
            case _:
                if found["day1"] or found["day2"] or found["year"]:
                    yield _named(found)


def numbers_of(text: str) -> frozenset[Decimal]:
    """Return what a run of digits and separators may mean, without its sign."""
    plain = text.translate({ord(gap): None for gap in _GAPS})
    points, commas = plain.count("."), plain.count(",")
    if points and commas:
        decimal = max(plain.rfind("."), plain.rfind(","))
        return _valid(re.sub("[.,]", "", plain[:decimal]) + "." + plain[decimal + 1 :])
    if points + commas == 0:
        return _valid(plain)
    whole = re.sub("[.,]", "", plain)
    if points + commas > 1:
        return _valid(whole)
    before, _, after = plain.replace(",", ".").partition(".")
    readings = _valid(f"{before}.{after}")
    return readings | _valid(whole) if len(after) == 3 and len(before) <= 3 else readings


def _valid(text: str) -> frozenset[Decimal]:
    return frozenset({Decimal(text)}) if len(text) <= 60 else frozenset()


def _number(text: str, start: int, end: int, whole: str) -> Figure:
    after = _AFTER.match(whole, end)
    scale = _SCALES[after["scale"].lower()] if after and after["scale"] else 0
    is_percentage = bool(after and after["percent"])
    is_about = scale > 0 or _ABOUT.search(whole[max(0, start - 24) : start]) is not None
    readings = numbers_of(text)
    numbers = frozenset(number.scaleb(scale) for number in readings)
    tolerance = max(
        (_unit(number, is_about=is_about, is_percentage=is_percentage) for number in readings), default=Decimal(0)
    )
    return Figure(text, start, numbers=numbers, tolerance=tolerance.scaleb(scale) / 2, is_percentage=is_percentage)


def _unit(number: Decimal, *, is_about: bool, is_percentage: bool) -> Decimal:
    """What the last digit stands for that can have been rounded, 0 if none can."""
    exponent = _exponent(number.normalize() if is_about and number else number)
    return Decimal(1).scaleb(exponent) if is_about or is_percentage or exponent < 0 else Decimal(0)


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _code(found: re.Match[str], whole: str) -> Figure:
    text = found.group()
    if with_unit := _WITH_UNIT.fullmatch(text):
        number = _number(with_unit.group(1), found.start(), found.start() + len(with_unit.group(1)), whole)
        return replace(number, text=text, is_word=True)
    return Figure(text, found.start(), is_word=True)


def _iso(found: re.Match[str]) -> Figure:
    parts = [int(part) for part in found.group().split("-")]
    date: Date = (parts[0], parts[1], parts[2] if len(parts) > 2 else None)
    return Figure(found.group(), found.start(), dates=frozenset({date}), is_word=True)


def _numeric(found: re.Match[str]) -> Figure:
    first, second, year = (int(part) for part in re.split("[./]", found.group()))
    dates: set[Date] = {(year, second, first), (year, first, second)}
    return Figure(found.group(), found.start(), dates=frozenset(dates), is_word=True)


def _named(found: re.Match[str]) -> Figure:
    day, year = found["day1"] or found["day2"], found["year"]
    date: Date = (int(year) if year else None, _MONTHS[found["month"].lower()], int(day) if day else None)
    return Figure(found.group().strip(), found.start(), dates=frozenset({date}))
