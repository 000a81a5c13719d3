"""Names that a model wrote, in what an actor sees: managers, relations, and fields through relations.

What the actor may not see is answered exactly like what does not exist.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from gm_chat.managers.spelling import match_name, nearest, shown
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from gm_chat.managers.api import FieldInfo, ManagerInfo, ManagerView, Path, RelationInfo

__all__ = ["find_manager", "find_relation", "sortable_fields", "split_path", "to_one_path"]

_SEPARATOR: Final = re.compile(r"__|\.")
_MAX_KEY: Final = 500


def split_path(text: str, what: str) -> list[str]:
    """``album__title`` and ``album.title`` in segments."""
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
        raise ToolError("unknown_manager", f"there is no manager {shown(name)}", allowed=nearest(name, names))
    return found


def find_relation(name: str, manager: ManagerInfo, view: ManagerView) -> tuple[RelationInfo, ManagerInfo]:
    """The visible relation of that name and the manager that it leads to."""
    relations = {relation.name: relation for relation in manager.relations}
    match = match_name(name, relations)
    target = view.get(relations[match].target) if match is not None else None
    if match is None or target is None:
        raise ToolError(
            "unknown_relation",
            f"{manager.name} has no relation {shown(name)}",
            allowed=nearest(name, relations),
        )
    return relations[match], target


def to_one_path(text: str, manager: ManagerInfo, view: ManagerView, *, depth: int, what: str) -> tuple[Path, FieldInfo]:
    """A stored field with an order, through relations of which each leads to one row: its path, and itself."""
    *hops, last = split_path(text, what)
    if len(hops) > depth:
        raise ToolError("too_large", f"{what} goes through more than {depth} relations")
    path: list[str] = []
    for hop in hops:
        relation, target = find_relation(hop, manager, view)
        if relation.many:
            raise ToolError(
                "invalid_argument",
                f"{what} {shown(text)}: {relation.name!r} of {manager.name} holds many rows, not one value",
                allowed=sortable_fields(manager),
            )
        path.append(relation.name)
        manager = target
    fields = {item.name: item for item in manager.fields}
    name = match_name(last, fields)
    if name is None:
        raise ToolError(
            "unknown_field",
            f"{what}: {manager.name} has no field {shown(last)}",
            allowed=nearest(last, sortable_fields(manager)),
        )
    if name not in sortable_fields(manager):
        raise ToolError("invalid_argument", f"{what}: {name!r} has no order", allowed=sortable_fields(manager))
    return (*path, name), fields[name]


def sortable_fields(manager: ManagerInfo) -> list[str]:
    """Fields that have an order: stored, and no JSON or binary."""
    return [info.name for info in manager.fields if not info.computed and info.type not in ("json", "binary")]
