"""Runs an :class:`AggregatePlan` over Django models in one statement, under the actor's rights.

Rows that the actor may not see take no part at any hop. Results are the same on every database: sums of integers and
decimals are exact, quotients and means are floating-point numbers, days and seconds are computed by the database.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, assert_never

from django.core.exceptions import EmptyResultSet, FullResultSet
from django.db import connections
from django.db.models import (
    Aggregate,
    Avg,
    BigIntegerField,
    BooleanField,
    Count,
    DateField,
    DateTimeField,
    DecimalField,
    ExpressionWrapper,
    F,
    FloatField,
    Func,
    Max,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    TextField,
    TimeField,
    UUIDField,
    Value,
    Window,
)
from django.db.models.functions import (
    Cast,
    ExtractIsoWeekDay,
    ExtractYear,
    Lag,
    NullIf,
    Rank,
    TruncDate,
    TruncHour,
    TruncMonth,
    TruncQuarter,
    TruncWeek,
)

from gm_chat.managers.api import And, Condition, FieldType, Not, Or
from gm_chat.managers.conversion import CONVERT, decimal_places
from gm_chat.managers.deadline import guard
from gm_chat.managers.functions import (
    AsFloat,
    DaysBetween,
    Median,
    SecondsBetween,
    SecondsOf,
    SumOver,
    able_to_take_medians,
    require_time_zones,
)
from gm_chat.managers.measures import (
    AcrossGroups,
    Aggregated,
    AggregatePage,
    AggregatePlan,
    Arithmetic,
    Behind,
    Constant,
    Elapsed,
    FieldValue,
    Formula,
    Group,
    Measure,
    MeasureValue,
)
from gm_chat.managers.rows import Scope, link_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.managers.api import Where
    from gm_chat.managers.binding import Binding
    from gm_chat.managers.conversion import Convert
    from gm_chat.plugin import Actor

__all__ = ["execute_aggregate"]

_AGGREGATES: Final[Mapping[str, type[Aggregate]]] = {
    "count": Count,
    "sum": Sum,
    "avg": Avg,
    "min": Min,
    "max": Max,
    "median": Median,
}
_TRUNCATE: Final[Mapping[str, Any]] = {"quarter": TruncQuarter, "month": TruncMonth, "week": TruncWeek}


def execute_aggregate(
    plan: AggregatePlan, bindings: Mapping[str, Binding], actor: Actor, *, deadline: float | None = None
) -> AggregatePage:
    """Run a plan under the actor's rights. Blocking. Raises ``ToolError("timeout")`` at the deadline."""
    alias = bindings[plan.manager].model._default_manager.db
    with guard(alias, deadline):
        return _Aggregation(plan, Scope(bindings, actor)).run()


class _Aggregation:
    """One run: formulas into expressions, rows into objects. Columns are numbered, so that no name meets a field's."""

    def __init__(self, plan: AggregatePlan, scope: Scope) -> None:
        self._plan = plan
        self._scope = scope
        self._formulas = {measure.name: measure.formula for measure in plan.measures}
        names = [*(group.name for group in plan.groups), *(measure.name for measure in plan.measures)]
        self._columns = {name: f"gm_chat_{number}" for number, name in enumerate(names)}
        self._takes_medians = False

    def run(self) -> AggregatePage:
        plan, scope = self._plan, self._scope
        rows = scope.rows(plan.manager)
        if plan.where.parts:
            rows = rows.filter(scope.condition(plan.where, plan.manager))
        measures = {self._columns[item.name]: self._value(item.formula) for item in plan.measures}
        with able_to_take_medians(connections[rows.db]) if self._takes_medians else nullcontext():
            found = [rows.aggregate(**measures)] if not plan.groups else list(self._grouped(rows, measures))
        converters = [(item.name, self._columns[item.name], self._converter(item)) for item in plan.groups]
        converters += [(item.name, self._columns[item.name], self._converter(item)) for item in plan.measures]
        data = [
            {name: None if row[column] is None else convert(row[column]) for name, column, convert in converters}
            for row in found[: plan.limit]
        ]
        return AggregatePage(data, has_more=len(found) > plan.limit)

    def _grouped(self, rows: QuerySet[Any], measures: Mapping[str, Any]) -> Any:
        plan = self._plan
        groups = {self._columns[group.name]: self._group(group) for group in plan.groups}
        grouped = rows.annotate(**groups).values(*groups)
        across = {item.name for item in plan.measures if isinstance(item.formula, AcrossGroups)}
        first = {column: value for column, value in measures.items() if column not in map(self._columns.get, across)}
        grouped = grouped.annotate(**first).annotate(**{c: v for c, v in measures.items() if c not in first})
        if plan.having.parts:
            grouped = grouped.filter(self._having(plan.having))
        order = [
            F(self._columns[term.path[0]]).desc(nulls_last=True)
            if term.descending
            else F(self._columns[term.path[0]]).asc(nulls_last=True)
            for term in plan.order
        ]
        order += [F(column).asc(nulls_last=True) for column in groups]  # so that pages never overlap
        return grouped.order_by(*order)[plan.offset : plan.offset + plan.limit + 1]

    def _group(self, group: Group) -> Any:
        value = self._scope.value(group.path, self._plan.manager)
        if group.part is not None:
            require_time_zones(connections[self._scope.rows(self._plan.manager).db])
        match group.part:
            case None:
                return value
            case "year":
                return ExtractYear(value)
            case "weekday":
                return ExtractIsoWeekDay(value)
            case "hour":
                return TruncHour(value, output_field=DateTimeField())
            case "day":
                return TruncDate(value)
            case part:
                return _TRUNCATE[part](value, output_field=DateField())

    def _having(self, where: Where) -> Q:
        match where:
            case And(parts):
                return Q(*map(self._having, parts))
            case Or(parts):
                return Q(*map(self._having, parts), _connector=Q.OR)
            case Not(part):
                return ~self._having(part)
            case Condition(path, lookup, value):
                return Q(**{f"{self._columns[path[0]]}__{lookup}": value})
        raise TypeError(f"having cannot hold {where!r}: groups have no relations")

    # --- formulas -----------------------------------------------------------------------------------------------

    def _value(self, formula: Formula) -> Any:
        return self._typed(formula, self._plan.manager)[0]

    def _typed(self, formula: Formula, manager: str) -> tuple[Any, FieldType]:
        """Compile a formula over rows of ``manager``, or over groups of them; also tell the type of its values."""
        match formula:
            case Constant(value):
                whole = value == value.to_integral_value()
                return (Value(int(value)), "integer") if whole else (Value(value, DecimalField()), "decimal")
            case FieldValue(path, kind):
                column = self._scope.value(path, manager)
                return (SecondsOf(column), "number") if kind == "duration" else (column, kind)
            case Arithmetic():
                return self._arithmetic(formula, manager)
            case Elapsed(end, start, unit):
                both = [self._typed(end, manager), self._typed(start, manager)]
                if unit == "seconds":
                    return SecondsBetween(*(value for value, _ in both)), "number"
                return DaysBetween(*(TruncDate(v) if kind == "datetime" else v for v, kind in both)), "integer"
            case Behind():
                return self._behind(formula, manager)
            case Aggregated():
                return self._aggregated(formula, manager)
            case MeasureValue(name):
                return self._typed(self._formulas[name], manager)
            case AcrossGroups():
                return self._across(formula)
        assert_never(formula)

    def _arithmetic(self, formula: Arithmetic, manager: str) -> tuple[Any, FieldType]:
        (left, left_kind), (right, right_kind) = (self._typed(part, manager) for part in (formula.left, formula.right))
        if formula.operator == "/":
            divisor = NullIf(AsFloat(right), Value(0.0))
            return ExpressionWrapper(AsFloat(left) / divisor, FloatField()), "number"
        kinds = {left_kind, right_kind}
        kind: FieldType = "number" if "number" in kinds else "decimal" if "decimal" in kinds else "integer"
        match formula.operator:
            case "+":
                combined = left + right
            case "-":
                combined = left - right
            case "*":
                combined = left * right
        return ExpressionWrapper(combined, _field(kind)), kind

    def _behind(self, formula: Behind, manager: str) -> tuple[Any, FieldType]:
        scope = self._scope
        relation = scope.bindings[manager].relations[formula.relation]
        link = link_of(scope.bindings[manager].model, relation.query_name)
        rows = scope.rows(relation.target)
        if formula.where.parts:
            rows = rows.filter(scope.condition(formula.where, relation.target))
        parent = OuterRef(link.parent_key)
        if link.prefix:  # each row once, however often it is linked
            pairs = scope.linked(link, relation, scope.rows(relation.target))
            own = pairs.filter(**{link.column: OuterRef(parent)})
            rows = rows.filter(pk__in=own.values(f"{link.prefix}pk"))
        else:
            rows = scope.linked(link, relation, rows).annotate(gm_chat_parent=link.key()).filter(gm_chat_parent=parent)
        if formula.of is None:
            value: Any = F("pk")
            kind: FieldType = "integer"
        else:
            value, kind = self._typed(formula.of, relation.target)
        if formula.function == "avg":
            value = AsFloat(value)
        function, kind = formula.function.upper(), _result_type(formula.function, kind)
        # A plain function and no aggregate: without GROUP BY there is one row, and a count of nothing is 0.
        one = rows.order_by().annotate(gm_chat_value=Func(value, function=function, output_field=_field(kind)))
        return Subquery(one.values("gm_chat_value"), output_field=_field(kind)), kind

    def _aggregated(self, formula: Aggregated, manager: str) -> tuple[Any, FieldType]:
        self._takes_medians |= formula.function == "median"
        value: Any = F("pk")
        kind: FieldType = "integer"
        if formula.of is not None:
            value, kind = self._typed(formula.of, manager)
        options: dict[str, Any] = {}
        if formula.where.parts:
            condition = self._scope.condition(formula.where, manager)
            if self._can_hold(condition, manager):
                options["filter"] = condition
            else:
                # Django would put the number 0 in the place of the whole formula that such an aggregate stands in.
                value = Cast(Value(None), _field(kind))
        if formula.function == "avg":
            value = AsFloat(value)
        kind = _result_type(formula.function, kind)
        if formula.distinct:
            options["distinct"] = True
        if formula.function == "sum" and isinstance(formula.of, Behind) and formula.of.function == "count":
            options["default"] = 0  # a number of things, which is never unknown
        if formula.function in ("sum", "avg", "median"):
            options["output_field"] = _field(kind)
        return _AGGREGATES[formula.function](value, **options), kind

    def _can_hold(self, condition: Q, manager: str) -> bool:
        query = self._scope.rows(manager).filter(condition).query
        try:
            query.get_compiler(self._scope.rows(manager).db).compile(query.where)
        except EmptyResultSet:
            return False
        except FullResultSet:
            pass
        return True

    def _across(self, formula: AcrossGroups) -> tuple[Any, FieldType]:
        column = F(self._columns[formula.measure])
        kind = self._typed(self._formulas[formula.measure], self._plan.manager)[1]
        match formula.function:
            case "rank":
                return Window(Rank(), order_by=[column.desc(nulls_last=True)]), "integer"
            case "share":
                total = NullIf(AsFloat(Window(SumOver(column, output_field=_field(kind)))), Value(0.0))
                return _AcrossGroups(AsFloat(column) / total, FloatField()), "number"
            case "change":
                order = [F(self._columns[group.name]).asc(nulls_last=True) for group in self._plan.groups]
                before = Window(Lag(column, output_field=_field(kind)), order_by=order)
                return _AcrossGroups(column - before, _field(kind)), kind
        assert_never(formula.function)

    # --- results ------------------------------------------------------------------------------------------------

    def _converter(self, item: Group | Measure) -> Convert:
        """What makes a column's values JSON. Databases disagree in the Python types of sums and means."""
        if isinstance(item, Group) and item.type == "duration":
            return CONVERT["duration"]
        if item.type != "decimal":
            return _CONVERT[item.type]
        formula = FieldValue(item.path, item.type) if isinstance(item, Group) else item.formula
        return _decimals(self._places(formula, self._plan.manager))

    def _places(self, formula: Formula, manager: str) -> int:
        """How many decimals a formula's exact value can have: SQLite computes decimals in binary."""
        match formula:
            case FieldValue(path, "decimal"):
                for hop in path[:-1]:
                    manager = self._scope.bindings[manager].relations[hop].target
                binding = self._scope.bindings[manager]
                return decimal_places(binding.model, binding.columns[path[-1]])
            case Constant(value):
                return max(0, -int(value.as_tuple().exponent))
            case Arithmetic(operator, left, right):
                places = self._places(left, manager), self._places(right, manager)
                return sum(places) if operator == "*" else max(places)
            case Behind(relation, _, of) if of is not None:
                return self._places(of, self._scope.bindings[manager].relations[relation].target)
            case Aggregated(_, of) if of is not None:
                return self._places(of, manager)
            case MeasureValue(name) | AcrossGroups(_, name):
                return self._places(self._formulas[name], manager)
        return 0


def _field(kind: FieldType) -> Any:
    match kind:
        case "integer":
            return BigIntegerField()
        case "decimal":
            return DecimalField(max_digits=38, decimal_places=10)
        case "number" | "duration":
            return FloatField()
        case "date":
            return DateField()
        case "datetime":
            return DateTimeField()
        case "time":
            return TimeField()
        case "boolean":
            return BooleanField()
        case "uuid":
            return UUIDField()
    return TextField()


def _result_type(function: str, kind: FieldType) -> FieldType:
    match function:
        case "count":
            return "integer"
        case "avg" | "median":
            return "number"
    return kind


def _decimals(places: int) -> Convert:
    return lambda value: format(value, f".{places}f")


class _AcrossGroups(ExpressionWrapper):  # type: ignore[type-arg]  # generic for the stubs alone
    """An expression of windows over groups: nothing in it is to be grouped by, which Django cannot tell by itself."""

    def get_group_by_cols(self) -> list[Any]:
        """None."""
        return []


_CONVERT: Final[Mapping[str, Convert]] = {
    "integer": int,
    "number": lambda value: float(format(float(value), ".15g")),
    "duration": float,
    "string": str,
    "boolean": bool,
    **{kind: CONVERT[kind] for kind in ("date", "datetime", "time", "uuid")},
}
