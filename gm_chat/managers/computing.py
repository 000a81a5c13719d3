"""Aggregates of rows that are there already: for manager sources whose data no database can be asked to compute with.

The meaning is that of :mod:`gm_chat.managers.aggregation`, which has a database do it. Sums of decimals are exact; of
texts, equal ones are one group, and they come in the order of code points.
"""

from __future__ import annotations

import statistics
from datetime import timedelta
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from gm_chat.encoding import jsonable
from gm_chat.managers.api import Condition, FieldReference
from gm_chat.managers.conversion import fitting
from gm_chat.managers.filling import Collated, calculated, finish, text_conditions
from gm_chat.managers.measures import (
    AcrossGroups,
    Aggregated,
    AggregatePage,
    Arithmetic,
    Behind,
    Constant,
    Elapsed,
    FieldValue,
    MeasureValue,
    across_names,
)
from gm_chat.managers.periods import calendar_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gm_chat.managers.api import Path, Where
    from gm_chat.managers.measures import AggregatePlan, Formula, Group, Measure

__all__ = ["RowReader", "compute"]

_DIGITS: Final = 400
"""Of sums and products while they are computed, so that none is rounded."""
Row = TypeVar("Row")
Result = dict[str, Any]


class RowReader(Protocol[Row]):
    """What the source knows of its rows."""

    def value(self, row: Row, path: Path) -> Any:
        """The value of a field, as Python has it, through to-one relations; ``None`` where one leads to no row."""
        ...

    def holds(self, where: Where, row: Row, outer: Row | None = None) -> bool:
        """Whether a row satisfies a condition; ``outer`` is the row that all of it is about, if not this one."""
        ...

    def behind(self, row: Row, relation: str) -> Sequence[Row]:
        """All rows behind a to-many relation. Raises ``ToolError("unsupported")`` where they are not all known."""
        ...


def compute(plan: AggregatePlan, rows: Iterable[Row], reader: RowReader[Row]) -> AggregatePage:
    """Run a plan over the rows that satisfy its ``where``. They must be all of them: a part has other sums.

    Raises ``ToolError("too_large")`` for more groups than Python should compare.
    """
    with localcontext(prec=_DIGITS):
        found = _results(plan, rows, reader)
        if plan.groups:
            _collate(plan, found)
            found = finish(plan, found)
        shown: list[Group | Measure] = [*plan.groups, *(item for item in plan.measures if not item.hidden)]
        data = [{item.name: _shown(row[item.name], item.type) for item in shown} for row in found[: plan.limit]]
    kept = fitting(data, plan.max_bytes)
    return AggregatePage(data[:kept], has_more=kept < len(found), truncated=kept < len(data))


def _results(plan: AggregatePlan, rows: Iterable[Row], reader: RowReader[Row]) -> list[Result]:
    """The groups with those of their measures that do not depend on other groups."""
    across, formulas = across_names(plan.measures), _Formulas(plan, reader)
    groups: dict[tuple[Any, ...], list[Row]] = {} if plan.groups else {(): []}
    for row in rows:
        key = tuple(calendar_part(reader.value(row, group.path), group.part) for group in plan.groups)
        groups.setdefault(key, []).append(row)
    names = [group.name for group in plan.groups]
    own = [measure for measure in plan.measures if measure.name not in across]
    return [
        dict(zip(names, key, strict=True)) | {item.name: formulas.of_group(item.formula, members) for item in own}
        for key, members in groups.items()
    ]


class _Formulas:
    """Formulas as values: of a group, which is its rows, and of a row."""

    def __init__(self, plan: AggregatePlan, reader: RowReader[Any]) -> None:
        self._measures = {measure.name: measure.formula for measure in plan.measures}
        self._reader = reader

    def of_group(self, formula: Formula, rows: Sequence[Any]) -> Any:
        match formula:
            case Constant(value):
                return value
            case Arithmetic(operator, left, right):
                return calculated(operator, self.of_group(left, rows), self.of_group(right, rows))
            case Elapsed(end, start, unit):
                return _elapsed(self.of_group(end, rows), self.of_group(start, rows), unit)
            case MeasureValue(name):
                return self.of_group(self._measures[name], rows)
            case Aggregated(function, of, where, distinct):
                kept = [row for row in rows if self._reader.holds(where, row)]
                values = kept if of is None else [self.of_row(of, row) for row in kept]
                if function == "sum" and isinstance(of, Behind) and of.function == "count":
                    return sum(values)  # a number of things, which is never unknown
                return _folded(function, values, distinct=distinct)
            case FieldValue() | Behind() | AcrossGroups():
                raise TypeError(f"{formula!r} is no value of a group by itself")

    def of_row(self, formula: Formula, row: Any) -> Any:
        match formula:
            case Constant(value):
                return value
            case FieldValue(path, _, part):
                value = calendar_part(self._reader.value(row, path), part)
                return value.total_seconds() if isinstance(value, timedelta) else value
            case Arithmetic(operator, left, right):
                return calculated(operator, self.of_row(left, row), self.of_row(right, row))
            case Elapsed(end, start, unit):
                return _elapsed(self.of_row(end, row), self.of_row(start, row), unit)
            case Behind(relation, function, of, where):
                kept = [item for item in self._reader.behind(row, relation) if self._reader.holds(where, item, row)]
                return _folded(function, kept if of is None else [self.of_row(of, item) for item in kept])
            case Aggregated() | MeasureValue() | AcrossGroups():
                raise TypeError(f"{formula!r} is no value of a row")


def _folded(function: str, values: Iterable[Any], *, distinct: bool = False) -> Any:
    """An aggregate, for which what is null does not count."""
    known = [value for value in values if value is not None]
    if distinct:
        known = list(dict.fromkeys(known))
    if function == "count":
        return len(known)
    if not known:
        return None
    match function:
        case "sum":
            return sum(known)
        case "avg":
            return float(sum(known)) / len(known)
        case "min":
            return min(known)
        case "max":
            return max(known)
    return float(statistics.median(known))


def _elapsed(end: Any, start: Any, unit: str) -> Any:
    if end is None or start is None:
        return None
    return (end - start).total_seconds() if unit == "seconds" else (_day(end) - _day(start)).days


def _day(value: Any) -> Any:
    return calendar_part(value, "day")


def _collate(plan: AggregatePlan, found: list[Result]) -> None:
    """Give texts their places, and the answers to what ``having`` asks of them."""
    columns: list[Group | Measure] = [*plan.groups, *plan.measures]
    names = [item.name for item in columns if item.type == "string"]
    asked = list(dict.fromkeys(text_conditions(plan.having, names)))
    texts = {name: sorted({row[name] for row in found} - {None}) for name in names}
    places = {name: {text: place for place, text in enumerate(known)} for name, known in texts.items()}
    for row, plain in [(row, dict(row)) for row in found]:
        for name in names:
            if (text := plain[name]) is not None:
                answers = {item: _says(item, text, plain) for item in asked if item.path == (name,)}
                row[name] = Collated(places[name][text], text, answers)


def _says(condition: Condition, text: str, row: Result) -> bool:
    value = condition.value
    if isinstance(value, FieldReference):
        value = row[value.path[0]]
    match condition.lookup:
        case "exact":
            return bool(text == value)
        case "in":
            return text in value
    return value is not None and str(value).casefold() in text.casefold()


def _shown(value: Any, kind: str) -> Any:
    """As JSON; numbers as they come of SQL: no more digits than are sure, and no decimal that is a float."""
    if value is None:
        return None
    if kind == "number":
        return jsonable(float(format(float(value), ".15g")))
    if kind == "decimal":
        return jsonable(Decimal(value))
    return jsonable(str(value) if isinstance(value, Collated) else value)
