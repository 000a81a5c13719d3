"""Reads the rows of a PostgreSQL script: ``INSERT INTO table (columns) VALUES (...), ...;`` and nothing else.

Values may be computed from the current date: ``CURRENT_DATE - INTERVAL '3 days'``,
``DATE_TRUNC('week', CURRENT_DATE) - INTERVAL '1 week'``. "Now" is what the caller says.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Inserted", "inserted_rows"]

_TOKEN = re.compile(
    r"\s+|--[^\n]*|(?P<text>'(?:[^']|'')*')|(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_][\w.]*)|(?P<sign>[-+(),;])|."
)
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "year": 12}


@dataclass(frozen=True)
class Inserted:
    """One row: the table without its schema, and values by column. Moments are naive, in UTC."""

    table: str
    values: dict[str, Any]


@dataclass(frozen=True)
class _Interval:
    months: int
    rest: timedelta


def inserted_rows(script: str, now: datetime) -> Iterator[Inserted]:
    """Every row that the script inserts, in its order."""
    for statement in re.finditer(r"INSERT INTO\s+([\w.]+)\s*\(([^)]*)\)\s*VALUES", script):
        columns = [name.strip() for name in statement[2].split(",")]
        reader = _Reader(script, statement.end(), now)
        for values in reader.tuples():
            yield Inserted(statement[1].split(".")[-1], dict(zip(columns, values, strict=True)))


class _Reader:
    """Recursive descent over the tuples of one statement."""

    def __init__(self, script: str, start: int, now: datetime) -> None:
        self._tokens = (
            (found.lastgroup, found[0]) for found in _TOKEN.finditer(script, start) if found.lastgroup is not None
        )
        self._now = now
        self._kind, self._text = next(self._tokens)

    def tuples(self) -> Iterator[list[Any]]:
        while self._text == "(":
            self._advance()
            values = [self._expression()]
            while self._text == ",":
                self._advance()
                values.append(self._expression())
            self._advance(")")
            yield values
            if self._text == ",":
                self._advance()
        assert self._text == ";", self._text

    def _advance(self, expected: str | None = None) -> str:
        text = self._text
        assert expected is None or text == expected, (text, expected)
        self._kind, self._text = next(self._tokens, ("sign", ""))
        return text

    def _expression(self) -> Any:
        value = self._operand()
        while self._text in ("+", "-"):
            sign = 1 if self._advance() == "+" else -1
            value = _moved(value, self._operand(), sign)
        return value

    def _operand(self) -> Any:
        kind, text = self._kind, self._advance()
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if kind == "number":
            return Decimal(text) if "." in text else int(text)
        match text.upper():
            case "-":
                return -self._operand()
            case "NULL":
                return None
            case "TRUE" | "FALSE":
                return text.upper() == "TRUE"
            case "CURRENT_DATE":
                return self._now.date()
            case "CURRENT_TIMESTAMP":
                return self._now
            case "NOW":
                self._advance("(")
                self._advance(")")
                return self._now
            case "INTERVAL":
                return _interval(self._operand())
            case "DATE_TRUNC":
                self._advance("(")
                unit = self._operand()
                self._advance(",")
                value = self._expression()
                self._advance(")")
                return _truncated(value, unit)
        raise AssertionError(f"{text!r} is not expected in the script")


def _interval(text: str) -> _Interval:
    count, unit = text.split()
    unit = unit.rstrip("s")
    if unit in _MONTHS:
        return _Interval(int(count) * _MONTHS[unit], timedelta())
    if unit in _DAYS:
        return _Interval(0, timedelta(days=int(count) * _DAYS[unit]))
    return _Interval(0, timedelta(minutes=int(count) * {"min": 1, "minute": 1, "hour": 60}[unit]))


def _moved(value: date, by: _Interval, sign: int) -> datetime:
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    year, month = divmod(moment.year * 12 + moment.month - 1 + sign * by.months, 12)
    day = min(moment.day, monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day) + sign * by.rest


def _truncated(value: date, unit: str) -> datetime:
    day = value.date() if isinstance(value, datetime) else value
    if unit == "week":
        day -= timedelta(days=day.weekday())
    elif unit == "month":
        day = day.replace(day=1)
    else:
        raise AssertionError(unit)
    return datetime.combine(day, time())
