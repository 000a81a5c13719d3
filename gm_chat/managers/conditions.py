"""The conditions in a filter: found with the fields that they are about, exchanged, dropped and added.

A filter stays what its types say: a condition's path begins at the relation that holds it, and what is said of one
related row stands within one :class:`~gm_chat.managers.api.Related`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from gm_chat.managers.api import And, Condition, First, Not, Or, Related

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gm_chat.managers.api import FieldInfo, ManagerInfo, ManagerView, Path, Where

__all__ = ["Found", "added", "conditions_of", "dropped", "exchanged", "names_of"]


@dataclass(frozen=True, slots=True)
class Found:
    """A condition, the field that it is about, and where that lies.

    ``path`` leads from the filter's own manager to the field, ``owner`` is the manager that has it. ``is_required``
    says that no row satisfies the filter without satisfying this.
    """

    condition: Condition
    field: FieldInfo
    owner: str
    path: Path
    is_required: bool


def conditions_of(
    where: Where, manager: str, view: ManagerView, path: Path = (), *, is_required: bool = True
) -> Iterator[Found]:
    """All conditions but those under ``not``, which exclude rows."""
    match where:
        case And(parts) | Or(parts):
            is_required = is_required and isinstance(where, And)
            for part in parts:
                yield from conditions_of(part, manager, view, path, is_required=is_required)
        case Related(relation, part):
            target = _behind((relation,), manager, view)
            if target is not None:
                yield from conditions_of(part, target.name, view, (*path, relation), is_required=is_required)
        case Condition((*hops, name)):
            owner = _behind(tuple(hops), manager, view)
            if owner is not None:
                for field in owner.fields:
                    if field.name == name:
                        yield Found(where, field, owner.name, (*path, *where.path), is_required)
        case First():
            yield from conditions_of(where.where, manager, view, path, is_required=False)
        case Condition() | Not():
            return
        case _:
            assert_never(where)


def exchanged(where: And, condition: Condition, other: Condition) -> And:
    """The same filter with another condition in the place of one that is not under ``not``."""

    def walk(part: Where) -> Where:
        match part:
            case Condition():
                return other if part is condition else part
            case And():
                return exchanged(part, condition, other)
            case Or(parts):
                return Or(tuple(map(walk, parts)))
            case Related(relation, inner):
                return Related(relation, walk(inner))
            case First():
                return dataclasses.replace(part, where=exchanged(part.where, condition, other))
            case Not():
                return part
            case _:
                assert_never(part)

    return And(tuple(map(walk, where.parts)))


def dropped(where: And, condition: Condition) -> And:
    """The same filter without a condition that it requires, and without the relations that led to nothing else."""
    parts: list[Where] = []
    for part in where.parts:
        match part:
            case Condition() if part is condition:
                continue
            case And():
                parts.extend(dropped(part, condition).parts)
            case Related(relation, And() as inner):
                rest = dropped(inner, condition)
                if rest.parts or not inner.parts:
                    parts.append(Related(relation, rest))
            case _:
                parts.append(part)
    return And(tuple(parts))


def added(where: And, path: Path, lookup: str, value: object) -> And:
    """The same filter with one more condition, about the related row that the filter speaks of already, if any."""
    if len(path) == 1:
        return And((*where.parts, Condition(path, lookup, value)))
    relation, *rest = path
    parts = list(where.parts)
    for index, part in enumerate(parts):
        if isinstance(part, Related) and part.relation == relation and isinstance(part.part, And):
            parts[index] = Related(relation, added(part.part, tuple(rest), lookup, value))
            return And(tuple(parts))
    return And((*parts, Related(relation, added(And(()), tuple(rest), lookup, value))))


def names_of(where: Where) -> list[str]:
    """The fields that a filter is about, as paths from its own manager, each once."""
    match where:
        case Condition(path):
            found = ["__".join(path)]
        case And(parts) | Or(parts):
            found = [name for part in parts for name in names_of(part)]
        case Related(relation, part):
            found = [f"{relation}__{name}" for name in names_of(part)] or [relation]
        case Not(part):
            found = names_of(part)
        case First():
            found = ["first"]
        case _:
            assert_never(where)
    return list(dict.fromkeys(found))


def _behind(hops: Path, manager: str, view: ManagerView) -> ManagerInfo | None:
    info = view.get(manager)
    for hop in hops:
        target = next((item.target for item in info.relations if item.name == hop), None) if info is not None else None
        info = view.get(target) if target is not None else None
    return info
