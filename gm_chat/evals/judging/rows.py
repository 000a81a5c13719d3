"""Whether the rows of a tool's result are those of a reference, whichever encoding either has its values in.

A tool gives JSON as :mod:`gm_chat.encoding` documents it, a database gives what its driver makes of the columns:
``"12.50"`` and ``Decimal("12.5")``, ``true`` and ``1``, ``"2025-03-01T00:00:00Z"`` and ``datetime(2025, 3, 1)`` are the
same value here. Moments without a time zone are UTC, as Django stores them. Numbers are compared to nine decimals and
fifteen significant digits, whole ones exactly: databases round quotients each in their own way.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any, Final, TypeAlias

from gm_chat.encoding import jsonable

__all__ = ["flat_rows", "plain", "same_rows", "tables"]

Row: TypeAlias = tuple[Any, ...]

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?", re.ASCII)
"""A number as JSON or the tools write it; ``"007"`` is a code."""

_MOMENT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)?",
    re.ASCII,
)
_UUID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_DECIMALS: Final = Decimal("1e-9")
_DIGITS: Final = Context(prec=15, rounding=ROUND_HALF_EVEN)
_MOST_ROWS: Final = 10_000
"""Of a table that nested rows are unrolled to."""


def same_rows(reference: Sequence[Row], rows: Sequence[Row], *, ordered: bool = False) -> bool:
    """Whether some choice of the columns of ``rows`` holds the reference's rows, each as often; names do not count."""
    if len(reference) != len(rows):
        return False
    if not rows:
        return True
    wanted = _columns(reference)
    given = _columns(rows)
    match = _Match(wanted, given, ordered=ordered)
    return len(given) >= len(wanted) and match.goes_on(0, (), frozenset())


class _Match:
    """Takes for each column of the reference one of the result, and goes back where the rows do not agree."""

    def __init__(self, wanted: Sequence[Row], given: Sequence[Row], *, ordered: bool) -> None:
        self._given = given
        self._depth = len(wanted)
        self._bag = list if ordered else Counter
        # What the first columns, the first two, ... of the reference make together.
        self._wanted = [self._bag(zip(*wanted[: count + 1], strict=True)) for count in range(len(wanted))]

    def goes_on(self, at: int, taken: tuple[Row, ...], used: frozenset[int]) -> bool:
        if at == self._depth:
            return True
        tried: set[Row] = set()
        for place, column in enumerate(self._given):
            if place in used or column in tried:
                continue
            tried.add(column)
            chosen = (*taken, column)
            agrees = self._bag(zip(*chosen, strict=True)) == self._wanted[at]
            if agrees and self.goes_on(at + 1, chosen, used | {place}):
                return True
        return False


def _columns(rows: Sequence[Row]) -> list[Row]:
    """The columns, each value in its plain form. A row that is too short ends in NULL."""
    return list(itertools.zip_longest(*(map(plain, row) for row in rows))) if rows else []


def plain(value: Any) -> Hashable:
    """Bring a value of a tool or a database into the one form in which it is compared."""
    if isinstance(value, bool | int):
        return Decimal(int(value))
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, float | Decimal):
        return _number(Decimal(str(value)))
    if isinstance(value, datetime):
        return _moment(value)
    encoded = jsonable(value)
    if isinstance(encoded, str):
        return _text(encoded)
    return encoded if isinstance(encoded, Hashable) else repr(encoded)


def _text(text: str) -> Hashable:
    if _UUID.fullmatch(text):  # before numbers: one of 32 digits is possible
        return text.replace("-", "").lower()
    if _NUMBER.fullmatch(text):
        return _number(Decimal(text))
    if _MOMENT.fullmatch(text):
        with suppress(ValueError):  # the 31st of February
            return _moment(datetime.fromisoformat(text))
    return text


def _number(number: Decimal) -> Decimal | None:
    if not number.is_finite():
        return None  # as the tools encode it
    if number == number.to_integral_value():
        return number
    rounded = _DIGITS.plus(number)
    exponent = rounded.as_tuple().exponent
    return rounded.quantize(_DECIMALS) if isinstance(exponent, int) and exponent < -9 else rounded


def _moment(moment: datetime) -> str:
    """A day as it is, if the moment is its beginning: a database makes one of a month's first day."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return moment.isoformat().removesuffix("T00:00:00")


def tables(result: Any) -> Iterator[list[Row]]:
    """Yield the tables that a tool's result can be read as: its rows, and its count.

    Rows that nest others are read without those, and unrolled: a row for each nested one, as a join gives them, once
    without and once with the rows that have none.
    """
    if not isinstance(result, Mapping) or not isinstance(data := result.get("data"), list):
        return
    yield flat_rows(data)
    if any(_nests(row) for row in data):
        for keep in (False, True):
            unrolled = list(
                itertools.islice((row for item in data for row in _unrolled(item, keep=keep)), _MOST_ROWS + 1)
            )
            if len(unrolled) <= _MOST_ROWS:
                yield _named(unrolled)
    if isinstance(count := result.get("total_count"), int):
        yield [(count,)]


def flat_rows(data: Iterable[Any]) -> list[Row]:
    """The rows of a result, to-one relations flattened, nested rows left out."""
    return _named([dict(_leaves(row, ())) for row in data])


def _named(rows: Sequence[Mapping[Hashable, Any]]) -> list[Row]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [tuple(row.get(name) for name in names) for row in rows]


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[Hashable, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif not _is_nested(value):
        yield path, value


def _is_nested(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


def _nests(value: Any) -> bool:
    return _is_nested(value) or (isinstance(value, Mapping) and any(map(_nests, value.values())))


def _unrolled(value: Any, *, keep: bool, path: tuple[str, ...] = ()) -> Iterator[dict[Hashable, Any]]:
    """The rows of a join of a value with all that it nests; ``keep`` keeps those with nothing nested."""
    if isinstance(value, Mapping):
        parts = [list(_unrolled(item, keep=keep, path=(*path, key))) for key, item in value.items()]
        for choice in itertools.product(*parts):
            yield {name: leaf for part in choice for name, leaf in part.items()}
    elif _is_nested(value):
        if keep and not value:
            yield {}
        for item in value:
            yield from _unrolled(item, keep=keep, path=path)
    else:
        yield {path: value}
