"""What the names and functions of a formula mean to an actor: a syntax tree into a typed :data:`~measures.Formula`.

A path leads through to-one relations to a field, or up to the first to-many relation, behind which only an aggregate
can go on. What the actor may not see does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, assert_never, cast, get_args

from gm_chat.managers.api import And, FieldInfo, FieldType, ManagerInfo, ManagerView, Related, Where
from gm_chat.managers.formula import Binary, Call, Name, Node, Number
from gm_chat.managers.measures import (
    AcrossGroups,
    Aggregated,
    AggregateFunction,
    Arithmetic,
    Behind,
    Constant,
    DatePart,
    Elapsed,
    FieldValue,
    Formula,
    Measure,
    MeasureValue,
)
from gm_chat.managers.resolve import find_relation, sortable_fields, split_path
from gm_chat.managers.spelling import match_name, nearest, shown
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from decimal import Decimal

    from gm_chat.managers.api import Path
    from gm_chat.managers.plan import PlanLimits

__all__ = ["DATES", "NUMBERS", "FormulaReader", "Place", "walk"]

NUMBERS: Final = frozenset({"integer", "number", "decimal", "duration"})
DATES: Final = frozenset({"date", "datetime"})
_PARTS: Final = frozenset(get_args(DatePart))
_AGGREGATES: Final = frozenset(get_args(AggregateFunction))
_ACROSS: Final = frozenset({"rank", "share", "change"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path leads: relations, the manager there, and the field (``None``: the path ends at a relation)."""

    hops: Path
    many: str | None
    """The first to-many relation of the path, with which ``hops`` end; ``rest`` goes on behind it."""
    rest: tuple[str, ...]
    manager: ManagerInfo
    field: FieldInfo | None
    part: DatePart | None = None


def walk(text: str, manager: ManagerInfo, view: ManagerView, limits: PlanLimits, what: str) -> Place:
    """Follow a path up to a field, or up to the first to-many relation."""
    segments = split_path(text, what)
    if len(segments) - 1 > limits.depth + 1:
        raise ToolError("too_large", f"{what} {shown(text)} goes through more than {limits.depth} relations")
    hops: list[str] = []
    for position, segment in enumerate(segments):
        fields = {item.name: item for item in manager.fields}
        name = match_name(segment, fields)
        rest = tuple(segments[position + 1 :])
        if name is not None and (not rest or fields[name].type in DATES):
            return Place(tuple(hops), None, (), manager, fields[name], _part(rest, fields[name], what))
        relations = {item.name: item for item in manager.relations}
        if match_name(segment, relations) is None:
            known = [*fields, *relations] if not rest else list(relations)
            raise ToolError(
                "unknown_field",
                f"{what}: {manager.name} has no {'field' if not rest else 'relation'} {shown(segment)}",
                allowed=nearest(segment, known),
            )
        relation, target = find_relation(segment, manager, view)
        hops.append(relation.name)
        if relation.many:
            return Place(tuple(hops), relation.name, rest, target, None)
        manager = target
    return Place(tuple(hops), None, (), manager, None)


def _part(rest: Sequence[str], field: FieldInfo, what: str) -> DatePart | None:
    if not rest:
        return None
    if len(rest) == 1 and rest[0].lower() in _PARTS:
        part = cast("DatePart", rest[0].lower())
        if part != "hour" or field.type == "datetime":
            return part
    raise ToolError(
        "invalid_argument",
        f"{what}: {field.name!r} has no part {shown('__'.join(rest))}",
        allowed=sorted(_PARTS - ({"hour"} if field.type == "date" else set())),
    )


class FormulaReader:
    """Gives the names and functions of one formula their meaning, and each part its type."""

    def __init__(
        self,
        manager: ManagerInfo,
        view: ManagerView,
        limits: PlanLimits,
        where: And,
        measures: Mapping[str, Measure],
        what: str,
        *,
        grouped: bool,
    ) -> None:
        self._manager = manager
        self._view = view
        self._limits = limits
        self._where = where
        self._measures = measures
        self._what = what
        self._grouped = grouped

    def group_value(self, node: Node) -> tuple[Formula, FieldType]:
        """Read a formula of a group."""
        match node:
            case Number(value):
                return Constant(value), _number_type(value)
            case Binary(operator, left, right):
                return self._arithmetic(operator, self.group_value(left), self.group_value(right))
            case Call(function) if function in _ACROSS:
                return self._across(node)
            case Call(function) if function in _AGGREGATES:
                return self._aggregated(node)
            case Call(function):
                self._unknown_function(function)
            case Name(text):
                name = match_name(text, self._measures)
                if name is not None:
                    return MeasureValue(name), self._measures[name].type
                walk(text, self._manager, self._view, self._limits, self._what)  # an unknown name says so first
                self._fail(f"{shown(text)} must stand inside a function, such as sum({text[:60]})")
        assert_never(node)

    def _across(self, node: Call) -> tuple[Formula, FieldType]:
        name = None
        if len(node.arguments) == 1 and isinstance(node.arguments[0], Name):
            name = match_name(node.arguments[0].text, self._measures)
        if name is None or self._measures[name].type not in NUMBERS:
            self._fail(f"{node.function}() takes the name of a measure that stands before it", list(self._measures))
        if not self._grouped:
            self._fail(f"{node.function}() compares groups: name some in group_by")
        kind: FieldType = {"rank": "integer", "share": "number"}.get(node.function, self._measures[name].type)  # type: ignore[assignment]  # the literals above
        return AcrossGroups(cast("Any", node.function), name), kind

    def _aggregated(self, node: Call) -> tuple[Formula, FieldType]:
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

    def _over_all(self, function: AggregateFunction, place: Place, *, distinct: bool) -> tuple[Formula, FieldType]:
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
            (sums, kind), (counts, _) = total("sum", "sum"), total("count", "sum")
            del kind
            return Arithmetic("/", sums, counts), "number"
        outer: AggregateFunction = "sum" if function in ("sum", "count") else function
        return total(function, outer)

    def row_value(self, node: Node) -> tuple[Formula, FieldType]:
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
                place = walk(text, self._manager, self._view, self._limits, self._what)
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
        inner = FormulaReader(place.manager, self._view, self._limits, And(()), {}, self._what, grouped=False)
        value, kind = inner.row_value(Name("__".join(place.rest)))
        return Behind(relation, function, value, where), self._type(function, kind)

    def _many(self, node: Node) -> Place | None:
        """The place of a bare path that goes through a to-many relation."""
        if not isinstance(node, Name):
            return None
        place = walk(node.text, self._manager, self._view, self._limits, self._what)
        return place if place.many is not None else None

    def _field(self, place: Place, text: str) -> tuple[Formula, FieldType]:
        usable = sortable_fields(place.manager)
        if place.field is None or place.field.name not in usable or place.part is not None:
            self._fail(f"{shown(text)} is no stored field that can be computed with", nearest(text, usable))
        return FieldValue((*place.hops, place.field.name), place.field.type), place.field.type

    def _arithmetic(
        self, operator: Any, left: tuple[Formula, FieldType], right: tuple[Formula, FieldType]
    ) -> tuple[Formula, FieldType]:
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
            allowed=[*sorted(_AGGREGATES), *sorted(_ACROSS)],
        )

    def _fail(self, reason: str, allowed: Sequence[str] | None = None) -> NoReturn:
        details = {} if allowed is None else {"allowed": list(allowed)}
        raise ToolError("invalid_formula", f"{self._what}: {reason}", **details)


def _is_behind(part: Where, relation: str | None) -> bool:
    return isinstance(part, Related) and part.relation == relation


def _number_type(value: Decimal) -> FieldType:
    return "integer" if value == value.to_integral_value() else "decimal"
