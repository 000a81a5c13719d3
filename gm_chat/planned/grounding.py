"""Whether an answer rests on its evidence: each number, date, quotation and code in it must have come from somewhere.

It may come from the evidence, as a value or as the length of a list, from the calls that gave the evidence, or from the
question. A number may be rounded where it shows decimals or a percentage, or where the text says that it is about so
much. Words are not judged: that an answer says nothing false is not proved, that it invents no figures is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from gm_chat.planned.figures import DIGIT, Date, Figure, Time, figures, numbers_of

if TYPE_CHECKING:
    from gm_chat.planned.evidence import EvidenceRecord

__all__ = ["Known", "unfounded", "without"]

_QUOTED: Final = re.compile(
    r"\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”|„([^“”\n]{2,200})[“”]|«([^»\n]{2,200})»|`([^`\n]{2,200})`"
)
_NUMBER: Final = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?")
_MOMENT: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T ]([0-9]{2}):([0-9]{2})(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[+-][0-9:]{5})?)?"
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")
_ITEM: Final = re.compile(r"^[ \t]*(?:[*>#-]+[ \t]*)*(\d{1,3})[.)](?=\s)", re.MULTILINE)
_INVISIBLE: Final = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]|\\*\\*|__")


@dataclass(slots=True)
class Known:
    """What an answer may state. Build it with :meth:`of`; it is read through when the first statement is looked up."""

    _question: str = ""
    _records: tuple[EvidenceRecord, ...] = ()
    _text: str | None = None
    _numbers: set[Decimal] = field(default_factory=set)
    _dates: set[Date] = field(default_factory=set)
    _times: set[Time] = field(default_factory=set)
    _noted: set[str] = field(default_factory=set)
    _sorted: list[Decimal] = field(default_factory=list)

    @classmethod
    def of(cls, question: str, records: Iterable[EvidenceRecord]) -> Known:
        """Collect from a question, and from the results and calls of evidence."""
        return cls(question, tuple(records))

    def _read(self) -> str:
        """Read the sources, once; return all of their text."""
        if self._text is None:
            texts = list(self._gather(self._question))
            for record in self._records:
                texts += self._gather(record.payload())
                texts += self._gather(record.call_identity)
            self._text = _plain(" \n ".join(texts))
            self._sorted = sorted(self._numbers)
        return self._text

    def _gather(self, value: Any) -> Iterator[str]:
        match value:
            case bool() | None:
                return
            case int() | float():
                self._numbers.add(abs(Decimal(str(value))))
                yield str(value)
            case str():
                self._note(value)
                yield value
            case Mapping():
                for key, item in value.items():
                    yield from self._gather(key)
                    yield from self._gather(item)
            case list():
                self._numbers.add(Decimal(len(value)))
                for item in value:
                    yield from self._gather(item)

    def _note(self, text: str) -> None:
        # Most texts of a result hold no digit, or are a number or a moment as JSON has them; all are often repeated.
        if text in self._noted or not DIGIT.search(text):
            return
        self._noted.add(text)
        if _NUMBER.fullmatch(text):
            self._numbers.add(abs(Decimal(text)))
            return
        if moment := _MOMENT.fullmatch(text):
            year, month, day, hour, minute = moment.groups()
            self._dates.add((int(year), int(month), int(day)))
            if hour is not None:
                self._times.add((int(hour), int(minute)))
            return
        for figure in figures(text):
            self._numbers.update(figure.numbers)
            self._dates.update(figure.dates)
            self._times.update(figure.times)

    def supports(self, figure: Figure) -> bool:
        """Whether a figure of an answer is known."""
        self._read()
        if any(self._has_date(date) for date in figure.dates) or not self._times.isdisjoint(figure.times):
            return True
        if any(self._has_number(number, figure) for number in figure.numbers):
            return True
        return figure.is_word and self.says(figure.text)

    def says(self, words: str) -> bool:
        """Whether words stand in the evidence or the question as they are, but for case and blanks."""
        wanted = re.escape(_plain(words).strip())
        return re.search(rf"(?<!\w){wanted}(?!\w)", self._read()) is not None

    def _has_date(self, date: Date) -> bool:
        return any(all(part in (None, of) for part, of in zip(date, other, strict=True)) for other in self._dates)

    def _has_number(self, number: Decimal, figure: Figure) -> bool:
        if self._is_year(number, figure):
            return True
        scales = (Decimal(1), Decimal("0.01")) if figure.is_percentage else (Decimal(1),)
        return any(self._is_near(number * scale, figure.tolerance * scale) for scale in scales)

    def _is_near(self, number: Decimal, tolerance: Decimal) -> bool:
        position = bisect_left(self._sorted, number - tolerance)
        return position < len(self._sorted) and self._sorted[position] <= number + tolerance

    def _is_year(self, number: Decimal, figure: Figure) -> bool:
        return not figure.is_percentage and any(year == number for year, _, _ in self._dates)


def unfounded(answer: str, known: Known) -> list[str]:
    """Return what ``answer`` states without a source, in order, each once."""
    shown = _shown(answer)
    found: dict[str, None] = {}
    items = {item.start(1) for item in _items(shown)}
    for figure in figures(shown):
        if figure.start not in items and not known.supports(figure):
            found[figure.text] = None
    for quoted in _QUOTED.finditer(shown):
        words = next(group for group in quoted.groups() if group is not None).strip(" .,;:!?")
        if words and not known.says(words):
            found[quoted.group()] = None
    return list(found)


def without(answer: str, known: Known) -> str:
    """Return ``answer`` without the sentences that state what has no source; ``""`` if nothing is left.

    A numbered list that loses an item goes on with dashes.
    """
    shown = _shown(answer)
    items = {item.start(): item.end() - item.start() for item in _items(shown)}
    lines: list[str] = []
    place, is_whole = 0, True
    for line in shown.split("\n"):
        marker = line[: items.get(place, 0)]
        sentences = _SENTENCE.split(line[len(marker) :].strip())
        kept = " ".join(sentence for sentence in sentences if not unfounded(sentence, known))
        is_whole = is_whole and bool(kept) == bool(line.strip())
        if kept or not line.strip():
            lines.append(f"{marker if is_whole else '-'} {kept}" if marker else kept)
        place += len(line) + 1
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    # What a sentence left behind may read differently without it: the whole must pass, too.
    return "" if unfounded(text, known) else text


def _items(text: str) -> Iterator[re.Match[str]]:
    """Find the beginnings of a numbered list's lines: 1 in one line, 2 in a later one, and so on."""
    expected = 1
    for item in _ITEM.finditer(text):
        number = numbers_of(item.group(1))
        if Decimal(1) in number:
            expected = 1
        if Decimal(expected) in number:
            yield item
            expected += 1


def _shown(text: str) -> str:
    """The text as a reader sees its figures: without what has no width, and without marks for bold print."""
    return _INVISIBLE.sub("", text)


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).casefold()
