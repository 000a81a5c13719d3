"""The naive counterpart of the executors: instances, ``getattr`` and loops, and what makes random arguments for both.

It knows nothing of the executors: it asks each instance for its relations and decides in Python who may see what.
"""

from __future__ import annotations

import uuid
from calendar import monthrange
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ObjectDoesNotExist
from django.db import connections
from django.utils import timezone

from gm_chat.encoding import jsonable
from gm_chat.managers.api import (
    And,
    Condition,
    FieldInfo,
    FieldReference,
    First,
    ManagerInfo,
    Not,
    Or,
    Order,
    QueryPlan,
    Related,
    Selection,
    Where,
)
from testproject.texts import TEXT_LOOKUPS, Text

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    from django.db.models import QuerySet

    from gm_chat.managers.binding import Binding, VisibleTo
    from testproject.desk import Desk

_NUMBERS, _DATES = ("integer", "number", "decimal"), ("date", "datetime")

__all__ = ["REMOVABLE", "RULES", "Asking", "Walk", "compare", "compare_fields", "hiding", "part_of"]

RULES: Mapping[str, Callable[[QuerySet[Any]], QuerySet[Any]]] = {
    "PartManager": lambda rows: rows.filter(tags__isnull=False),  # a join that doubles rows
    "MaterialManager": lambda rows: rows.exclude(name="material 1"),
    "SupplierManager": lambda rows: rows.filter(rating__gte=2) | rows.filter(rating=None),
    "TagManager": lambda rows: rows.filter(name__in=["tag 0", "tag 2", "tag 4"]),
    "ProjectManager": lambda rows: rows.filter(lines__quantity__gte=2).distinct(),
    "SpecificationManager": lambda rows: rows.filter(tolerance__isnull=False),
    "EmployeeManager": lambda rows: rows.order_by("-name")[:5],
    "NoteManager": lambda rows: rows.exclude(text=""),
    "PlacementManager": lambda rows: rows.filter(quantity__gt=3),
    "AnnouncementManager": lambda rows: rows.none(),
}


REMOVABLE: Mapping[str, Callable[[QuerySet[Any]], QuerySet[Any]]] = {
    **{name: RULES[name] for name in ("SupplierManager", "TagManager", "SpecificationManager", "NoteManager")},
    "PlacementManager": RULES["PlacementManager"],
    "BomLineManager": lambda rows: rows.filter(quantity__gte=2),  # joins projects and parts
}
"""Rules whose hidden rows can be deleted without a row that is shown going with them."""


def hiding(
    bindings: Mapping[str, Binding], rules: Mapping[str, Callable[[QuerySet[Any]], QuerySet[Any]]] = RULES
) -> dict[str, Binding]:
    """The same managers, each with a rule of its own about rows."""

    def rule(name: str) -> VisibleTo | None:
        return (lambda rows, actor: rules[name](rows)) if name in rules else bindings[name].visible_to

    return {name: replace(binding, visible_to=rule(name)) for name, binding in bindings.items()}


class Walk:
    """The same answer by hand: instances, ``getattr``, loops."""

    def __init__(self, desk: Desk) -> None:
        self.bindings, self.actor = desk.bindings, desk.actor
        self.visible: dict[str, list[Any]] = {}
        self._firsts: dict[int, tuple[set[Any], First]] = {}
        for name, binding in desk.bindings.items():
            rows = binding.model._default_manager.all()
            rows = binding.visible_to(rows, desk.actor) if binding.visible_to else rows
            self.visible[name] = sorted(set(rows), key=_pk)
        self.keys = {name: {row.pk for row in rows} for name, rows in self.visible.items()}

    def run(self, plan: QueryPlan) -> tuple[list[Any], int]:
        rows = [row for row in self.visible[plan.manager] if self.holds(plan.where, row, plan.manager)]
        rows = self.ordered(rows, plan.order, plan.manager)
        page = rows[plan.offset : plan.offset + plan.limit]
        return [self.render(row, plan.selection, plan.manager) for row in page], len(rows)

    def ordered(self, rows: list[Any], order: Sequence[Order], manager: str) -> list[Any]:
        for term in reversed(order):
            values = {id(row): self.at(row, term.path, manager) for row in rows}
            known = [row for row in rows if values[id(row)] is not None]
            known.sort(key=lambda row: values[id(row)], reverse=term.descending)  # keeps the order of equals
            rows = known + [row for row in rows if values[id(row)] is None]
        return rows

    def related(self, row: Any, name: str, manager: str) -> list[Any]:
        relation = self.bindings[manager].relations[name]
        member = row._meta.get_field(relation.query_name)
        accessor = member.get_accessor_name() if member.auto_created and not member.concrete else member.name
        try:
            found = getattr(row, accessor)
        except ObjectDoesNotExist:
            found = None
        rows = set(found.all()) if relation.kind == "to_many" else {found} - {None}
        if relation.through and all(self.bindings[name].visible_to for name in relation.through):
            rows &= self.joined(row, member, relation.through)
        return sorted((item for item in rows if item.pk in self.keys[relation.target]), key=_pk)

    def joined(self, row: Any, member: Any, through: Sequence[str]) -> set[Any]:
        """What the visible rows of a through model join with the row."""
        forward = member if hasattr(member, "m2m_field_name") else member.field
        near, far = forward.m2m_field_name(), forward.m2m_reverse_field_name()
        if forward is not member:
            near, far = far, near
        pairs = [pair for name in through for pair in self.visible[name]]
        return {getattr(pair, far) for pair in pairs if getattr(pair, near) == row}

    def value(self, row: Any, name: str, manager: str) -> Any:
        binding = self.bindings[manager]
        if name in binding.computed:
            return binding.computed[name].compute(row, self.actor)
        return getattr(row, binding.columns[name])

    def at(self, row: Any, path: tuple[str, ...], manager: str) -> Any:
        for hop in path[:-1]:
            found = self.related(row, hop, manager)
            if not found:
                return None
            row, manager = found[0], self.bindings[manager].relations[hop].target
        value = self.value(row, path[-1], manager)
        if isinstance(value, str):
            return Text(value, row._state.db)
        return value.hex if hasattr(value, "hex") and not isinstance(value, float | bytes) else value

    def render(self, row: Any, selection: Selection, manager: str) -> dict[str, Any]:
        out = {name: jsonable(self.value(row, name, manager)) for name in selection.fields}
        for inner in selection.relations:
            relation = self.bindings[manager].relations[inner.name]
            found = [
                self.render(item, inner.selection, relation.target) for item in self.related(row, inner.name, manager)
            ]
            out[inner.name] = found if relation.kind == "to_many" else next(iter(found), None)
        return out

    def holds(self, where: Where, row: Any, manager: str, outer: tuple[Any, str] | None = None) -> bool:
        """Whether the condition holds for the row; ``outer`` is the row that all of it is about, and its manager."""
        outer = outer or (row, manager)
        match where:
            case And(parts):
                return all(self.holds(part, row, manager, outer) for part in parts)
            case Or(parts):
                return any(self.holds(part, row, manager, outer) for part in parts)
            case Not(part):
                return not self.holds(part, row, manager, outer)
            case Related(name, part):
                target = self.bindings[manager].relations[name].target
                return any(self.holds(part, item, target, outer) for item in self.related(row, name, manager))
            case First():
                return row.pk in self.firsts(where, manager)
            case Condition((name,), lookup, FieldReference() as other):
                holder = outer if other.outer else (row, manager)
                right = shifted(self.at(holder[0], other.path, holder[1]), other.plus)
                return compare_fields(self.value(row, name, manager), lookup, right, other.part)
            case Condition((name,), lookup, value):
                return compare(self.value(row, name, manager), lookup, value)
        raise AssertionError(where)

    def firsts(self, first: First, manager: str) -> set[Any]:
        """The keys of the rows that come first among their likes; with ties there may be several of each kind."""
        if id(first) not in self._firsts:
            likes: dict[tuple[Any, ...], list[Any]] = {}
            for row in self.visible[manager]:
                if self.holds(first.where, row, manager):
                    kind = tuple(part_of(self.at(row, key.path, manager), key.part) for key in first.per)
                    likes.setdefault(kind, []).append(row)
            found = set()
            for unordered in likes.values():
                rows = self.ordered(unordered, first.order, manager)
                places = [[self.at(row, term.path, manager) for term in first.order] for row in rows]
                tied = zip(rows, places, strict=True)
                found |= {row.pk for row, place in tied if (place == places[0] if first.ties else row is rows[0])}
            self._firsts[id(first)] = found, first  # kept, so that no other takes its id
        return self._firsts[id(first)][0]


def compare(actual: Any, lookup: str, value: Any) -> bool:
    if lookup == "isnull":
        return (actual is None) is value
    if actual is None:
        return False
    if isinstance(actual, datetime):
        actual = timezone.localtime(actual)
    if isinstance(actual, str | Text):
        text = actual if isinstance(actual, Text) else Text(actual)
        if lookup in TEXT_LOOKUPS:
            return text.matches(lookup, str(value))
        actual = text
        value = (
            tuple(map(Text, value)) if isinstance(value, tuple) else Text(value) if isinstance(value, str) else value
        )
    name, _, comparison = lookup.partition("__")
    if name in ("year", "quarter", "month", "day", "weekday", "hour"):
        number = {"quarter": lambda: (actual.month + 2) // 3, "weekday": actual.isoweekday}.get(
            name, lambda: getattr(actual, name)
        )()
        return compare(number, comparison or "exact", value)
    match lookup:
        case "exact":
            return bool(actual == value)
        case "in":
            return bool(actual in value)
        case "range":
            return bool(value[0] <= actual <= value[1])
        case "gt" | "gte" | "lt" | "lte":
            ordered = {"gt": actual > value, "gte": actual >= value, "lt": actual < value, "lte": actual <= value}
            return bool(ordered[lookup])
        case "date":
            return bool(actual.date() == value)
    raise AssertionError(lookup)


def compare_fields(actual: Any, lookup: str, other: Any, part: str | None = None) -> bool:
    """A date and a moment compare by the day; with ``part`` by that part of both, which is the lookup's name too."""
    if other is None or actual is None:
        return False
    if part is not None:
        numbers = [getattr(timezone.localtime(v) if isinstance(v, datetime) else v, part) for v in (actual, other)]
        return bool(numbers[0] == numbers[1])
    if (
        isinstance(actual, date)
        and isinstance(other, date)
        and isinstance(actual, datetime) != isinstance(other, datetime)
    ):
        actual, other = (timezone.localtime(v).date() if isinstance(v, datetime) else v for v in (actual, other))
    return compare(actual, lookup, other)


def shifted(value: Any, plus: tuple[int, str] | None) -> Any:
    """A date or a moment, so many units later; in a month that is too short, its last day."""
    if value is None or plus is None:
        return value
    count, unit = plus
    if unit not in ("month", "year"):
        return value + timedelta(**{f"{unit}s": count})
    year, month = divmod(value.year * 12 + value.month - 1 + count * (12 if unit == "year" else 1), 12)
    return value.replace(year=year, month=month + 1, day=min(value.day, monthrange(year, month + 1)[1]))


def part_of(value: Any, part: str | None) -> Any:
    """What a group's column shows of a value."""
    if value is None or part is None:
        return value
    if isinstance(value, datetime):
        value = timezone.localtime(value)
    if part == "hour":
        return value.replace(minute=0, second=0, microsecond=0)
    if part == "hour_of_day":
        return value.hour
    day = value.date() if isinstance(value, datetime) else value
    numbers = {"year": day.year, "weekday": day.isoweekday(), "month_of_year": day.month, "day_of_month": day.day}
    if part in numbers:
        return numbers[part]
    match part:
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return date(day.year, (day.month - 1) // 3 * 3 + 1, 1)
    return day


def _pk(row: Any) -> Any:
    if not isinstance(row.pk, uuid.UUID):
        return row.pk
    # MariaDB compares UUIDs from their last group to their first.
    return str(row.pk).split("-")[::-1] if connections[row._state.db].vendor == "mysql" else row.pk.hex


class Asking:
    """Makes arguments as a model would write them, of what the actor sees, with values that occur."""

    def __init__(self, desk: Desk, random_: random.Random) -> None:
        self.view, self.random, self.bindings = desk.view, random_, desk.bindings
        self.vendor = connections[desk.alias].vendor

    def fields(self, info: ManagerInfo, depth: int) -> list[Any]:
        names = [field.name for field in info.fields]
        chosen: list[Any] = self.random.choice([["*"], self.random.sample(names, self.random.randint(1, len(names)))])
        chosen = list(chosen)
        for relation in info.relations:
            if depth and self.random.random() < 0.35:
                target = self.view.get(relation.target)
                assert target is not None
                if self.random.random() < 0.3:
                    chosen.append(f"{relation.name}__{self.random.choice(target.fields).name}")
                else:
                    chosen.append({relation.name: self.fields(target, depth - 1)})
        self.random.shuffle(chosen)
        return chosen

    def order(self, info: ManagerInfo) -> list[str] | None:
        terms = []
        for _ in range(self.random.randint(0, 2)):
            path, at = self.one_path(info)
            # MariaDB has an order of its own for UUIDs.
            odd = {"json", "binary"} | ({"uuid"} if self.vendor == "mysql" else set())
            names = [f.name for f in at.fields if not f.computed and f.type not in odd]
            terms.append(self.random.choice(["", "-"]) + path + self.random.choice(names))
        return terms or None

    def order_and_first(self, info: ManagerInfo) -> dict[str, Any]:
        order = self.order(info)
        per = [field.name for field in info.fields if field.type in ("string", "boolean", "integer", "date")]
        first = [self.random.choice(per)] if order and self.random.random() < 0.2 else None
        return {"order_by": order, "first_per": first}

    def filters(self, info: ManagerInfo, depth: int, root: ManagerInfo | None = None) -> dict[str, Any]:
        filters: dict[str, Any] = {}
        root = root or info
        for _ in range(self.random.randint(0, 2)):
            kind = self.random.random()
            if kind < 0.45 or not depth:
                fields = [field for field in info.fields if field.lookups]
                field = self.random.choice(fields)
                if self.random.random() < 0.2 and (other := self.reference(field, info)):
                    filters |= other
                    continue
                lookup = self.random.choice(field.lookups)
                filters[f"{field.name}__{lookup}"] = self.value_for(info, field.name, field.type, lookup)
            elif kind < 0.75 and info.relations:
                relation = self.random.choice(info.relations)
                target = self.view.get(relation.target)
                assert target is not None
                filters[relation.name] = self.filters(target, depth - 1, root) or None
                if filters[relation.name] is not None and self.random.random() < 0.3:
                    filters[relation.name] |= self.outer(target, root)
            elif kind < 0.85:
                per = [field.name for field in info.fields if field.type in ("string", "boolean", "integer")]
                first: dict[str, Any] = {"per": self.random.sample(per, min(len(per), self.random.randint(0, 2)))}
                first["order_by"] = [*(self.order(info) or []), self.random.choice(per)]
                first["where"] = self.random.choice([None, self.filters(info, depth - 1)])
                filters["first"] = first
            else:
                inner = [self.filters(info, depth - 1, root) for _ in range(2)]
                operator = self.random.choice(["and", "or", "not"])
                filters[operator] = inner[0] if operator == "not" else inner
        return filters

    def reference(self, field: FieldInfo, info: ManagerInfo) -> dict[str, Any]:
        """A comparison with another field of the row, or of one that it is related to."""
        path, at = self.one_path(info)
        kinds: tuple[str, ...] = next((each for each in (_NUMBERS, _DATES) if field.type in each), (field.type,))
        others = [other for other in at.fields if other.type in kinds and not other.computed and other.lookups]
        if field.type in ("boolean", "json", "binary", "uuid") or not others:
            return {}
        other = self.random.choice(others)
        value: dict[str, Any] = {"field": path + other.name}
        if field.type in _DATES and self.random.random() < 0.3:
            part = self.random.choice(["year", "month", "day"])
            return {f"{field.name}__{part}": {"field": f"{path}{other.name}__{part}"}}
        if other.type in _DATES and self.random.random() < 0.5:
            value["plus"] = self.random.choice(["1 month", "-1 year", "30 days", "-2 weeks", "1 quarter"])
        return {f"{field.name}__{self.random.choice(['exact', 'gt', 'gte', 'lt', 'lte'])}": value}

    def one_path(self, info: ManagerInfo) -> tuple[str, ManagerInfo]:
        """Through relations that lead to one row: a prefix, and the manager behind it."""
        path, at = "", info
        while one := [item for item in at.relations if not item.many and self.random.random() < 0.4]:
            path += f"{one[0].name}__"
            at = self.view.get(one[0].target) or at
            if path.count("__") > 2:
                break
        return path, at

    def outer(self, info: ManagerInfo, root: ManagerInfo) -> dict[str, Any]:
        """A comparison with a field of the row that the filters are about."""
        for field in self.random.sample(info.fields, len(info.fields)):
            kinds = next((each for each in (_NUMBERS, _DATES) if field.type in each), ())
            others = [other.name for other in root.fields if other.type in kinds and not other.computed]
            if others and not field.computed:
                lookup = self.random.choice(["exact", "gt", "gte", "lt", "lte"])
                return {f"{field.name}__{lookup}": {"outer": self.random.choice(others)}}
        return {}

    def value_for(self, info: ManagerInfo, name: str, kind: str, lookup: str) -> Any:
        if lookup == "isnull":
            return self.random.choice([True, False])
        if lookup in ("in", "range"):
            values = [self.one(info, name) for _ in range(2)]
            return sorted(values) if lookup == "range" else values
        value = self.one(info, name)
        if lookup in ("year", "month", "day"):
            return int(value.split("T")[0].split("-")[("year", "month", "day").index(lookup)])
        if lookup in ("quarter", "weekday", "hour"):
            return self.random.randint(1, 4)
        if lookup == "date":
            return value.split("T")[0]
        if kind == "string" and lookup not in ("exact", "in", "gt", "gte", "lt", "lte", "iexact"):
            return value[: self.random.randint(0, 3)]
        if kind == "decimal" and self.random.random() < 0.3:
            return str(Decimal(value) - Decimal("0.004"))
        return value

    def one(self, info: ManagerInfo, name: str) -> Any:
        binding = self.bindings[info.name]
        column = binding.columns[name]
        values = [getattr(row, column) for row in binding.model._default_manager.all()[:20]]
        known = [jsonable(value) for value in values if value is not None]
        fallback = {
            "decimal": "1.00",
            "integer": 1,
            "number": 1.0,
            "date": "2024-01-01",
            "datetime": "2024-01-01T00:00:00Z",
        }
        kind = next(field.type for field in info.fields if field.name == name)
        return self.random.choice(known) if known else fallback.get(kind, "x")
