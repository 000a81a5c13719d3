"""Names that a model wrote, in what an actor sees: managers, relations, and fields through relations.

What the actor may not see is answered exactly like what does not exist.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from gm_chat.managers.api import DatePart, Key, Order
from gm_chat.managers.meant import UnknownManagerError, UnknownNameError, manager_meant
from gm_chat.managers.spelling import match_name, nearest, shown
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gm_chat.managers.api import FieldInfo, FieldType, ManagerInfo, ManagerView, Path, RelationInfo

__all__ = [
    "DATES",
    "Place",
    "find_manager",
    "find_relation",
    "match_field",
    "read_key",
    "read_keys",
    "read_order",
    "sortable_fields",
    "split_path",
    "to_one_path",
    "type_of_part",
    "walk",
]

DATES: Final = frozenset({"date", "datetime"})
_SEPARATOR: Final = re.compile(r"__|\.")
_MAX_KEY: Final = 500
_PARTS: Final = frozenset(get_args(DatePart))
_NUMBERS: Final = frozenset({"year", "weekday", "month_of_year", "day_of_month", "hour_of_day"})
_OF_MOMENTS: Final = frozenset({"hour", "hour_of_day"})


def split_path(text: str, what: str) -> list[str]:
    """``album__title`` and ``album.title`` in segments."""
    if "(" in text:
        raise ToolError(
            "invalid_argument",
            f"{what} {shown(text)} is a formula, where a name is expected: formulas are measures of aggregate",
        )
    segments = _SEPARATOR.split(text) if len(text) <= _MAX_KEY else []
    if not all(segments) or not segments:
        raise ToolError("invalid_argument", f"{what} {shown(text)} is not a name or a path such as relation__name")
    return segments


def find_manager(name: Any, view: ManagerView, argument: str = "manager") -> ManagerInfo:
    """The visible manager of that name; ``track`` finds ``TrackManager`` if nothing else is as near."""
    if not isinstance(name, str):
        raise ToolError("invalid_argument", f"{argument} must be a manager's name, got {shown(name)}")
    found = view.get(name)
    if found is not None:
        return found
    names = [manager.name for manager in view]
    match = match_name(name, names) or match_name(f"{name}Manager", names)
    found = view.get(match) if match is not None else None
    if found is None:
        raise UnknownManagerError(
            "unknown_manager",
            f"there is no manager {shown(name)}",
            written=name,
            meant=manager_meant(name, view),
            allowed=nearest(name, names),
        )
    return found


def find_relation(name: str, manager: ManagerInfo, view: ManagerView, *rest: str) -> tuple[RelationInfo, ManagerInfo]:
    """The visible relation of that name and the manager that it leads to; ``rest`` is what is asked for there."""
    relations = {relation.name: relation for relation in manager.relations}
    match = match_name(name, relations)
    target = view.get(relations[match].target) if match is not None else None
    if match is None or target is None:
        raise UnknownNameError(
            "unknown_relation",
            f"{manager.name} has no relation {shown(name)}",
            manager=manager,
            path=[name, *rest],
            allowed=nearest(name, relations),
        )
    return relations[match], target


def to_one_path(text: str, manager: ManagerInfo, view: ManagerView, *, depth: int, what: str) -> tuple[Path, FieldInfo]:
    """A stored field with an order, through relations of which each leads to one row: its path, and itself."""
    *hops, last = split_path(text, what)
    if len(hops) > depth:
        raise ToolError("too_large", f"{what} goes through more than {depth} relations")
    path: list[str] = []
    for position, hop in enumerate(hops, 1):
        relation, target = find_relation(hop, manager, view, *hops[position:], last)
        if relation.many:
            raise ToolError(
                "invalid_argument",
                f"{what} {shown(text)}: {relation.name!r} of {manager.name} holds many rows, not one value; "
                f"aggregate computes one of them, such as max({text[:60]})",
                allowed=sortable_fields(manager),
            )
        path.append(relation.name)
        manager = target
    fields = {item.name: item for item in manager.fields}
    name = match_field(last, manager)
    if name is None:
        raise UnknownNameError(
            "unknown_field",
            f"{what}: {manager.name} has no field {shown(last)}",
            manager=manager,
            path=[last],
            allowed=nearest(last, sortable_fields(manager)),
        )
    if name not in sortable_fields(manager):
        raise ToolError("invalid_argument", f"{what}: {name!r} has no order", allowed=sortable_fields(manager))
    return (*path, name), fields[name]


def match_field(name: str, manager: ManagerInfo) -> str | None:
    """The field of that name; ``id`` and ``pk`` are also what identifies a row, whatever that is called."""
    found = match_name(name, [item.name for item in manager.fields])
    if found is None and name in ("id", "pk") and name not in [item.name for item in manager.relations]:
        found = next((item.name for item in manager.fields if item.key), None)
    return found


def sortable_fields(manager: ManagerInfo) -> list[str]:
    """Fields that have an order: stored, and no JSON or binary."""
    return [info.name for info in manager.fields if not info.computed and info.type not in ("json", "binary")]


def read_order(
    value: Any, manager: ManagerInfo, view: ManagerView, *, depth: int, most: int, what: str = "order_by"
) -> tuple[Order, ...]:
    """``["-price", "supplier__name"]`` or one such text; the same field twice counts once."""
    if value is None:
        return ()
    terms = [value] if isinstance(value, str) else value
    if not isinstance(terms, list | tuple):
        raise ToolError("invalid_argument", f'{what} must be a list such as ["-price"], got {shown(value)}')
    if len(terms) > most:
        raise ToolError("too_large", f"{what} holds more than {most} terms")
    found: dict[Path, Order] = {}
    for term in terms:
        if not isinstance(term, str):
            raise ToolError("invalid_argument", f'{what}: {shown(term)} is not a field such as "name" or "-price"')
        path, _ = to_one_path(term.removeprefix("-"), manager, view, depth=depth, what=what)
        found.setdefault(path, Order(path, term.startswith("-")))
    return tuple(found.values())


# --- places: also to-many relations, and parts of dates -----------------------------------------------------------


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

    def value(self) -> FieldInfo | None:
        """The field, or for a relation to one row that row's id; none if that cannot be grouped by or computed with."""
        found = self.field
        if found is None and self.many is None:
            found = next((item for item in self.manager.fields if item.key), None)
        return found if found is not None and found.name in sortable_fields(self.manager) else None


def walk(text: str, manager: ManagerInfo, view: ManagerView, *, depth: int, what: str) -> Place:
    """Follow a path up to a field, or up to the first to-many relation."""
    segments = split_path(text, what)
    if len(segments) - 1 > depth + 1:
        raise ToolError("too_large", f"{what} {shown(text)} goes through more than {depth} relations")
    hops: list[str] = []
    for position, segment in enumerate(segments):
        fields = {item.name: item for item in manager.fields}
        name = match_field(segment, manager)
        rest = tuple(segments[position + 1 :])
        if name is not None and (not rest or fields[name].type in DATES):
            return Place(tuple(hops), None, (), manager, fields[name], _part(rest, fields[name], what))
        relations = {item.name: item for item in manager.relations}
        if match_name(segment, relations) is None:
            known = [*fields, *relations] if not rest else list(relations)
            if len(rest) == 1 and rest[0] in _PARTS:  # a date was meant
                known = [f"{item.name}__{rest[0]}" for item in manager.fields if item.type in DATES] or known
            raise UnknownNameError(
                "unknown_field",
                f"{what}: {manager.name} has no {'field' if not rest else 'relation'} {shown(segment)}",
                manager=manager,
                path=[segment, *rest],
                allowed=nearest(segment, known),
            )
        relation, target = find_relation(segment, manager, view)
        hops.append(relation.name)
        if relation.many:
            return Place(tuple(hops), relation.name, rest, target, None)
        manager = target
    return Place(tuple(hops), None, (), manager, None)


def read_key(text: str, manager: ManagerInfo, view: ManagerView, *, depth: int, what: str) -> tuple[Key, FieldInfo]:
    """What rows are grouped by, and its field: a path to a field, to a part of a date, or to a relation: its id."""
    place = walk(text, manager, view, depth=depth, what=what)
    if place.many is not None:
        raise ToolError(
            "invalid_argument",
            f"{what} {shown(text)}: {place.many!r} holds many rows of {place.manager.name}; "
            f"ask {place.manager.name} instead, and group by its own fields or those of {manager.name}",
        )
    found = place.value()
    if found is None:
        wanted = f"{place.field.name!r} cannot be grouped by" if place.field else "name a field, not a relation"
        prefix = "".join(f"{hop}__" for hop in place.hops)
        allowed = [f"{prefix}{name}" for name in sortable_fields(place.manager)]
        raise ToolError("invalid_argument", f"{what} {shown(text)}: {wanted}", allowed=allowed[:20])
    return Key((*place.hops, found.name), place.part), found


def type_of_part(part: DatePart | None, kind: FieldType) -> FieldType:
    """The type of a part of a ``kind``; of no part, that itself."""
    if part is None:
        return kind
    return "integer" if part in _NUMBERS else "datetime" if part == "hour" else "date"


def read_keys(
    value: Any, manager: ManagerInfo, view: ManagerView, *, depth: int, most: int, what: str
) -> tuple[Key, ...]:
    """``["customer", "date__month"]`` or one such text; the same twice counts once."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        raise ToolError("invalid_argument", f'{what} must be a list such as ["name"], got {shown(value)}')
    if len(items) > most:
        raise ToolError("too_large", f"{what} holds more than {most} fields")
    found: dict[Key, None] = {}
    for item in items:
        if not isinstance(item, str):
            raise ToolError("invalid_argument", f'{what}: {shown(item)} is not a field such as "customer__state"')
        found[read_key(item, manager, view, depth=depth, what=what)[0]] = None
    return tuple(found)


def _part(rest: Sequence[str], field: FieldInfo, what: str) -> DatePart | None:
    if not rest:
        return None
    if len(rest) == 1 and rest[0].lower() in _PARTS:
        part = cast("DatePart", rest[0].lower())
        if part not in _OF_MOMENTS or field.type == "datetime":
            return part
    raise ToolError(
        "invalid_argument",
        f"{what}: {field.name!r} has no part {shown('__'.join(rest))}",
        allowed=sorted(_PARTS - (_OF_MOMENTS if field.type == "date" else frozenset())),
    )
