"""Runs an :class:`AggregatePlan` over Django models in one statement, under the actor's rights.

Rows that the actor may not see take no part at any hop. Results are the same on every database.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from django.db import connections
from django.db.models import BigIntegerField, Case, F, Q, QuerySet, Value, When, Window
from django.db.models.functions import DenseRank

from gm_chat.managers.api import And, Condition, FieldReference, Not, Or
from gm_chat.managers.conversion import CONVERT, fitting
from gm_chat.managers.deadline import guard
from gm_chat.managers.expressions import Expressions, OverGroups
from gm_chat.managers.filling import MAX_FOUND, Collated, finish, named_in, text_conditions
from gm_chat.managers.functions import able_to_take_medians
from gm_chat.managers.measures import AggregatePage, AggregatePlan, FieldValue, Group, Measure
from gm_chat.managers.rows import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.managers.api import Where
    from gm_chat.managers.binding import Binding
    from gm_chat.managers.conversion import Convert
    from gm_chat.plugin import Actor

__all__ = ["execute_aggregate"]


def execute_aggregate(
    plan: AggregatePlan, bindings: Mapping[str, Binding], actor: Actor, *, deadline: float | None = None
) -> AggregatePage:
    """Run a plan under the actor's rights. Blocking. Raises ``ToolError("timeout")`` at the deadline."""
    alias = bindings[plan.manager].model._default_manager.db
    with guard(alias, deadline) as check:
        return _Aggregation(plan, Scope(bindings, actor, check)).run()


class _Aggregation:
    """One run: the plan into one queryset, its rows into objects."""

    def __init__(self, plan: AggregatePlan, scope: Scope) -> None:
        self._plan = plan
        self._scope = scope
        self._expressions = Expressions(plan, scope)
        self._columns = self._expressions.columns
        self._types = {item.name: item.type for item in plan.groups} | {item.name: item.type for item in plan.measures}

    def run(self) -> AggregatePage:
        plan, scope = self._plan, self._scope
        rows = scope.rows(plan.manager)
        if plan.where.parts:
            rows = rows.filter(scope.condition(plan.where, plan.manager))
        measures = {
            self._columns[item.name]: self._expressions.measure(item.name)
            for item in plan.measures
            if item.name not in self._expressions.across
        }
        with able_to_take_medians(connections[rows.db]) if self._expressions.takes_medians else nullcontext():
            found = [rows.aggregate(**measures)] if not plan.groups else list(self._grouped(rows, measures))
        if plan.groups and self._finishes_here(connections[rows.db]):
            named = list(map(self._named, found))
            found = [{self._columns[name]: value for name, value in row.items()} for row in finish(plan, named)]
        shown: list[Group | Measure] = [*plan.groups, *(item for item in plan.measures if not item.hidden)]
        converters = [(item.name, self._columns[item.name], self._converter(item)) for item in shown]
        data = [
            {name: None if row[column] is None else convert(row[column]) for name, column, convert in converters}
            for row in found[: plan.limit]
        ]
        kept = fitting(data, plan.max_bytes)
        return AggregatePage(data[:kept], has_more=kept < len(found), truncated=kept < len(data))

    def _finishes_here(self, connection: Any) -> bool:
        """Whether groups are completed, compared and chosen among in Python.

        MariaDB loses groups where HAVING and a window meet a distinct count or the sorted text that its medians are of.
        """
        loses = connection.vendor == "mysql" and bool(self._expressions.across) and bool(self._plan.having.parts)
        return self._plan.fill is not None or loses

    def _grouped(self, rows: QuerySet[Any], measures: Mapping[str, Any]) -> Any:
        plan, across = self._plan, self._expressions.across
        groups = {self._columns[group.name]: self._expressions.group(group) for group in plan.groups}
        grouped: Any = rows.annotate(**groups).values(*groups)
        grouped = grouped.annotate(**measures) if measures else grouped.distinct()
        if self._finishes_here(connections[rows.db]):
            return grouped.annotate(**self._said_of_texts()).order_by()[: MAX_FOUND + 1]
        if early := [part for part in plan.having.parts if not named_in(part) & across]:
            grouped = grouped.filter(self._having(And(tuple(early))))
        for item in plan.measures:
            if item.name in across:
                grouped = grouped.annotate(**{self._columns[item.name]: self._expressions.measure(item.name)})
        if late := [part for part in plan.having.parts if named_in(part) & across]:
            grouped = grouped.filter(self._having(And(tuple(late))))
        order = [
            F(self._columns[term.path[0]]).desc(nulls_last=True)
            if term.descending
            else F(self._columns[term.path[0]]).asc(nulls_last=True)
            for term in plan.order
        ]
        order += [F(column).asc(nulls_last=True) for column in groups]  # so that pages never overlap
        return grouped.order_by(*order)[plan.offset : plan.offset + plan.limit + 1]

    # --- texts of groups that are finished here -----------------------------------------------------------------

    def _texts(self) -> dict[str, list[Condition]]:
        """The columns that hold text, with what ``having`` asks of each."""
        names = [name for name, kind in self._types.items() if kind == "string"]
        asked = list(dict.fromkeys(text_conditions(self._plan.having, names)))
        return {name: [item for item in asked if item.path == (name,)] for name in names}

    def _said_of_texts(self) -> dict[str, Any]:
        """Columns that tell how the database compares the texts of the groups."""
        said: dict[str, Any] = {}
        for name, asked in self._texts().items():
            column = self._columns[name]
            place = Window(DenseRank(), order_by=[F(column).asc(nulls_last=True)])
            said[f"{column}_place"] = OverGroups(place, BigIntegerField())
            for number, condition in enumerate(asked):
                holds = Case(When(self._having(condition), then=Value(1)), default=Value(0))
                said[f"{column}_{number}"] = OverGroups(holds, BigIntegerField())
        return said

    def _named(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A group by the names of its columns, its texts with what was said of them."""
        named = {name: row[column] for name, column in self._columns.items() if column in row}
        for name, asked in self._texts().items():
            column = self._columns[name]
            if named[name] is not None:
                answers = {condition: bool(row[f"{column}_{number}"]) for number, condition in enumerate(asked)}
                named[name] = Collated(row[f"{column}_place"], named[name], answers)
        return named

    def _having(self, where: Where) -> Q:
        match where:
            case And(parts):
                return Q(*map(self._having, parts))
            case Or(parts):
                return Q(*map(self._having, parts), _connector=Q.OR)
            case Not(part):
                return ~self._having(part)
            case Condition(path, lookup, value):
                column = self._columns[path[0]]
                if isinstance(value, FieldReference):
                    return Q(**{f"{column}__{lookup}": F(self._columns[value.path[0]])})
                if self._types[path[0]] == "integer":
                    lookup, value = _whole(lookup, value)
                return Q(**{f"{column}__{lookup}": value})
        raise TypeError(f"having cannot hold {where!r}: groups have no relations")

    def _converter(self, item: Group | Measure) -> Convert:
        """What makes a column's values JSON. Databases disagree in the Python types of sums and means."""
        if item.type != "decimal":
            return _CONVERT[item.type]
        formula = FieldValue(item.path, item.type) if isinstance(item, Group) else item.formula
        return _decimals(self._expressions.places(formula, self._plan.manager))


def _whole(lookup: str, value: Any) -> tuple[str, Any]:
    """What a comparison with any number asks of a whole one: Django would cut off the fraction.

    As an expression the number would do, but beside a condition on a window Django drops columns that stand twice.
    """
    match lookup, value:
        case (("gt" | "lte"), Decimal()):
            return lookup, _storable(math.floor(value))
        case (("gte" | "lt"), Decimal()):
            return lookup, _storable(math.ceil(value))
        case "range", (Decimal() as first, Decimal() as last):
            return lookup, (_storable(math.ceil(first)), _storable(math.floor(last)))
        case (("exact" | "in"), _):
            items = value if isinstance(value, tuple) else (value,)
            return "in", [int(item) for item in items if item == _storable(int(item))]
    return lookup, value


def _storable(number: int) -> int:
    """The number, or the nearest of 64 bits: nothing that is counted or summed up lies beyond."""
    return max(-(2**63), min(number, 2**63 - 1))


def _decimals(places: int) -> Convert:
    return lambda value: format(value, f".{places}f") if math.isfinite(value) else None


def _number(value: Any) -> float | None:
    """To 15 digits, in which databases agree."""
    return float(format(float(value), ".15g")) if math.isfinite(value) else None


_CONVERT: Final[Mapping[str, Convert]] = {
    "integer": int,
    "number": _number,
    "duration": _number,
    "string": str,
    "boolean": bool,
    **{kind: CONVERT[kind] for kind in ("date", "datetime", "time", "uuid")},
}
