"""Parts of dates and moments as database expressions: what rows are grouped by, and what formulas name.

On SQLite Django computes them by a call into Python for each row, which takes three times as long as SQLite's own
functions. Those see text, without a time zone: they serve for dates, and for moments in the zone that they are kept in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.conf import settings
from django.db.models import DateField, DateTimeField
from django.db.models.functions import (
    ExtractDay,
    ExtractHour,
    ExtractIsoWeekDay,
    ExtractMonth,
    ExtractYear,
    TruncDate,
    TruncDay,
    TruncHour,
    TruncMonth,
    TruncQuarter,
    TruncWeek,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.managers.api import DatePart

__all__ = ["Day", "part_of"]


class _OnSqlite:
    """``own`` is the part in SQLite's words, of ``{day}`` (text of a date) or ``{moment}``."""

    own: ClassVar[str]

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """By SQLite's functions where they can; the day is cut out of a moment, as SQLite would round it."""
        this: Any = self
        is_moment = isinstance(this.lhs.output_field, DateTimeField)
        is_kept = not settings.USE_TZ or this.get_tzname() == connection.timezone_name
        if (is_moment and not is_kept) or (not is_moment and "{moment}" in self.own):
            return this.as_sql(compiler, connection, **context)
        sql, params = compiler.compile(this.lhs)
        count = self.own.count("{day}") + self.own.count("{moment}")
        day = f"SUBSTR({sql}, 1, 10)" if is_moment else sql
        return self.own.format(day=day, moment=sql), tuple(params) * count


class Day(_OnSqlite, TruncDate):
    """The date of a moment."""

    own = "DATE({day})"


class _Day(_OnSqlite, TruncDay):
    own = "DATE({day})"


class _Week(_OnSqlite, TruncWeek):
    """The Monday. On MariaDB Django leaves a moment its time of day, whatever the output is to be."""

    own = "DATE({day}, '-6 days', 'weekday 1')"

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """A date."""
        sql, params = self.as_sql(compiler, connection, **context)
        return f"DATE({sql})", params


class _Month(_OnSqlite, TruncMonth):
    own = "DATE({day}, 'start of month')"


class _Quarter(_OnSqlite, TruncQuarter):
    own = "DATE({day}, 'start of month', '-' || ((STRFTIME('%%m', {day}) - 1) %% 3) || ' months')"


class _Hour(_OnSqlite, TruncHour):
    """The full hour. Of no moment it is none, where Django suspects a database without time zones."""

    own = "SUBSTR({moment}, 1, 13) || ':00:00'"

    def convert_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """As Django does, but for null; :func:`~gm_chat.managers.functions.require_time_zones` has looked."""
        return None if value is None else super().convert_value(value, expression, connection)


class _Year(_OnSqlite, ExtractYear):
    own = "CAST(STRFTIME('%%Y', {day}) AS INTEGER)"


class _Weekday(_OnSqlite, ExtractIsoWeekDay):
    own = "(CAST(STRFTIME('%%w', {day}, '-1 day') AS INTEGER) + 1)"


class _MonthOfYear(_OnSqlite, ExtractMonth):
    own = "CAST(STRFTIME('%%m', {day}) AS INTEGER)"


class _DayOfMonth(_OnSqlite, ExtractDay):
    own = "CAST(STRFTIME('%%d', {day}) AS INTEGER)"


class _HourOfDay(_OnSqlite, ExtractHour):
    own = "CAST(SUBSTR({moment}, 12, 2) AS INTEGER)"


_TRUNCATE: Final[Mapping[str, Any]] = {"quarter": _Quarter, "month": _Month, "week": _Week, "day": _Day}
_EXTRACT: Final[Mapping[str, Any]] = {
    "year": _Year,
    "weekday": _Weekday,
    "month_of_year": _MonthOfYear,
    "day_of_month": _DayOfMonth,
    "hour_of_day": _HourOfDay,
}


def part_of(value: Any, part: DatePart | None) -> Any:
    """A part of a date or a moment, in the current time zone; see :data:`~gm_chat.managers.api.DatePart`."""
    match part:
        case None:
            return value
        case "hour":
            return _Hour(value, output_field=DateTimeField())
        case "day" | "week" | "month" | "quarter":
            return _TRUNCATE[part](value, output_field=DateField())
        case _:
            return _EXTRACT[part](value)
