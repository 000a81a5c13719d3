"""Dates in words: ``"today"``, ``"-30 days"``, ``"last 30 days"``, ``"previous month"``, ``"start of this week"``.

A model does not know what day it is, or miscounts; the server does neither. Words mean a :class:`Period` of whole days
in the current time zone, except that hours and minutes count from this very moment::

    now, today, yesterday, tomorrow
    -30 days, +2 weeks, 3 months ago, in 3 months        the day so far away
    this month, current quarter                          the calendar unit around today
    previous month, last year, next week                 the calendar unit beside it
    previous 3 months, next 2 weeks                      whole calendar units beside this one, without it
    last 30 days, past 3 months                          from that day up to and including today
    last 12 hours                                        from that moment up to now
    2025, 2025-05, May 2025, 2025-Q2, Q2 2025            the whole year, month or quarter
    start of this month, start of 3 months ago           a calendar unit's first day
    end of previous quarter                              a calendar unit's last day

Weeks begin on Monday (ISO 8601). Units may be called so: "previous calendar month", "last 3 calendar months".
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.utils import timezone

from gm_chat.managers.values import plain_date

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gm_chat.managers.api import DatePart, FieldType

__all__ = ["Period", "bounds_of", "calendar_part", "is_period", "midnight", "period_in", "period_of"]

_MAX_COUNT: Final = 10_000
_UNIT: Final = r"(?P<unit>minute|hour|day|week|month|quarter|year)s?"
_FORMS: Final = tuple(
    re.compile(form)
    for form in (
        r"(?P<word>now|today|yesterday|tomorrow)",
        rf"(?P<sign>[+-])\s*(?P<count>\d+)\s*{_UNIT}",
        rf"(?P<count>\d+)\s+{_UNIT}\s+(?P<ago>ago)",
        rf"(?P<ahead>in)\s+(?P<count>\d+)\s+{_UNIT}",
        rf"(?P<beside>this|current|previous|prior|last|next)\s+{_UNIT}",
        rf"(?P<rolling>last|past)\s+(?P<count>\d+)\s+{_UNIT}",
        rf"(?P<whole>previous|prior|next)\s+(?P<count>\d+)\s+{_UNIT}",
        r"(?P<year>\d{4})",
        r"(?P<year>\d{4})-(?P<month>\d{2})",
        r"(?P<name>[a-z]{3,9})\s+(?P<year>\d{4})",
        r"(?P<year>\d{4})[- ]?q(?P<quarter>[1-4])",
        r"q(?P<quarter>[1-4])[- ]?(?P<year>\d{4})",
    )
)
_CALENDAR: Final = re.compile(r"\b(?:last|past) (?=(?:\d+ )?calendar )")
"""Of the calendar "the last 3 months" are whole ones."""
_EDGE: Final = re.compile(r"(?P<edge>start|beginning|end)\s+of\s+(?:the\s+)?(?P<rest>.+)")
_MONTH_NAMES: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_WORDS: Final = {"now": 0, "today": 0, "yesterday": -1, "tomorrow": 1}
_CLOCK: Final = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1)}
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}


@dataclass(frozen=True, slots=True)
class Period:
    """Moments from ``start`` up to, and without, ``end``; equal ones stand for a single moment."""

    start: datetime
    end: datetime

    @property
    def days(self) -> tuple[date, date]:
        """The first and the last day of the period, in the current time zone."""
        last = self.end if self.end == self.start else self.end - timedelta(microseconds=1)
        return _local(self.start).date(), _local(last).date()


def period_of(text: str, *, now: datetime | None = None) -> Period | None:
    """What the words mean; ``None`` if they are no such words, or lead beyond the years 2 to 9998."""
    words = _CALENDAR.sub("previous ", " ".join(text.lower().split())).replace("calendar ", "")
    if len(words) > 60:
        return None
    now = timezone.now() if now is None else now
    edge = _EDGE.fullmatch(words)
    try:
        found = _read(edge["rest"] if edge else words, now)
        if edge is None or found is None:
            return found
        first, last = found.days
        return _whole(first) if edge["edge"] != "end" else _whole(last)
    except (OverflowError, ValueError):
        return None


def bounds_of(kind: FieldType, lookup: str, value: Any) -> list[tuple[str, Any]] | None:
    """What a comparison with a day or a period asks of a date or a moment; ``None`` for any other value."""
    if lookup == "range" and isinstance(value, list | tuple) and len(value) == 2:
        first, last = bounds_of(kind, "gte", value[0]), bounds_of(kind, "lte", value[1])
        return [*first, *last] if first is not None and last is not None else None
    period = period_in(kind, value)
    if period is None:
        return None
    if kind == "date" or lookup == "date":
        first_day, last_day = period.days
        if first_day == last_day and lookup in ("exact", "date"):
            return [(lookup, first_day)]
        prefix = "date__" if lookup == "date" else ""
        whole = [(f"{prefix}gte", first_day), (f"{prefix}lte", last_day)]
        ends: dict[str, Any] = {"gte": first_day, "lt": first_day, "gt": last_day, "lte": last_day}
    elif period.start == period.end:
        whole = [("exact", period.start)]
        ends = dict.fromkeys(("gte", "lt", "gt", "lte"), period.start)
    else:
        whole = [("gte", period.start), ("lt", period.end)]
        ends = {"gte": period.start, "lt": period.start}
        if lookup in ("gt", "lte"):  # after, or up to, the last moment before the period's end
            return [("gte" if lookup == "gt" else "lt", period.end)]
    if lookup in ("exact", "date"):
        return whole
    return [(lookup, ends[lookup])] if lookup in ends else None


def is_period(kind: FieldType, value: Any) -> bool:
    """Whether a text means a day or a longer period."""
    return plain_date(value) is not None or period_in(kind, value) is not None


def period_in(kind: FieldType, value: Any) -> Period | None:
    """The days that a text means: words, or of a moment also a bare date."""
    if not isinstance(value, str):
        return None
    day = plain_date(value)
    if day is None:
        return period_of(value)
    if kind == "date" or not date(2, 1, 1) <= day <= date(9998, 12, 30):
        return None
    return _whole(day)


def midnight(day: date) -> datetime:
    """The moment at which a day begins in the current time zone."""
    if not 2 <= day.year <= 9998:
        raise ValueError(day)
    moment = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - made aware below, where the project is
    return timezone.make_aware(moment) if settings.USE_TZ else moment


def calendar_part(value: date | None, part: DatePart | None) -> Any:
    """A part of a date or a moment, in the current time zone; see :data:`~gm_chat.managers.api.DatePart`."""
    if value is None or part is None:
        return value
    here = _local(value) if isinstance(value, datetime) else value
    match part:
        case "hour" if isinstance(here, datetime):
            return here.replace(minute=0, second=0, microsecond=0)
        case "hour_of_day" if isinstance(here, datetime):
            return here.hour
    day = here.date() if isinstance(here, datetime) else here
    if part in _NUMBERS_OF:
        return _NUMBERS_OF[part](day)
    match part:
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            return day - timedelta(days=day.weekday())
    return day


_NUMBERS_OF: Final[Mapping[str, Callable[[date], int]]] = {
    "year": lambda day: day.year,
    "weekday": date.isoweekday,
    "month_of_year": lambda day: day.month,
    "day_of_month": lambda day: day.day,
}


def _read(words: str, now: datetime) -> Period | None:
    match = next((found for form in _FORMS if (found := form.fullmatch(words))), None)
    if match is None:
        return None
    given = match.groupdict()
    if given.get("year"):
        return _named(given)
    today = _local(now).date()
    if given.get("word"):
        return Period(now, now) if given["word"] == "now" else _whole(today + timedelta(days=_WORDS[given["word"]]))
    unit, count = given["unit"], int(given.get("count") or 1)
    if count > _MAX_COUNT:
        return None
    if given.get("beside"):
        steps = {"this": 0, "current": 0, "next": 1}.get(given["beside"], -1)
        return _units(today, unit, steps, steps + 1)
    if given.get("rolling"):
        if unit in _CLOCK:
            return Period(now - count * _CLOCK[unit], now)
        return Period(midnight(_shift(today, unit, -count)), midnight(today + timedelta(days=1)))
    if given.get("whole"):
        return _units(today, unit, 1, count + 1) if given["whole"] == "next" else _units(today, unit, -count, 0)
    steps = count if given.get("sign") == "+" or given.get("ahead") else -count
    if unit in _CLOCK:
        moment = now + steps * _CLOCK[unit]
        return Period(moment, moment)
    return _whole(_shift(today, unit, steps))


def _named(given: Mapping[str, str | None]) -> Period | None:
    """The year, or the month or quarter of it, that is called by its name or number."""
    unit, month = "year", 1
    if quarter := given.get("quarter"):
        unit, month = "quarter", 3 * int(quarter) - 2
    elif name := given.get("name"):
        named = [number for number, known in enumerate(_MONTH_NAMES, 1) if known.startswith(name)]
        if not named:
            return None
        unit, month = "month", named[0]
    elif number := given.get("month"):
        unit, month = "month", int(number)
    return _units(date(int(given["year"] or 0), month, 1), unit, 0, 1)


def _local(moment: datetime) -> datetime:
    return timezone.localtime(moment) if timezone.is_aware(moment) else moment


def _whole(day: date) -> Period:
    return Period(midnight(day), midnight(day + timedelta(days=1)))


def _units(today: date, unit: str, first: int, last: int) -> Period | None:
    """The calendar units from the ``first`` up to, and without, the ``last``, counted from today's."""
    if unit in _CLOCK:
        return None
    match unit:
        case "day":
            start = today
        case "week":
            start = today - timedelta(days=today.weekday())
        case _:
            months = _MONTHS[unit]
            start = today.replace(month=(today.month - 1) // months * months + 1, day=1)
    return Period(midnight(_shift(start, unit, first)), midnight(_shift(start, unit, last)))


def _shift(day: date, unit: str, count: int) -> date:
    """The day so many units away; of a month that is too short, the last day."""
    if unit in ("day", "week"):
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    year, month = divmod(day.year * 12 + day.month - 1 + count * _MONTHS[unit], 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
