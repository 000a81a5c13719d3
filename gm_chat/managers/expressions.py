"""Formulas of an :class:`AggregatePlan` into database expressions, under the actor's rights.

Columns are numbered, so that no measure's name meets a field's. Sums of integers and decimals are exact, quotients and
means are floating-point numbers, days and seconds are computed by the database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, assert_never

from django.core.exceptions import EmptyResultSet, FullResultSet
from django.db import connections
from django.db.models import (
    Aggregate,
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
    Subquery,
    Sum,
    TextField,
    TimeField,
    UUIDField,
    Value,
    Window,
)
from django.db.models.functions import Cast, Lag, NullIf, Rank

from gm_chat.managers.conversion import decimal_places
from gm_chat.managers.date_parts import Day, part_of
from gm_chat.managers.functions import (
    AsFloat,
    DaysBetween,
    Mean,
    Median,
    SecondsBetween,
    SecondsOf,
    Signed,
    SumOver,
    require_time_zones,
)
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
    MeasureValue,
    across_names,
)
from gm_chat.managers.resolve import type_of_part
from gm_chat.managers.rows import Outer, Scope, link_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.managers.api import DatePart, FieldType, Path
    from gm_chat.managers.measures import Group

__all__ = ["Expressions", "OverGroups"]

_AGGREGATES: Final[Mapping[str, type[Aggregate]]] = {
    "count": Count,
    "sum": Sum,
    "avg": Mean,
    "min": Min,
    "max": Max,
    "median": Median,
}
Typed = tuple[Any, "FieldType"]
"""An expression, and the type of its values."""
_COUNTED: Final[Typed] = (Value(1, BigIntegerField()), "integer")
"""What is counted where rows are: a key of several columns is no value."""


class Expressions:
    """The columns of one plan. ``takes_medians`` tells whether an expression made so far needs one."""

    def __init__(self, plan: AggregatePlan, scope: Scope) -> None:
        self._plan = plan
        self._scope = scope
        self._formulas = {measure.name: measure.formula for measure in plan.measures}
        names = [*(group.name for group in plan.groups), *self._formulas]
        self.columns = {name: f"gm_chat_{number}" for number, name in enumerate(names)}
        self.takes_medians = False
        self.across = across_names(plan.measures)
        """The measures that depend on other groups: computed from columns, when those are there."""

    def group(self, group: Group) -> Any:
        """A column that rows are grouped by; a duration is a number of seconds, as it is in formulas."""
        value = self._field_value(group.path, group.part, self._plan.manager)
        return SecondsOf(value) if group.type == "duration" else value

    def measure(self, name: str) -> Any:
        """A measure, over rows or over groups."""
        return (self._over_groups if name in self.across else self._over_rows)(self._formulas[name])[0]

    def _over_rows(self, formula: Formula) -> Typed:
        return self._typed(formula, self._plan.manager)

    def _over_groups(self, formula: Formula) -> Typed:
        match formula:
            case MeasureValue(name):
                kind = (self._over_groups if name in self.across else self._over_rows)(self._formulas[name])[1]
                return F(self.columns[name]), kind
            case Arithmetic(operator, left, right):
                return _computed(operator, self._over_groups(left), self._over_groups(right))
            case AcrossGroups():
                return self._across(formula)
        return self._over_rows(formula)

    def _across(self, formula: AcrossGroups) -> Typed:
        column, kind = self._over_groups(MeasureValue(formula.measure))
        within = [F(self.columns[name]) for name in formula.within] or None
        along = [
            F(self.columns[group.name]).asc(nulls_last=True)
            for group in self._plan.groups
            if group.name not in formula.within
        ]
        match formula.function:
            case "rank":
                place = Window(Rank(), partition_by=within, order_by=[column.desc(nulls_last=True)])
                return OverGroups(place, BigIntegerField()), "integer"
            case "share":
                total = Window(SumOver(column, output_field=_field(kind)), partition_by=within)
                return _computed("/", (column, kind), (total, kind))
            case "change":
                before = Window(Lag(column, output_field=_field(kind)), partition_by=within, order_by=along)
                return _computed("-", (column, kind), (before, kind))
            case "running":
                so_far = Window(SumOver(column, output_field=_field(kind)), partition_by=within, order_by=along)
                return OverGroups(so_far, _field(kind)), kind
        assert_never(formula.function)

    def _field_value(self, path: Path, part: DatePart | None, manager: str) -> Any:
        if part is not None and self._scope.field(path, manager).type == "datetime":
            require_time_zones(connections[self._scope.rows(manager).db])
        return part_of(self._scope.value(path, manager), part)

    def _typed(self, formula: Formula, manager: str) -> Typed:
        """Compile a formula over rows of ``manager``, or over groups of them."""
        match formula:
            case Constant(value):
                return _constant(value)
            case FieldValue(path, kind, part):
                value = self._field_value(path, part, manager)
                return (SecondsOf(value), "number") if kind == "duration" else (value, type_of_part(part, kind))
            case Arithmetic(operator, left, right):
                return _computed(operator, self._typed(left, manager), self._typed(right, manager))
            case Elapsed(end, start, unit):
                both = [self._typed(end, manager), self._typed(start, manager)]
                if unit == "seconds":
                    return SecondsBetween(*(value for value, _ in both)), "number"
                return DaysBetween(*(Day(v) if kind == "datetime" else v for v, kind in both)), "integer"
            case Behind():
                return self._behind(formula, manager)
            case Aggregated():
                return self._aggregated(formula, manager)
            case MeasureValue(name):
                return self._typed(self._formulas[name], manager)
            case AcrossGroups():
                raise TypeError("groups are compared when their columns are there")
        assert_never(formula)

    def _behind(self, formula: Behind, manager: str) -> Typed:
        scope = self._scope
        relation = scope.bindings[manager].relations[formula.relation]
        link = link_of(scope.bindings[manager].model, relation.query_name)
        rows = scope.rows(relation.target)
        if formula.where.parts:
            rows = rows.filter(scope.condition(formula.where, relation.target, Outer(manager, 1)))
        parent = OuterRef(link.parent_key)
        if link.prefix:  # each row once, however often it is linked
            pairs = scope.linked(link, relation, scope.rows(relation.target))
            own = pairs.filter(**{link.column: OuterRef(parent)})
            rows = rows.filter(pk__in=own.values(f"{link.prefix}pk"))
        else:
            rows = scope.linked(link, relation, rows).annotate(gm_chat_parent=link.key()).filter(gm_chat_parent=parent)
        value, kind = _COUNTED if formula.of is None else self._typed(formula.of, relation.target)
        if formula.function == "avg":
            value = AsFloat(value)
        function, kind = formula.function.upper(), _result_type(formula.function, kind)
        # A plain function and no aggregate: without GROUP BY there is one row, and a count of nothing is 0.
        one = rows.order_by().annotate(gm_chat_value=Func(value, function=function, output_field=_field(kind)))
        return _OfRows(one.values("gm_chat_value"), 0 if formula.function == "count" else None, _field(kind)), kind

    def _aggregated(self, formula: Aggregated, manager: str) -> Typed:
        if formula == Aggregated("count", None):  # what databases count fastest
            return Count("*", output_field=_field("integer")), "integer"
        self.takes_medians |= formula.function == "median"
        value, kind = _COUNTED if formula.of is None else self._typed(formula.of, manager)
        options: dict[str, Any] = {}
        if formula.where.parts:
            condition = self._scope.condition(formula.where, manager)
            if self._can_hold(condition, manager):
                options["filter"] = condition
            else:
                # Django would put the number 0 in the place of the whole formula that such an aggregate stands in.
                value = Cast(Value(None), _field(kind))
        kind = _result_type(formula.function, kind)
        if formula.distinct:
            options["distinct"] = True
        if formula.function == "sum" and isinstance(formula.of, Behind) and formula.of.function == "count":
            options["default"] = 0  # a number of things, which is never unknown
        if formula.function in ("count", "sum", "avg", "median"):
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

    # --- exact decimals -----------------------------------------------------------------------------------------

    def places(self, formula: Formula, manager: str) -> int:
        """How many decimals a formula's exact value can have: SQLite computes decimals in binary."""
        match formula:
            case FieldValue(path, "decimal"):
                for hop in path[:-1]:
                    manager = self._scope.bindings[manager].relations[hop].target
                binding = self._scope.bindings[manager]
                return decimal_places(binding.model, binding.columns[path[-1]])
            case Constant(value):
                return max(0, -int(value.as_tuple().exponent)) if hasattr(value, "as_tuple") else 0
            case Arithmetic(operator, left, right):
                places = self.places(left, manager), self.places(right, manager)
                return sum(places) if operator == "*" else max(places)
            case Behind(relation, _, of) if of is not None:
                return self.places(of, self._scope.bindings[manager].relations[relation].target)
            case Aggregated(_, of) if of is not None:
                return self.places(of, manager)
            case MeasureValue(name) | AcrossGroups(_, name):
                return self.places(self._formulas[name], manager)
        return 0


def _constant(value: Any) -> Typed:
    if hasattr(value, "hour"):
        return _Moment(value, DateTimeField()), "datetime"
    if hasattr(value, "year"):
        return _Moment(value, DateField()), "date"
    whole = value == value.to_integral_value()
    return (Value(int(value), BigIntegerField()), "integer") if whole else (Value(value, DecimalField()), "decimal")


class _Moment(Value):
    """A day or a moment. MariaDB takes either for a text where nothing around it tells."""

    def as_mysql(self, compiler: Any, connection: Any) -> Any:
        """What it is."""
        sql, params = self.as_sql(compiler, connection)
        return f"CAST({sql} AS {'DATETIME(6)' if isinstance(self.output_field, DateTimeField) else 'DATE'})", params


def _computed(operator: str, left: Typed, right: Typed) -> Typed:
    if operator == "/":
        quotient = _Combined(AsFloat(left[0]), NullIf(AsFloat(right[0]), Value(0.0)), operator="/", kind="number")
        return quotient, "number"
    kinds = {left[1], right[1]}
    kind: FieldType = "number" if "number" in kinds else "decimal" if "decimal" in kinds else "integer"
    one, other = (Signed(value) if each == "integer" else value for value, each in (left, right))
    return _Combined(one, other, operator=operator, kind=kind), kind


class _Combined(Func):
    """Two numbers combined. It stands in aggregates, or combines them: Django must not group by a constant in it.

    PostgreSQL would take that for a column's position; SQLite would be told twice for each row that it is a number.
    """

    template = "(%(expressions)s)"

    def __init__(self, *operands: Any, operator: str, kind: FieldType) -> None:
        """Name the operator, and the type of what comes out."""
        super().__init__(*operands, arg_joiner=f" {operator} ", output_field=_field(kind))

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Without Django's cast of every decimal."""
        return self.as_sql(compiler, connection, **context)

    def get_group_by_cols(self) -> list[Any]:
        """None."""
        return []


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


class _OfRows(Subquery):
    """A value of rows. Where Django knows that there can be none it would leave a null, untyped and of a count, too."""

    def __init__(self, rows: Any, of_nothing: int | None, output_field: Any) -> None:
        self._of_nothing = of_nothing
        super().__init__(rows, output_field=output_field)

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **context: Any) -> Any:
        """The subselect, or what it would give."""
        try:
            return super().as_sql(compiler, connection, *args, **context)
        except EmptyResultSet:
            return compiler.compile(Cast(Value(self._of_nothing), self.output_field))


class OverGroups(ExpressionWrapper):  # type: ignore[type-arg]  # generic for the stubs alone
    """An expression of windows over groups: nothing in it is to be grouped by, which Django cannot tell by itself."""

    def get_group_by_cols(self) -> list[Any]:
        """None."""
        return []
