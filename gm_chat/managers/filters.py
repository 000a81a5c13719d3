"""The ``filters`` argument of a query into conditions over what the actor sees.

Flat and nested spellings are one thing: every key is a path, a path's first relation opens the relation's scope, and
all keys of one object that start with the same relation speak about the *same* related row: both
``{"lines__quantity__gt": 5, "lines__part__name": "Bolt"}`` and ``{"lines": {"quantity__gt": 5, "part__name": "Bolt"}}``
mean one line that satisfies both. ``null`` for a relation, or ``relation__isnull``, asks whether there is a row, and so
does ``null`` for a field behind it that is never null.

A key may write a lookup as ``name__icontains``, ``name_icontains``, ``name_Icontains``, ``nameIcontains`` or
``{"name": {"icontains": ...}}``. A text lookup of a field with choices finds their labels, too. A date given for a
datetime field means that whole day; dates may be given in words (``"last 30 days"``, :mod:`gm_chat.managers.periods`),
a part of a date may be compared (``date__weekday__in``), and a value may be another field (``{"field": "due_on"}``,
:mod:`gm_chat.managers.references`).

``{"first": {"per": ["customer"], "order_by": ["-date"], "where": {...}}}`` holds for the first row of each customer
among those that satisfy ``where``, equals included; ``"per": []`` for the first of all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from gm_chat.managers.api import (
    And,
    Condition,
    FieldInfo,
    FieldType,
    First,
    ManagerInfo,
    ManagerView,
    Not,
    Or,
    Related,
    RelationInfo,
    Where,
)
from gm_chat.managers.meant import UnknownLookupError, UnknownNameError
from gm_chat.managers.periods import bounds_of, is_period, period_in
from gm_chat.managers.references import is_reference, read_reference
from gm_chat.managers.resolve import DATES, match_field, read_keys, read_order, split_path
from gm_chat.managers.spelling import MAX_ALLOWED, match_name, nearest, shown
from gm_chat.managers.values import WrongValueError, called_so, coerce, plain_date
from gm_chat.plugin import ToolError

__all__ = ["FilterLimits", "filter_names", "parse_filters"]

LOOKUPS: Final = (
    *("exact", "iexact", "contains", "icontains", "startswith", "istartswith", "endswith", "iendswith"),
    *("gt", "gte", "lt", "lte", "in", "range", "isnull", "date"),
    *("year", "quarter", "month", "day", "weekday", "hour"),
)
_TEXT: Final = frozenset(lookup for lookup in LOOKUPS if "contains" in lookup or lookup.endswith("with")) | {"iexact"}
_PARTS: Final[Mapping[str, tuple[int, int]]] = {
    "year": (2, 9998),
    "quarter": (1, 4),
    "month": (1, 12),
    "day": (1, 31),
    "weekday": (1, 7),
    "hour": (0, 23),
}
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_COMPARISONS: Final = ("exact", "in", "gt", "gte", "lt", "lte", "range")
_FIRST: Final = ("per", "order_by", "where")
_MOST_KEYS: Final = 6
_LOGIC: Final = frozenset({"and", "or", "not"})
_COMMON: Final[Mapping[str, tuple[str, ...]]] = {"string": ("icontains",), "boolean": (), "uuid": ()}
_HUMP: Final = re.compile(r"_(?=[A-Z])")

Pair = tuple[list[str], Any]
"""What is left of a key, in segments, and its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterLimits:
    """Bounds that hold before anything runs. ``depth`` counts relations and and/or/not alike."""

    depth: int = 8
    conditions: int = 50
    list_length: int = 500


def parse_filters(
    filters: Any, manager: ManagerInfo, view: ManagerView, limits: FilterLimits, *, what: str = "filters"
) -> And:
    """Validate the whole ``filters`` object; every mistake is a ``ToolError`` that names it and what is allowed."""
    if filters is None:
        return And(())
    return _Parser(view, limits, manager).scope(_pairs(filters, what), manager, 0)


def filter_names(manager: ManagerInfo, *, complete: bool = False) -> list[str]:
    """The filters of a manager as a model writes them: each field with its usual lookups, or with all."""
    names = []
    for field in manager.fields:
        usual = _COMMON.get(field.type, ("gte", "lte"))
        names += [field.name] * ("exact" in field.lookups)
        offered = [lookup for lookup in field.lookups if lookup != "exact"]
        names += [f"{field.name}__{lookup}" for lookup in offered if complete or lookup in usual]
    return names


def _pairs(value: Any, name: str) -> list[Pair]:
    if not isinstance(value, Mapping):
        raise ToolError("invalid_argument", f'{name} must be an object such as {{"name": "..."}}, got {shown(value)}')
    pairs = []
    for key, item in value.items():
        if not isinstance(key, str):
            raise ToolError("invalid_argument", f"{name}: the key {shown(key)} is not text")
        pairs.append((split_path(key, "filter"), item))
    return pairs


class _Parser:
    """One parse: counts conditions, so that breadth is bounded as depth is."""

    def __init__(self, view: ManagerView, limits: FilterLimits, root: ManagerInfo) -> None:
        self._view = view
        self._limits = limits
        self._root = root
        self._count = 0

    def scope(self, pairs: Iterable[Pair], manager: ManagerInfo, depth: int) -> And:
        """Parse one object: its own conditions in order, then one :class:`Related` for each relation it names."""
        if depth > self._limits.depth:
            raise ToolError("too_large", f"filters are nested deeper than {self._limits.depth} levels")
        parts: list[Where] = []
        behind: dict[str, list[Pair]] = {}
        fields = {field.name: field for field in manager.fields}
        relations = {relation.name: relation for relation in manager.relations}
        for segments, value in pairs:
            self._tick()
            head = segments[0]
            logic = head.casefold().strip("_")
            if len(segments) == 1 and logic in _LOGIC and head not in fields and head not in relations:
                parts.append(self._logic(logic, value, manager, depth))
                continue
            if segments == ["first"] and match_name("first", [*fields, *relations]) is None:
                parts.append(self._first(value, manager, depth))
                continue
            name, rest = _resolve(segments, manager, fields, relations)
            if name in fields:
                parts.append(self._field(manager, fields[name], rest, value))
            elif (null := _asks_for_null(rest, value)) is not None:
                exists = Related(name, And(()))
                parts.append(Not(exists) if null else exists)
            elif rest and not self._is_lookup(rest, relations[name]):
                behind.setdefault(name, []).append((rest, value))
            else:
                behind.setdefault(name, []).extend(self._nested(manager, relations[name], rest, value))
        for name, inner in behind.items():
            target = self._view.get(relations[name].target)
            if target is None:  # the view never shows a relation to what it hides
                raise _unknown([name], manager)
            found = self.scope(inner, target, depth + 1)
            is_none = bool(found.parts) and self._is_of_none(found, target)
            parts.append(Not(Related(name, And(()))) if is_none else Related(name, found))
        return And(tuple(parts))

    def _is_of_none(self, where: Where, manager: ManagerInfo) -> bool:
        """Whether something is null that never is: then no related row is meant, as in Django."""
        match where:
            case And(parts):
                return all(self._is_of_none(part, manager) for part in parts)
            case Condition((name,), "isnull", True):
                return any(field.name == name and not field.nullable for field in manager.fields)
            case Not(Related(name, And(()))):
                never = {item.name: item for item in manager.relations if not (item.nullable or item.many)}
                return name in never and not self._view.rows_may_be_hidden(never[name].target)
        return False

    def _tick(self) -> None:
        self._count += 1
        if self._count > self._limits.conditions:
            raise ToolError("too_large", f"filters hold more than {self._limits.conditions} conditions")

    def _is_lookup(self, rest: list[str], relation: RelationInfo) -> bool:
        """Whether a key goes on from a relation with a lookup, as in ``material__icontains``."""
        target = self._view.get(relation.target)
        fields, relations = ((), ()) if target is None else (target.fields, target.relations)
        names = [*(item.name for item in fields), *(item.name for item in relations)]
        return len(rest) == 1 and rest[0].casefold() in LOOKUPS and match_name(rest[0], names) is None

    def _nested(self, manager: ManagerInfo, relation: RelationInfo, rest: list[str], value: Any) -> list[Pair]:
        if isinstance(value, Mapping) and value and not rest:
            return _pairs(value, f"filters.{relation.name}")
        lookup = rest[0].casefold() if rest else "icontains" if isinstance(value, str) else "exact"
        target = self._view.get(relation.target)
        fields = [field for field in (target.fields if target is not None else ()) if lookup in field.lookups]
        fields.sort(key=lambda field: field.type != "string")  # what people call a thing by is mostly text
        ending = "" if lookup == "exact" else f"__{lookup}"
        raise ToolError(
            "invalid_value",
            f"{relation.name!r} of {manager.name} is a relation: filter by one of its fields, got {shown(value)}",
            allowed=[f"{relation.name}__{field.name}{ending}" for field in fields[:MAX_ALLOWED]],
        )

    def _logic(self, operator: str, value: Any, manager: ManagerInfo, depth: int) -> Where:
        if operator == "not":
            return Not(self.scope(_pairs(value, "not"), manager, depth + 1))
        if isinstance(value, list | tuple) and value:
            branches = [_pairs(item, operator) for item in value]
        else:
            branches = [[pair] for pair in _pairs(value, operator)]
        if not branches:
            raise ToolError("invalid_argument", f"{operator!r} needs at least one condition")
        parts: list[Where] = []
        for branch in branches:
            self._tick()
            parts.append(self.scope(branch, manager, depth + 1))
        return Or(tuple(parts)) if operator == "or" else And(tuple(parts))

    def _first(self, value: Any, manager: ManagerInfo, depth: int) -> First:
        if not isinstance(value, Mapping) or not {"per", "order_by"} <= value.keys() <= set(_FIRST):
            raise ToolError(
                "invalid_argument",
                'first must be an object such as {"per": ["customer"], "order_by": ["-date"]}, "where" optional; '
                f"got {shown(value)}",
                allowed=list(_FIRST),
            )
        limits = {"depth": self._limits.depth, "most": _MOST_KEYS}
        per = read_keys(value["per"], manager, self._view, **limits, what="first.per")
        order = read_order(value["order_by"], manager, self._view, **limits, what="first.order_by")
        if not order:
            raise ToolError("invalid_argument", 'first.order_by must name a field, such as ["-date"] for the latest')
        where = And(())
        if value.get("where") is not None:
            root, self._root = self._root, manager
            where = self.scope(_pairs(value["where"], "first.where"), manager, depth + 1)
            self._root = root
        return First(per, order, where, ties=True)

    def _field(self, manager: ManagerInfo, field: FieldInfo, rest: list[str], value: Any) -> Where:
        if not field.lookups:
            raise ToolError(
                "unknown_filter",
                f"{field.name!r} of {manager.name} can be selected but not filtered by",
                allowed=nearest(field.name, _filterable(manager)),
            )
        if not rest and isinstance(value, Mapping) and not is_reference(value):
            conditions: list[Where] = []
            for segments, item in _pairs(value, field.name):
                self._tick()
                conditions.append(self._condition(manager, field, segments, item))
            return And(tuple(conditions))
        return self._condition(manager, field, rest, value)

    def _condition(self, manager: ManagerInfo, field: FieldInfo, rest: list[str], value: Any) -> Where:
        lookup = _lookup(manager, field, rest, value)
        name = f"{field.name}__{lookup}" if rest else field.name
        if value is None and lookup == "exact" and "isnull" in field.lookups:
            return Condition((field.name,), "isnull", value=True)
        if is_reference(value):
            scopes = (manager, self._root)
            reference = read_reference(value, field, lookup, scopes, self._view, depth=self._limits.depth)
            return Condition((field.name,), lookup, reference)
        if field.type in DATES and (bounds := bounds_of(field.type, lookup, value)) is not None:
            return And(tuple(Condition((field.name,), other, bound) for other, bound in bounds))
        try:
            parsed = self._value(field, lookup, value, name)
        except ToolError as refused:
            other = self._field_meant(value, field, lookup, manager)
            if other is None:
                raise
            message = f'{refused.message}; to compare with a field, write {{"field": "{other}"}}'
            meant = {"field": other}
            raise WrongValueError(
                refused.code, message, name=name, value=value, meant=meant, **refused.details
            ) from None
        if field.type == "datetime" and lookup == "in" and any(plain_date(item) for item in value):
            return Or(tuple(self._condition(manager, field, [], item) for item in value))
        condition = Condition((field.name,), lookup, parsed)
        if lookup in _TEXT and "in" in field.lookups and (called := called_so(field.choices, lookup, parsed)):
            return Or((condition, Condition((field.name,), "in", called)))
        return condition

    def _field_meant(self, value: Any, field: FieldInfo, lookup: str, manager: ManagerInfo) -> str | None:
        """The other field, where its name stands as the value, or as value or key of an object that holds one."""
        for text in (*value.values(), *value) if isinstance(value, Mapping) and len(value) == 1 else (value,):
            name = (match_field(text, manager) or text) if isinstance(text, str) else text
            with suppress(ToolError):
                scopes = (manager, self._root)
                read_reference({"field": name}, field, lookup, scopes, self._view, depth=self._limits.depth)
                return name
        return None

    def _value(self, field: FieldInfo, lookup: str, value: Any, name: str) -> Any:
        kind: FieldType = field.type
        part, _, comparison = lookup.partition("__")
        if part in _PARTS:
            return self._part(part, comparison or "exact", value, name)
        match lookup:
            case "isnull":
                return coerce(value, "boolean", name=name)
            case "in" | "range":
                items = self._list(lookup, value, name)
                return tuple(coerce(item, kind, name=name, choices=field.choices) for item in items)
            case "exact":
                return coerce(value, kind, name=name, choices=field.choices)
            case "date":
                kind = "date"
            case _ if lookup in _TEXT:
                kind = "string"
        return coerce(value, kind, name=name)

    def _list(self, lookup: str, value: Any, name: str) -> Sequence[Any]:
        if not isinstance(value, list | tuple):
            raise ToolError("invalid_value", f"{name}: expected a list, got {shown(value)}", expected="list")
        if len(value) > self._limits.list_length:
            raise ToolError("too_large", f"{name}: a list of more than {self._limits.list_length} values")
        if lookup == "range" and len(value) != 2:
            raise ToolError("invalid_value", f"{name}: expected a list of two values, first and last")
        return value

    def _part(self, part: str, comparison: str, value: Any, name: str) -> Any:
        if comparison in ("in", "range"):
            return tuple(self._part(part, "exact", item, name) for item in self._list(comparison, value, name))
        if part == "weekday" and isinstance(value, str) and (day := match_name(value.strip(), _DAYS)) is not None:
            return _DAYS.index(day) + 1
        number = coerce(value, "integer", name=name)
        low, high = _PARTS[part]
        if not low <= number <= high:
            raise ToolError("invalid_value", f"{name}: expected {low} to {high}, got {shown(number)}")
        return number


def _lookup(manager: ManagerInfo, field: FieldInfo, rest: list[str], value: Any) -> str:
    """The lookup that the end of a key names. A day is compared with as it is: ``date__gte`` is ``gte``."""
    if len(rest) == 2 and field.type in DATES:
        part, comparison = match_name(rest[0], field.lookups), match_name(rest[1], _COMPARISONS)
        if part is not None and part in _PARTS and comparison is not None:
            return part if comparison == "exact" else f"{part}__{comparison}"
        values = value if isinstance(value, list | tuple) else [value]
        if part == "date" and comparison and all(period_in(field.type, item) for item in values):
            return comparison
    written = "__".join(rest)
    lookup = match_name(written, field.lookups) if rest else "exact"
    if lookup is None or lookup not in field.lookups:
        # Models ask of a date as of its text: {"ordered_on__icontains": "2025-05"}.
        is_equality = written in _TEXT and (
            written == "iexact" or (field.type in DATES and is_period(field.type, value))
        )
        raise UnknownLookupError(
            "unknown_lookup",
            f"{field.name!r} of {manager.name} has no lookup {shown(written)}",
            written=f"{field.name}__{written}",
            meant=field.name if is_equality and "exact" in field.lookups else None,
            allowed=[f"{field.name}__{name}" for name in nearest(written, field.lookups)],
        )
    return lookup


def _resolve(
    segments: list[str],
    manager: ManagerInfo,
    fields: Mapping[str, FieldInfo],
    relations: Mapping[str, RelationInfo],
) -> tuple[str, list[str]]:
    """The field or relation that a key starts with, and what is left of the key."""
    head, rest = segments[0], segments[1:]
    known = [*fields, *relations]
    name = match_name(head, known) or match_field(head, manager)
    if name is not None:
        return name, rest
    if _HUMP.search(head):  # graphene's spelling: album_Title_Icontains
        parts = [part for part in _HUMP.split(head) if part]
        name = match_name(parts[0], known) if parts else None
        if name is not None:
            return name, parts[1:] + rest
    if not rest:
        for lookup in sorted(LOOKUPS, key=len, reverse=True):  # "nameIcontains" must not end in "contains"
            stem = head[: -len(lookup)]
            if stem and head[len(stem) :].casefold() == lookup and (name := match_name(stem, known)) is not None:
                return name, [lookup]
    raise _unknown(segments, manager)


def _unknown(path: list[str], manager: ManagerInfo) -> ToolError:
    problem = f"{manager.name} has no field or relation {shown(path[0])} to filter by"
    allowed = nearest(path[0], _filterable(manager))
    return UnknownNameError("unknown_filter", problem, manager=manager, path=path, allowed=allowed)


def _filterable(manager: ManagerInfo) -> list[str]:
    return [field.name for field in manager.fields if field.lookups] + [item.name for item in manager.relations]


def _asks_for_null(rest: list[str], value: Any) -> bool | None:
    """For a key that ends at a relation: whether "no row" is asked for; ``None`` if it asks something else."""
    if not rest and value is None:
        return True
    if len(rest) == 1 and rest[0].casefold() == "isnull":
        return bool(coerce(value, "boolean", name="isnull"))
    return None
