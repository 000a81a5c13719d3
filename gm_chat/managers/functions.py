"""Database functions that Django has no portable form of: elapsed time, as numbers, and the median."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.models import (
    Aggregate,
    Avg,
    BigIntegerField,
    BooleanField,
    DateField,
    DateTimeField,
    F,
    FloatField,
    Func,
    QuerySet,
    Subquery,
)
from django.db.models.functions import Cast
from django.utils import timezone

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "AsFloat",
    "DaysBetween",
    "IsFirst",
    "Mean",
    "Median",
    "SecondsBetween",
    "SecondsOf",
    "Shifted",
    "Signed",
    "SumOver",
    "able_to_take_medians",
    "require_time_zones",
]

_LONGEST_CONCATENATION: Final = 64 * 2**20
_SHORTEST_RUN: Final = 4_096


class DaysBetween(Func):
    """Whole days from the second date to the first."""

    output_field = BigIntegerField()
    arity = 2

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Julian days of dates differ by whole numbers."""
        return super().as_sql(
            compiler,
            connection,
            template="CAST(JULIANDAY(%(expressions)s) AS INTEGER)",
            arg_joiner=") - JULIANDAY(",
            **context,
        )

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Dates subtract to days."""
        return super().as_sql(compiler, connection, template="(%(expressions)s)", arg_joiner=" - ", **context)

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """``DATEDIFF`` counts days."""
        return super().as_sql(compiler, connection, function="DATEDIFF", **context)


class SecondsBetween(Func):
    """Seconds from the second moment to the first, fractions included."""

    output_field = FloatField()
    arity = 2

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Whole microseconds of the text: SQLite's fractions of days are none, and Django's function is Python's."""
        del connection, context
        clocks = [compiler.compile(expression) for expression in self.source_expressions]
        end, start = (
            f"(STRFTIME('%%s', SUBSTR({sql}, 1, 19)) * 1000000"
            f" + CAST(SUBSTR(SUBSTR({sql}, 21) || '000000', 1, 6) AS INTEGER))"
            for sql, _ in clocks
        )
        return f"(({end} - {start}) / 1000000.0)", tuple(item for _, params in clocks for item in (*params, *params))

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Of the interval."""
        template = "EXTRACT(EPOCH FROM (%(expressions)s))::double precision"
        return super().as_sql(compiler, connection, template=template, arg_joiner=" - ", **context)

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """The sign: the earlier moment comes first. The exponent: a quotient of decimals would have four places."""
        return super().as_sql(
            compiler, connection, template="(TIMESTAMPDIFF(MICROSECOND, %(expressions)s) / -1e6)", **context
        )


class SecondsOf(Func):
    """A stored duration in seconds: Django keeps microseconds, or an interval."""

    output_field = FloatField()
    arity = 1
    template = "(%(expressions)s / 1e6)"

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Of the interval."""
        return super().as_sql(
            compiler, connection, template="EXTRACT(EPOCH FROM %(expressions)s)::double precision", **context
        )


class Shifted(Func):
    """A date or a moment, so many units later; of a month that is too short, the last day."""

    arity = 1

    def __init__(self, value: Any, count: int, unit: str, *, of: str) -> None:
        """``of`` is ``date`` or ``datetime``; ``count`` and ``unit`` are ours, never a client's text."""
        if unit not in ("second", "minute", "hour", "day", "month", "year"):
            raise ValueError(f"{unit!r} is no unit to shift by")
        self._count, self._unit, self._of = int(count), unit, of
        super().__init__(value, output_field=DateField() if of == "date" else DateTimeField())

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """The day by SQLite's arithmetic, which runs over the end of short months; the rest of the text as it is."""
        value = "%(expressions)s"
        months = self._count * {"month": 1, "year": 12}.get(self._unit, 0)
        if months:
            last = f"DATE({value}, 'start of month', '{months + 1:+d} months', '-1 day')"
            day = f"MIN(DATE({value}, '{months:+d} months'), {last})"
        elif self._unit == "day":
            day = f"DATE({value}, '{self._count:+d} days')"
        else:
            day = f"DATETIME({value}, '{self._count:+d} {self._unit}s')"
        rest = 20 if self._unit in ("second", "minute", "hour") else 11
        template = day if self._of == "date" else f"({day} || SUBSTR({value}, {rest}))"
        return _repeating(super().as_sql(compiler, connection, template=template, **context), template)

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """An interval; a date would become a timestamp."""
        cast = "::date" if self._of == "date" else ""
        template = f"(%(expressions)s + INTERVAL '{self._count} {self._unit}'){cast}"
        return super().as_sql(compiler, connection, template=template, **context)

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """``DATE_ADD`` keeps a date a date."""
        template = f"DATE_ADD(%(expressions)s, INTERVAL {self._count} {self._unit.upper()})"
        return super().as_sql(compiler, connection, template=template, **context)


class _Ranked(Subquery):
    """A subselect of several columns, which has no type of its own; Django 6.1 asks its plain ones for one."""

    output_field = BooleanField()


class IsFirst(Func):
    """Whether a row's key is among those of ``rows`` whose ``window`` is at most ``most``.

    Django could filter by a window, but in three nested selects, and of a key of several columns it makes an EXISTS
    whose condition stands beside the window, where it leaves that a single row.
    """

    output_field = BooleanField()
    conditional = True

    def __init__(self, keys: Sequence[str], rows: QuerySet[Any], window: Any, most: int = 1) -> None:
        """Name the columns of the primary key; ``rows`` are of the same model."""
        self._most = int(most)
        self._names = [f"gm_chat_key_{number}" for number, _ in enumerate(keys)]
        columns = dict(zip(self._names, map(F, keys), strict=True))
        ranked = rows.annotate(**columns, gm_chat_place=window).values(*columns, "gm_chat_place")
        super().__init__(*map(F, keys), _Ranked(ranked))

    def as_sql(self, compiler: Any, connection: Any, *_: Any, **context: Any) -> Any:
        """A row value, as all our databases know it."""
        del context
        *columns, ranked = (compiler.compile(part) for part in self.source_expressions)
        *names, place, table = map(connection.ops.quote_name, (*self._names, "gm_chat_place", "gm_chat_ranked"))
        left, right = ", ".join(sql for sql, _ in columns), ", ".join(names)
        params = [param for _, params in (*columns, ranked) for param in params]
        sql = f"({left}) IN (SELECT {right} FROM {ranked[0]} {table} WHERE {place} <= {self._most})"  # noqa: S608 - names of ours
        return sql, tuple(params)


class AsFloat(Cast):
    """A floating-point number of any number. On MariaDB Django's cast gives a decimal with four places."""

    def __init__(self, value: Any) -> None:
        """The type is always the same."""
        super().__init__(value, FloatField())

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """``0e0`` is a double."""
        return Func.as_sql(self, compiler, connection, template="(%(expressions)s + 0e0)", **context)


class Signed(Func):
    """A whole number that may be subtracted from: positive columns of MariaDB allow nothing below zero."""

    output_field = BigIntegerField()
    arity = 1
    template = "%(expressions)s"

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """A signed integer."""
        return super().as_sql(compiler, connection, template="CAST(%(expressions)s AS SIGNED)", **context)


class SumOver(Func):
    """``SUM`` for a window over groups; Django refuses the aggregate of an aggregate even there."""

    function = "SUM"
    window_compatible = True


class Mean(Avg):
    """Of floating-point numbers, as MariaDB's mean of decimals has but four more places than they."""

    def __init__(self, value: Any, **options: Any) -> None:
        """Take the numbers as they are."""
        super().__init__(AsFloat(value), **options)

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """The mean as a float: to make one of each decimal takes PostgreSQL as long as all the rest."""
        bare = self.copy()
        floats, *others = bare.get_source_expressions()
        bare.set_source_expressions([*floats.get_source_expressions(), *others])
        sql, params = super(Mean, bare).as_sql(compiler, connection, **context)
        return f"({sql})::double precision", params


class Median(Aggregate):
    """The middle value, or the mean of the two in the middle."""

    name = "Median"
    output_field = FloatField()
    arity = 1

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """The standard's ordered-set aggregate. (Django passes a template twice where there is a filter.)"""
        median = self.copy()
        median.template = "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
        return super(Median, median).as_sql(compiler, connection, **context)

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """An aggregate that :func:`able_to_take_medians` adds to the connection."""
        return super().as_sql(compiler, connection, function="gm_chat_median", **context)

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """MariaDB has medians of windows alone: the middle of a sorted list, in text."""
        values = "GROUP_CONCAT(%(expressions)s ORDER BY %(expressions)s)"
        middle = f"SUBSTRING_INDEX(SUBSTRING_INDEX({values}, ',', {{}}((COUNT(%(expressions)s) + 1) / 2)), ',', -1)"
        template = f"(({middle.format('FLOOR')} + {middle.format('CEIL')}) / 2)"
        return _repeating(super().as_sql(compiler, connection, template=template, **context), template)


def require_time_zones(connection: Any) -> None:
    """Raise where the database would give null for the day of a moment, as MariaDB does without its time zones."""
    if connection.vendor != "mysql" or not settings.USE_TZ or connection.features.has_zoneinfo_database:
        return
    name = timezone.get_current_timezone_name()
    if name != connection.timezone_name:
        raise ImproperlyConfigured(
            f"The database {connection.alias!r} cannot convert moments to the time zone {name!r}. Load its time zones: "
            "mariadb-tzinfo-to-sql /usr/share/zoneinfo | mariadb mysql"
        )


def _repeating(compiled: tuple[str, Sequence[Any]], template: str) -> tuple[str, tuple[Any, ...]]:
    """The parameters as often as the template repeats its expression."""
    sql, params = compiled
    return sql, tuple(params) * template.count("%(expressions)s")


class _SqliteMedian:
    """The aggregate on SQLite; nulls do not count.

    SQLite looks at its deadline between two steps alone. So values are sorted as they come, in runs of which each is
    at least twice as long as the next: merging two sorted runs takes a tenth of what sorting them would.
    """

    def __init__(self) -> None:
        self._runs: list[list[float]] = [[]]

    def step(self, value: float | None) -> None:
        if value is None:
            return
        runs = self._runs
        runs[-1].append(value)
        if len(runs[-1]) < _SHORTEST_RUN:
            return
        runs[-1].sort()
        while len(runs) > 1 and len(runs[-2]) == len(runs[-1]):
            last = runs.pop()
            runs[-1] += last
            runs[-1].sort()
        runs.append([])

    def finalize(self) -> float | None:
        self._runs[-1].sort()
        count = sum(map(len, self._runs))
        return (self._smallest((count - 1) // 2) + self._smallest(count // 2)) / 2 if count else None

    def _smallest(self, place: int) -> float:
        """The value at a place of all in order: of each run the first that is not before it, and the least of these."""

        def is_reached(value: float) -> bool:
            return sum(bisect_right(run, value) for run in self._runs) > place

        firsts = ((run, bisect_left(run, True, key=is_reached)) for run in self._runs)  # noqa: FBT003 - false comes first
        return min(run[first] for run, first in firsts if first < len(run))


@contextmanager
def able_to_take_medians(connection: Any) -> Iterator[None]:
    """Make :class:`Median` work on ``connection`` while the block runs."""
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        connection.connection.create_aggregate("gm_chat_median", 1, _SqliteMedian)
    if connection.vendor != "mysql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@SESSION.group_concat_max_len")
        (before,) = cursor.fetchone()
        cursor.execute("SET SESSION group_concat_max_len = %s", [max(before, _LONGEST_CONCATENATION)])
        try:
            yield
        finally:
            cursor.execute("SET SESSION group_concat_max_len = %s", [before])
