"""Aggregates by hand, over the rows that :class:`~testproject.walk.Walk` sees."""

from __future__ import annotations

import statistics
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from gm_chat.managers.api import And, Condition, FieldReference, Not, Or, Where
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
from testproject.walk import Walk, compare, compare_fields, part_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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
        if plan.fill is not None:
            groups |= {key: [] for key in _between(groups, plan) if key not in groups}
        late = {measure.name for measure in plan.measures if self.is_late(measure.formula, plan)}
        found = []
        for key in sorted(groups, key=_nulls_last):
            result: dict[str, Any] = dict(zip((group.name for group in plan.groups), key, strict=True))
            for measure in plan.measures:
                if measure.name not in late:
                    result[measure.name] = self.of_group(measure.formula, groups[key], plan)
            found.append(result)
        found = [result for result in found if all(_holds(p, result) for p in plan.having.parts if not _late(p, late))]
        for measure in plan.measures:
            if measure.name in late:
                values = _beside(measure.formula, found, plan)
                for result, value in zip(found, values, strict=True):
                    result[measure.name] = value
        found = [result for result in found if all(_holds(p, result) for p in plan.having.parts if _late(p, late))]
        for term in reversed(plan.order):
            name = term.path[0]
            known = sorted((r for r in found if r[name] is not None), key=lambda r: r[name], reverse=term.descending)
            found = known + [result for result in found if result[name] is None]
        hidden = [measure.name for measure in plan.measures if measure.hidden]
        return [{name: value for name, value in result.items() if name not in hidden} for result in found]

    def is_late(self, formula: Formula, plan: AggregatePlan) -> bool:
        match formula:
            case AcrossGroups():
                return True
            case MeasureValue(name):
                return any(self.is_late(item.formula, plan) for item in plan.measures if item.name == name)
            case Arithmetic(_, left, right):
                return self.is_late(left, plan) or self.is_late(right, plan)
        return False

    def key(self, row: Any, group: Group, manager: str) -> Any:
        return part_of(self.walk.at(row, group.path, manager), group.part)

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
                if not rows and plan.fill is not None:
                    return 0 if function in ("count", "sum") else None
                kept = [row for row in rows if self.walk.holds(where, row, plan.manager)]
                values = kept if of is None else [self.of_row(of, row, plan.manager) for row in kept]
                counts = isinstance(of, Behind) and (function, of.function) == ("sum", "count")
                return sum(values) if counts else _fold(function, values, distinct=distinct)
        raise AssertionError(formula)

    def of_row(self, formula: Formula, row: Any, manager: str) -> Any:
        match formula:
            case Constant(value):
                return value
            case FieldValue(path, _, part):
                value = part_of(self.walk.at(row, path, manager), part)
                return value.total_seconds() if isinstance(value, timedelta) else value
            case Arithmetic(operator, left, right):
                return _compute(operator, self.of_row(left, row, manager), self.of_row(right, row, manager))
            case Elapsed(end, start, unit):
                return _elapsed(self.of_row(end, row, manager), self.of_row(start, row, manager), unit)
            case Behind(relation, function, of, where):
                target = self.walk.bindings[manager].relations[relation].target
                behind, outer = self.walk.related(row, relation, manager), (row, manager)
                kept = [item for item in behind if self.walk.holds(where, item, target, outer)]
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
            if isinstance(value, FieldReference):
                return compare_fields(actual, lookup, result[value.path[0]])
            return compare(Decimal(repr(actual)) if isinstance(actual, float) else actual, lookup, value)
    raise AssertionError(where)


def _late(where: Where, late: set[str]) -> bool:
    match where:
        case And(parts) | Or(parts):
            return any(_late(part, late) for part in parts)
        case Not(part):
            return _late(part, late)
        case Condition((name,), _, value):
            return name in late or (isinstance(value, FieldReference) and value.path[0] in late)
    raise AssertionError(where)


def _beside(formula: Formula, found: list[dict[str, Any]], plan: AggregatePlan) -> list[Any]:
    match formula:
        case Constant(value):
            return [value for _ in found]
        case MeasureValue(name):
            return [result[name] for result in found]
        case Arithmetic(operator, left, right):
            both = zip(_beside(left, found, plan), _beside(right, found, plan), strict=True)
            return [_compute(operator, one, other) for one, other in both]
        case AcrossGroups():
            return [_across(formula, result, found, plan) for result in found]
    raise AssertionError(formula)


def _across(formula: AcrossGroups, result: dict[str, Any], found: list[dict[str, Any]], plan: AggregatePlan) -> Any:
    """One group's place among its likes, from their definition."""
    like = [each for each in found if all(each[name] == result[name] for name in formula.within)]
    value = result[formula.measure]
    known = [each[formula.measure] for each in like if each[formula.measure] is not None]
    along = [group.name for group in plan.groups if group.name not in formula.within]
    like.sort(key=lambda each: _nulls_last(tuple(each[name] for name in along)))
    place = like.index(result)
    match formula.function:
        case "rank":
            return 1 + (len(known) if value is None else sum(other > value for other in known))
        case "share":
            return None if value is None or not sum(known) else float(value) / float(sum(known))
        case "change":
            before = like[place - 1][formula.measure] if place else None
            return None if value is None or before is None else value - before
    so_far = [each[formula.measure] for each in like[: place + 1] if each[formula.measure] is not None]
    return sum(so_far) if so_far else None


def _between(groups: Mapping[tuple[Any, ...], Any], plan: AggregatePlan) -> Iterator[tuple[Any, ...]]:
    """The keys of the periods between the first and the last that are there, one day after the other."""
    place, group = next((at, group) for at, group in enumerate(plan.groups) if group.name == plan.fill)
    found = [key[place] for key in groups if key[place] is not None]
    if not found and group.part != "weekday":
        return
    periods: Iterable[Any]
    if group.part == "weekday":
        periods = range(1, 8)
    elif group.part == "year":
        periods = range(min(found), max(found) + 1)
    else:
        days = (max(found) - min(found)).days
        periods = {part_of(min(found) + timedelta(days=day), group.part) for day in range(days + 1)}
    kinds = {(key[:place], key[place + 1 :]) for key in groups} if len(plan.groups) > 1 else {((), ())}
    for before, after in kinds:
        for period in periods:
            yield (*before, period, *after)


def _nulls_last(key: tuple[Any, ...]) -> list[Any]:
    return [(value is None, 0 if value is None else value) for value in key]
