"""What the names and functions of a formula mean to an actor: a syntax tree into a typed :data:`~measures.Formula`.

A path leads through to-one relations to a field, or up to the first to-many relation, behind which only an aggregate
can go on. What the actor may not see does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn, assert_never, cast, get_args

from django.utils import timezone

from gm_chat.managers.api import And, FieldType, ManagerInfo, ManagerView, Related, Where
from gm_chat.managers.formula import Binary, Call, Name, Node, Number
from gm_chat.managers.measures import (
    AcrossGroups,
    Aggregated,
    AggregateFunction,
    Arithmetic,
    Behind,
    Constant,
    Elapsed,
    FieldValue,
    Formula,
    Group,
    Measure,
    MeasureValue,
    parts_of,
)
from gm_chat.managers.resolve import DATES, Place, sortable_fields, type_of_part, walk
from gm_chat.managers.spelling import match_name, nearest, shown
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from gm_chat.managers.plan import PlanLimits

__all__ = ["NUMBERS", "FormulaReader", "Results"]

NUMBERS: Final = frozenset({"integer", "number", "decimal", "duration"})
_AGGREGATES: Final = frozenset(get_args(AggregateFunction))
MAX_SIZE: Final = 300
"""Of a formula, in nodes, the measures that it names included."""
MAX_COLUMNS: Final = 60
_ACROSS: Final = ("rank", "share", "change", "running")
_ORDERED: Final = frozenset({"change", "running"})
Typed = tuple[Formula, FieldType]


@dataclass(slots=True)
class Results:
    """The columns of the result as far as they are read: what a formula may name."""

    groups: tuple[Group, ...] = ()
    measures: dict[str, Measure] = field(default_factory=dict)
    across: set[str] = field(default_factory=set)
    """The measures that depend on other groups."""
    _sizes: dict[str, int] = field(default_factory=dict)

    def add(self, measure: Measure) -> None:
        """Take a measure whose formula names none but those taken before.

        Its SQL holds that of the measures it names, and theirs, so that a few short formulas could grow without bound.
        """
        parts = list(parts_of(measure.formula))
        size = sum(self._sizes[part.name] if isinstance(part, MeasureValue) else 1 for part in parts)
        if size > MAX_SIZE or len(self.measures) >= MAX_COLUMNS:
            raise ToolError("too_large", "the measures are too large together: use fewer, or build less on each other")
        self.measures[measure.name] = measure
        self._sizes[measure.name] = size
        if self.is_across(measure.formula):
            self.across.add(measure.name)

    def hide(self, formula: Formula, kind: FieldType) -> MeasureValue:
        """Give a part of a formula a name that no measure can have."""
        for known in self.measures.values():
            if known.formula == formula:
                return MeasureValue(known.name)
        name = f"#{len(self.measures)}"
        self.add(Measure(name, formula, kind, hidden=True))
        return MeasureValue(name)

    def is_across(self, formula: Formula) -> bool:
        """Whether a group's value depends on other groups."""
        return any(
            isinstance(part, AcrossGroups) or (isinstance(part, MeasureValue) and part.name in self.across)
            for part in parts_of(formula)
        )

    @property
    def named(self) -> dict[str, Measure]:
        """What formulas and conditions may name."""
        return {name: measure for name, measure in self.measures.items() if not measure.hidden}


class FormulaReader:
    """Gives the names and functions of one formula their meaning, and each part its type.

    ``where`` are the conditions on the rows that the formula is about; ``results`` gains what the formula hides in it.
    """

    def __init__(
        self, manager: ManagerInfo, view: ManagerView, limits: PlanLimits, where: And, results: Results, what: str
    ) -> None:
        self._manager = manager
        self._view = view
        self._limits = limits
        self._where = where
        self._results = results
        self._what = what

    def group_value(self, node: Node) -> Typed:
        """Read a formula of a group."""
        match node:
            case Number(value):
                return Constant(value), _number_type(value)
            case Binary(operator, left, right):
                return self._arithmetic(operator, *self._same_stage(self.group_value(left), self.group_value(right)))
            case Call(function) if function in _ACROSS:
                return self._across(node)
            case Call(function) if function in _AGGREGATES:
                return self._aggregated(node)
            case Call(function):
                self._unknown_function(function)
            case Name(text):
                name = match_name(text, self._results.named)
                if name is not None:
                    return MeasureValue(name), self._results.measures[name].type
                if (moment := self._clock(text)) is not None:
                    return moment
                self._walk(text)  # an unknown name says so first
                self._fail(f"{shown(text)} must stand inside a function, such as sum({text[:60]})")
        assert_never(node)

    def _same_stage(self, left: Typed, right: Typed) -> tuple[Typed, Typed]:
        """Beside a comparison of groups, an aggregate becomes a measure: groups are compared once they are known."""
        stages = [self._results.is_across(formula) for formula, _ in (left, right)]
        if stages[0] == stages[1]:
            return left, right
        return (left if stages[0] else self._lifted(left)), (right if stages[1] else self._lifted(right))

    def _lifted(self, typed: Typed) -> Typed:
        formula, kind = typed
        return typed if isinstance(formula, Constant | MeasureValue) else (self._results.hide(formula, kind), kind)

    def _across(self, node: Call) -> Typed:
        function, results = node.function, self._results
        if not results.groups:
            self._fail(f"{function}() compares groups: name some in group_by")
        if not node.arguments:
            self._fail(f"{function}() takes a measure, such as {function}(sum(price))", list(results.named))
        formula, kind = self.group_value(node.arguments[0])
        if kind not in NUMBERS:
            self._fail(f"{function}() needs numbers, got a {kind}")
        if results.is_across(formula):
            self._fail(f"{function}() takes a measure that is computed from rows, not from other groups")
        measure = formula if isinstance(formula, MeasureValue) else results.hide(formula, kind)
        within = self._within(node)
        kind = {"rank": "integer", "share": "number"}.get(function, kind)  # type: ignore[assignment]  # the literals above
        return AcrossGroups(cast("Any", function), measure.name, within), kind

    def _within(self, node: Call) -> tuple[str, ...]:
        """The groups that stay the same: those named, else for what runs along dates, the others."""
        groups = {group.name: group for group in self._results.groups}
        found: dict[str, None] = {}
        for argument in node.arguments[1:]:
            text = argument.text.replace(".", "__") if isinstance(argument, Name) else ""
            name = match_name(text, groups)
            if name is None:
                self._fail(f"after the measure, {node.function}() takes names of groups", nearest(text, groups))
            found[name] = None
        if node.function not in _ORDERED:
            return tuple(found)
        dates = [name for name, group in groups.items() if group.type in DATES or group.part == "year"]
        if not found and len(dates) == 1:
            found = dict.fromkeys(name for name in groups if name not in dates)
        if len(found) == len(groups):
            self._fail(f"{node.function}() needs a group to run along, beside those named in it")
        return tuple(found)

    def _aggregated(self, node: Call) -> Typed:
        function = cast("AggregateFunction", node.function)
        if not node.arguments and function == "count":
            return Aggregated("count", None, self._where), "integer"
        if len(node.arguments) != 1:
            self._fail(f"{function}() takes one field or formula")
        argument = node.arguments[0]
        many = self._many(argument)
        if many is not None:
            return self._over_all(function, many, distinct=node.distinct)
        value, kind = self.row_value(argument)
        return Aggregated(function, value, self._where, node.distinct), self._type(function, kind)

    def _over_all(self, function: AggregateFunction, place: Place, *, distinct: bool) -> Typed:
        """``sum(lines__price)``: what lies behind all rows of the group, without counting a row twice."""
        if distinct or function == "median" or len(place.hops) > 1:
            self._fail(
                f"{function}() cannot combine what lies behind several rows through {'__'.join(place.hops)!r}; "
                f"aggregate {place.manager.name} instead"
            )
        rows = And(tuple(part for part in self._where.parts if not _is_behind(part, place.many)))

        def total(name: AggregateFunction, outer: AggregateFunction) -> tuple[Aggregated, FieldType]:
            inner, kind = self._behind(name, place)
            return Aggregated(outer, inner, rows), kind

        if function == "avg":
            (sums, _), (counts, _) = total("sum", "sum"), total("count", "sum")
            return Arithmetic("/", sums, counts), "number"
        outer: AggregateFunction = "sum" if function in ("sum", "count") else function
        return total(function, outer)

    def row_value(self, node: Node) -> Typed:
        """Read a formula of a row."""
        match node:
            case Number(value):
                return Constant(value), _number_type(value)
            case Binary(operator, left, right):
                return self._arithmetic(operator, self.row_value(left), self.row_value(right))
            case Call(function, arguments) if function in _AGGREGATES:
                many = self._many(arguments[0]) if len(arguments) == 1 else None
                if many is None or len(many.hops) > 1:
                    self._fail(f"{function}() inside another function needs a to-many relation of {self._manager.name}")
                return self._behind(cast("AggregateFunction", function), many)
            case Call(function):
                self._unknown_function(function)
            case Name(text):
                if (moment := self._clock(text)) is not None:
                    return moment
                place = self._walk(text)
                if place.many is not None:
                    self._fail(f"{place.many!r} holds many rows: aggregate them first, as in max({text[:60]})")
                return self._field(place, text)
        assert_never(node)

    def _behind(self, function: AggregateFunction, place: Place) -> tuple[Behind, FieldType]:
        if function == "median":
            self._fail("median() of what lies behind a single row is not offered; use avg, min or max")
        relation = place.many or ""
        where = And(
            tuple(part.part for part in self._where.parts if isinstance(part, Related) and _is_behind(part, relation))
        )
        if not place.rest:
            if function != "count":
                self._fail(f"{function}() needs a field behind {relation!r}", sortable_fields(place.manager)[:20])
            return Behind(relation, "count", None, where), "integer"
        inner = FormulaReader(place.manager, self._view, self._limits, And(()), Results(), self._what)
        value, kind = inner.row_value(Name("__".join(place.rest)))
        return Behind(relation, function, value, where), self._type(function, kind)

    def _many(self, node: Node) -> Place | None:
        """The place of a bare path that goes through a to-many relation."""
        if not isinstance(node, Name) or self._clock(node.text) is not None:
            return None
        place = self._walk(node.text)
        return place if place.many is not None else None

    def _walk(self, text: str) -> Place:
        return walk(text, self._manager, self._view, depth=self._limits.depth, what=self._what)

    def _clock(self, text: str) -> Typed | None:
        """``today`` and ``now``, unless fields are called so."""
        names = [*(item.name for item in self._manager.fields), *(item.name for item in self._manager.relations)]
        if text.lower() not in ("today", "now") or match_name(text, names) is not None:
            return None
        now = timezone.now()
        if text.lower() == "now":
            return Constant(now), "datetime"
        return Constant((timezone.localtime(now) if timezone.is_aware(now) else now).date()), "date"

    def _field(self, place: Place, text: str) -> Typed:
        found = place.value()
        if found is None:
            usable = sortable_fields(place.manager)
            self._fail(f"{shown(text)} is no stored field that can be computed with", nearest(text, usable))
        value = FieldValue((*place.hops, found.name), found.type, place.part)
        return value, type_of_part(place.part, found.type)

    def _arithmetic(self, operator: Any, left: Typed, right: Typed) -> Typed:
        kinds = {left[1], right[1]}
        if operator == "-" and kinds <= DATES:
            if kinds == {"datetime"}:
                return Elapsed(left[0], right[0], "seconds"), "number"
            return Elapsed(left[0], right[0], "days"), "integer"
        for other in kinds - NUMBERS:
            self._fail(f"{operator!r} needs numbers, or two dates to subtract; got a {other}")
        kind: FieldType = "number" if operator == "/" or kinds & {"number", "duration"} else "integer"
        if kind == "integer" and "decimal" in kinds:
            kind = "decimal"
        return Arithmetic(operator, left[0], right[0]), kind

    def _type(self, function: AggregateFunction, kind: FieldType) -> FieldType:
        if function == "count":
            return "integer"
        if function in ("min", "max"):
            if kind in ("boolean", "uuid"):
                self._fail(f"{function}() needs numbers, dates or text, got a {kind}")
            return kind
        if kind not in NUMBERS:
            self._fail(f"{function}() needs numbers, got a {kind}")
        return kind if function == "sum" and kind != "duration" else "number"

    def _unknown_function(self, function: str) -> NoReturn:
        raise ToolError(
            "invalid_formula",
            f"{self._what}: there is no function {shown(function)}",
            allowed=[*sorted(_AGGREGATES), *_ACROSS],
        )

    def _fail(self, reason: str, allowed: Sequence[str] | None = None) -> NoReturn:
        details = {} if allowed is None else {"allowed": list(allowed)}
        raise ToolError("invalid_formula", f"{self._what}: {reason}", **details)


def _is_behind(part: Where, relation: str | None) -> bool:
    return isinstance(part, Related) and part.relation == relation


def _number_type(value: Decimal) -> FieldType:
    return "integer" if value == value.to_integral_value() else "decimal"
