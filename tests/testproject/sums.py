"""Aggregates by hand, over the rows that :class:`~testproject.walk.Walk` sees."""

from __future__ import annotations

import statistics
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from gm_chat.managers.api import And, Condition, Not, Or, Where
from gm_chat.managers.measures import (
    AcrossGroups,
    Aggregated,
    AggregatePlan,
    Arithmetic,
    Behind,
    Constant,
    Elapsed,
    FieldValue,
    Formula,
    Group,
    MeasureValue,
)
from testproject.walk import Walk, compare

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from testproject.desk import Desk

__all__ = ["Sums"]


class Sums:
    """What an aggregate plan must give; values are Python's, not JSON's."""

    def __init__(self, desk: Desk) -> None:
        self.walk = Walk(desk)

    def run(self, plan: AggregatePlan) -> list[dict[str, Any]]:
        rows = [row for row in self.walk.visible[plan.manager] if self.walk.holds(plan.where, row, plan.manager)]
        groups: dict[tuple[Any, ...], list[Any]] = {} if plan.groups else {(): rows}
        for row in rows if plan.groups else ():
            groups.setdefault(tuple(self.key(row, group, plan.manager) for group in plan.groups), []).append(row)
        found = []
        for key in sorted(groups, key=_nulls_last):
            result: dict[str, Any] = dict(zip((group.name for group in plan.groups), key, strict=True))
            for measure in plan.measures:
                if not isinstance(measure.formula, AcrossGroups):
                    result[measure.name] = self.of_group(measure.formula, groups[key], plan)
            found.append(result)
        found = [result for result in found if _holds(plan.having, result)]
        for measure in plan.measures:
            if isinstance(measure.formula, AcrossGroups):
                _across(measure.name, measure.formula, found)
        for term in reversed(plan.order):
            name = term.path[0]
            known = sorted((r for r in found if r[name] is not None), key=lambda r: r[name], reverse=term.descending)
            found = known + [result for result in found if result[name] is None]
        return found

    def key(self, row: Any, group: Group, manager: str) -> Any:
        value = self.walk.at(row, group.path, manager)
        if value is None or group.part is None:
            return value
        if isinstance(value, datetime):
            value = timezone.localtime(value)
        if group.part == "hour":
            return value.replace(minute=0, second=0, microsecond=0)
        day = value.date() if isinstance(value, datetime) else value
        match group.part:
            case "year":
                return day.year
            case "weekday":
                return day.isoweekday()
            case "week":
                return day - timedelta(days=day.weekday())
            case "month":
                return day.replace(day=1)
            case "quarter":
                return date(day.year, (day.month - 1) // 3 * 3 + 1, 1)
        return day

    def of_group(self, formula: Formula, rows: Sequence[Any], plan: AggregatePlan) -> Any:
        match formula:
            case Constant(value):
                return value
            case Arithmetic(operator, left, right):
                return _compute(operator, self.of_group(left, rows, plan), self.of_group(right, rows, plan))
            case Elapsed(end, start, unit):
                return _elapsed(self.of_group(end, rows, plan), self.of_group(start, rows, plan), unit)
            case MeasureValue(name):
                inner = next(measure.formula for measure in plan.measures if measure.name == name)
                return self.of_group(inner, rows, plan)
            case Aggregated(function, of, where, distinct):
                kept = [row for row in rows if self.walk.holds(where, row, plan.manager)]
                values = kept if of is None else [self.of_row(of, row, plan.manager) for row in kept]
                counts = isinstance(of, Behind) and (function, of.function) == ("sum", "count")
                return sum(values) if counts else _fold(function, values, distinct=distinct)
        raise AssertionError(formula)

    def of_row(self, formula: Formula, row: Any, manager: str) -> Any:
        match formula:
            case Constant(value):
                return value
            case FieldValue(path):
                value = self.walk.at(row, path, manager)
                return value.total_seconds() if isinstance(value, timedelta) else value
            case Arithmetic(operator, left, right):
                return _compute(operator, self.of_row(left, row, manager), self.of_row(right, row, manager))
            case Elapsed(end, start, unit):
                return _elapsed(self.of_row(end, row, manager), self.of_row(start, row, manager), unit)
            case Behind(relation, function, of, where):
                target = self.walk.bindings[manager].relations[relation].target
                kept = [r for r in self.walk.related(row, relation, manager) if self.walk.holds(where, r, target)]
                return _fold(function, kept if of is None else [self.of_row(of, item, target) for item in kept])
        raise AssertionError(formula)


def _fold(function: str, values: Iterable[Any], *, distinct: bool = False) -> Any:
    known: list[Any] = [value for value in values if value is not None]
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


def _compute(operator: str, left: Any, right: Any) -> Any:
    if left is None or right is None or (operator == "/" and not right):
        return None
    if operator == "/" or isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
    return {"+": left + right, "-": left - right, "*": left * right, "/": left / right if right else None}[operator]


def _elapsed(end: Any, start: Any, unit: str) -> Any:
    if end is None or start is None:
        return None
    if unit == "seconds":
        return (end - start).total_seconds()
    days = [timezone.localtime(v).date() if isinstance(v, datetime) else v for v in (end, start)]
    return (days[0] - days[1]).days


def _holds(where: Where, result: dict[str, Any]) -> bool:
    match where:
        case And(parts):
            return all(_holds(part, result) for part in parts)
        case Or(parts):
            return any(_holds(part, result) for part in parts)
        case Not(part):
            return not _holds(part, result)
        case Condition((name,), lookup, value):
            actual = result[name]
            return compare(Decimal(repr(actual)) if isinstance(actual, float) else actual, lookup, value)
    raise AssertionError(where)


def _across(name: str, formula: AcrossGroups, found: list[dict[str, Any]]) -> None:
    values = [result[formula.measure] for result in found]
    known = [value for value in values if value is not None]
    total = float(sum(known))
    before = None
    for result, value in zip(found, values, strict=True):
        match formula.function:
            case "rank":
                result[name] = 1 + (len(known) if value is None else sum(other > value for other in known))
            case "share":
                result[name] = None if value is None or not total else float(value) / total
            case "change":
                result[name] = None if value is None or before is None else value - before
        before = value


def _nulls_last(key: tuple[Any, ...]) -> list[Any]:
    return [(value is None, 0 if value is None else value) for value in key]
