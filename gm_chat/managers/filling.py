"""Periods without rows: ``fill`` adds them to the groups of an aggregate, and does what must wait for them.

A database groups the rows that are there. A month in which nothing was sold is none of its groups, and neither its zero
nor the fall from the month before can be asked of it. So the groups are fetched, completed, and then compared with each
other, chosen among by ``having``, and ordered, as the database does it for other aggregates. How texts compare is for
the database's collation to say: they come with what it says of them, as :class:`Collated`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.utils import timezone

from gm_chat.managers.api import And, Condition, FieldReference, Not, Or, Related
from gm_chat.managers.measures import (
    AcrossGroups,
    Aggregated,
    AggregatePlan,
    Arithmetic,
    Constant,
    Formula,
    MeasureValue,
    across_names,
)
from gm_chat.managers.periods import calendar_part
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from gm_chat.managers.api import Path, Where

__all__ = ["MAX_FOUND", "Collated", "calculated", "finish", "named_in", "text_conditions"]

MAX_FOUND: Final = 5_000
"""How many groups there may be, before and after; half a minute of SQL is nothing that Python should add to."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class Collated:
    """A text of a group: ``place`` is the same for texts that the database takes for equal, and puts others in order.

    ``answers`` tells of conditions on it whether they hold.
    """

    place: int
    text: str = field(compare=False)
    answers: Mapping[Condition, bool] = field(compare=False)

    def __str__(self) -> str:
        return self.text


def finish(plan: AggregatePlan, rows: Sequence[Row]) -> list[Row]:
    """Complete the groups that the database found, and go on as it would: one more row than the page holds."""
    if len(rows) > MAX_FOUND:
        raise _too_many()
    across = across_names(plan.measures)
    found = _filled(plan, rows)
    found = [row for row in found if all(_holds(p, row) for p in plan.having.parts if not named_in(p) & across)]
    for measure in plan.measures:
        if measure.name in across:
            for row, value in zip(found, _over_groups(measure.formula, found, plan), strict=True):
                row[measure.name] = value
    found = [row for row in found if all(_holds(p, row) for p in plan.having.parts if named_in(p) & across)]
    found.sort(key=lambda row: [_nulls_last(row[item.name]) for item in plan.groups])
    for term in reversed(plan.order):
        name = term.path[0]
        known = [row for row in found if row[name] is not None]
        known.sort(key=lambda row: row[name], reverse=term.descending)
        found = known + [row for row in found if row[name] is None]
    return found[plan.offset : plan.offset + plan.limit + 1]


def _too_many() -> ToolError:
    return ToolError("too_large", f"more than {MAX_FOUND} groups; narrow the filters, or take longer periods")


# --- periods ----------------------------------------------------------------------------------------------------


def _filled(plan: AggregatePlan, rows: Sequence[Row]) -> list[Row]:
    group = next((group for group in plan.groups if group.name == plan.fill), None)
    if group is None:
        return list(rows)
    others = [item.name for item in plan.groups if item is not group]
    values = [row[group.name] for row in rows if row[group.name] is not None]
    first, last = _bounds(plan.where, group.path)
    start = min(values, default=None) if first is None else calendar_part(first, group.part)
    end = max(values, default=None) if last is None else calendar_part(last, group.part)
    if group.part == "weekday":
        start, end = 1, 7
    if start is None or end is None:
        return list(rows)
    periods: list[Any] = []
    for period in _periods(start, end, group.part):
        periods.append(period)
        if len(periods) > MAX_FOUND:
            raise _too_many()
    kinds = list(dict.fromkeys(tuple(row[name] for name in others) for row in rows)) if others else [()]
    if len(kinds) * len(periods) > MAX_FOUND:
        raise _too_many()
    present = {(*(row[name] for name in others), row[group.name]) for row in rows}
    empty = {measure.name: _of_nothing(measure.formula, plan) for measure in plan.measures}
    added = [
        {**dict(zip(others, kind, strict=True)), group.name: period, **empty}
        for kind in kinds
        for period in periods
        if (*kind, period) not in present
    ]
    return [*rows, *added]


def _bounds(where: Where, path: Path) -> tuple[date | None, date | None]:
    """The first and the last day that the conditions leave to the field at ``path``, as far as they say so."""
    match where:
        case And(parts):
            found = [_bounds(part, path) for part in parts]
            firsts, lasts = [f for f, _ in found if f is not None], [b for _, b in found if b is not None]
            return max(firsts, default=None), min(lasts, default=None)
        case Related(relation, part) if len(path) > 1 and relation == path[0]:
            return _bounds(part, path[1:])
        case Condition(name, "year", int() as year) if name == path:
            return date(year, 1, 1), date(year, 12, 31)
        case Condition(name, "range", (date() as first, date() as last)) if name == path:
            return _day(first), _day(last)
        case Condition(name, "exact" | "date", date() as day) if name == path:
            return _day(day), _day(day)
        case Condition(name, "gte" | "gt", date() as first) if name == path:
            return _day(first), None
        case Condition(name, "lte", date() as last) if name == path:
            return None, _day(last)
        case Condition(name, "lt", date() as last) if name == path:
            before = timedelta(microseconds=1) if isinstance(last, datetime) else timedelta(days=1)
            return None, _day(last - before)
    return None, None


def _day(value: date) -> date:
    if isinstance(value, datetime):
        return (timezone.localtime(value) if timezone.is_aware(value) else value).date()
    return value


def _periods(start: Any, end: Any, part: str | None) -> Iterator[Any]:
    while start <= end:
        yield start
        match part:
            case "year" | "weekday":
                start += 1
            case "quarter" | "month":
                year, month = divmod(start.year * 12 + start.month - 1 + (3 if part == "quarter" else 1), 12)
                start = date(year, month + 1, 1)
            case _:
                start += timedelta(days=7 if part == "week" else 1)


def _of_nothing(formula: Formula, plan: AggregatePlan) -> Any:
    """A measure of no rows: numbers of things and sums are 0, the rest is unknown."""
    match formula:
        case Constant(value):
            return value
        case Aggregated(function):
            return 0 if function in ("count", "sum") else None
        case Arithmetic(operator, left, right):
            return calculated(operator, _of_nothing(left, plan), _of_nothing(right, plan))
        case MeasureValue(name):
            return next(_of_nothing(measure.formula, plan) for measure in plan.measures if measure.name == name)
    return None


# --- groups beside each other -----------------------------------------------------------------------------------


def _over_groups(formula: Formula, rows: Sequence[Row], plan: AggregatePlan) -> list[Any]:
    match formula:
        case Constant(value):
            return [value] * len(rows)
        case MeasureValue(name):
            return [row[name] for row in rows]
        case Arithmetic(operator, left, right):
            both = _over_groups(left, rows, plan), _over_groups(right, rows, plan)
            return [calculated(operator, one, other) for one, other in zip(*both, strict=True)]
        case AcrossGroups():
            return _across(formula, rows, plan)
    raise TypeError(f"{formula!r} is no value of a group beside others")


def _across(formula: AcrossGroups, rows: Sequence[Row], plan: AggregatePlan) -> list[Any]:
    along = [group.name for group in plan.groups if group.name not in formula.within]
    parts: dict[tuple[Any, ...], list[int]] = {}
    for index in sorted(range(len(rows)), key=lambda index: [_nulls_last(rows[index][name]) for name in along]):
        parts.setdefault(tuple(rows[index][name] for name in formula.within), []).append(index)
    found: list[Any] = [None] * len(rows)
    for indexes in parts.values():
        values = [rows[index][formula.measure] for index in indexes]
        for index, value in zip(indexes, _beside(formula.function, values), strict=True):
            found[index] = value
    return found


def _beside(function: str, values: Sequence[Any]) -> Iterator[Any]:
    known = [value for value in values if value is not None]
    total, before, running = float(sum(known)), None, None
    ranks = {value: rank for rank, value in reversed(list(enumerate(sorted(known, reverse=True), 1)))}
    for value in values:
        match function:
            case "rank":
                yield len(known) + 1 if value is None else ranks[value]
            case "share":
                yield None if value is None or not total else float(value) / total
            case "change":
                yield calculated("-", value, before)
            case _:
                running = value if running is None else running if value is None else running + value
                yield running
        before = value


def calculated(operator: str, left: Any, right: Any) -> Any:
    """Two numbers combined as databases do it: with null to null, by zero to null, with a float to a float."""
    if left is None or right is None or (operator == "/" and not right):
        return None
    if operator == "/" or isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    return left / right


# --- conditions on groups ---------------------------------------------------------------------------------------


def named_in(where: Where) -> frozenset[str]:
    """The columns that a condition on groups is about."""
    match where:
        case And(parts) | Or(parts):
            return frozenset().union(*map(named_in, parts))
        case Not(part):
            return named_in(part)
        case Condition(path, _, value):
            return frozenset({path[0], value.path[0]} if isinstance(value, FieldReference) else {path[0]})
    return frozenset()


def text_conditions(where: Where, texts: Collection[str]) -> Iterator[Condition]:
    """The conditions on columns of ``texts`` that only the database can judge."""
    match where:
        case And(parts) | Or(parts):
            for part in parts:
                yield from text_conditions(part, texts)
        case Not(part):
            yield from text_conditions(part, texts)
        case Condition((name,), lookup) if name in texts and lookup != "isnull":
            yield where


def _holds(where: Where, row: Mapping[str, Any]) -> bool:
    match where:
        case And(parts):
            return all(_holds(part, row) for part in parts)
        case Or(parts):
            return any(_holds(part, row) for part in parts)
        case Not(part):
            return not _holds(part, row)
        case Condition((name,), lookup) if lookup != "isnull" and isinstance(text := row[name], Collated):
            return text.answers[where]
        case Condition(path, lookup, value):
            other = row[value.path[0]] if isinstance(value, FieldReference) else value
            return _compare(row[path[0]], lookup, other)
    return False


def _compare(value: Any, lookup: str, other: Any) -> bool:
    if lookup == "isnull":
        return (value is None) is other
    if value is None or other is None:
        return False
    match lookup:
        case "in":
            return value in other
        case "range":
            return bool(other[0] <= value <= other[1])
    return bool(
        {"exact": value == other, "gt": value > other, "gte": value >= other, "lt": value < other}.get(
            lookup, value <= other
        )
    )


def _nulls_last(value: Any) -> tuple[bool, Any]:
    return value is None, 0 if value is None else value
