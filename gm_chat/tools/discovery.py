"""``search_managers``, ``get_manager_schema`` and ``find_path``: what there is, as the actor may see it."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Final

from gm_chat.encoding import jsonable
from gm_chat.managers.filters import filter_names
from gm_chat.managers.resolve import find_manager
from gm_chat.plugin import ToolContext, ToolDefinition, ToolError, ToolSpec
from gm_chat.tools.arguments import checked, flag, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gm_chat.managers.api import FieldInfo, InputInfo, ManagerInfo, ManagerView, Path

__all__ = ["find_path", "get_manager_schema", "search_managers"]

MAX_SUMMARIES: Final = 10
MAX_PATHS: Final = 5
MAX_REASON: Final = 60
"""How many characters of a relation's description a path shows."""

_SEARCH = ToolDefinition(
    "search_managers",
    "Find out which managers (kinds of business data) exist for a topic. Returns names, fields, filters and relations "
    "to use with query.",
    {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "words for what is looked for, e.g. 'open orders'"}},
        "required": ["query"],
        "additionalProperties": False,
    },
)
_SCHEMA = ToolDefinition(
    "get_manager_schema",
    "Describe one manager completely: field types and choices, every filter, relations, mutations.",
    {
        "type": "object",
        "properties": {"manager": {"type": "string", "description": "a manager's name from search_managers"}},
        "required": ["manager"],
        "additionalProperties": False,
    },
)
_PATH = ToolDefinition(
    "find_path",
    "Find how two managers are related: the relation names to follow from one to the other.",
    {
        "type": "object",
        "properties": {
            "from_manager": {"type": "string"},
            "to_manager": {"type": "string"},
            "alternatives": {"type": "boolean", "description": "true lists several ways, each with a reason"},
        },
        "required": ["from_manager", "to_manager"],
        "additionalProperties": False,
    },
)


async def _search(args: Mapping[str, Any], context: ToolContext) -> list[dict[str, Any]]:
    query = text(checked(args, _SEARCH), "query")
    view = await context.managers.view(context.actor)
    found = view.search(query, limit=MAX_SUMMARIES)
    rivals = _rivals(found)
    return [{**_summary(info), **({"use_when": info.use_when} if info.name in rivals else {})} for info in found]


async def _schema(args: Mapping[str, Any], context: ToolContext) -> dict[str, Any] | None:
    name = text(checked(args, _SCHEMA), "manager")
    view = await context.managers.view(context.actor)
    try:
        info = find_manager(name, view)
    except ToolError:
        return None  # the contract's answer for unknown and hidden alike
    return {
        **_summary(info, complete=True),
        **_words(info, view),
        "field_details": {field.name: _field(field) for field in info.fields},
        "mutations": [
            {"name": item.name, "description": item.description, "inputs": [_input(each) for each in item.inputs]}
            for item in info.mutations
        ],
    }


async def _path(args: Mapping[str, Any], context: ToolContext) -> list[Any] | None:
    args = checked(args, _PATH)
    several = flag(args, "alternatives")
    view = await context.managers.view(context.actor)
    start = find_manager(text(args, "from_manager"), view, "from_manager").name
    end = find_manager(text(args, "to_manager"), view, "to_manager").name
    paths = view.find_paths(start, end, limit=MAX_PATHS if several else 1)
    if not paths:
        return None
    if several:
        return [{"path": list(path), "why": _why(start, path, view)} for path in paths]
    return list(paths[0])


def _rivals(found: Sequence[ManagerInfo]) -> set[str]:
    """Those that the model could take for one another: only then it is worth the tokens to say when to use each."""
    rivals: set[str] = set()
    names = {info.name for info in found}
    for info in found:
        others = names.intersection(info.distinguish_from)
        rivals |= others | ({info.name} if others else set())
    return {info.name for info in found if info.name in rivals and info.use_when}


def _words(info: ManagerInfo, view: ManagerView) -> dict[str, Any]:
    """What a catalog says of the manager, and of those that it is easily mistaken for: when each of them is meant."""
    others = [other for name in info.distinguish_from if (other := view.get(name)) is not None]
    words = {
        "aliases": list(info.aliases),
        "use_when": info.use_when,
        "distinguish_from": {other.name: other.use_when or other.description for other in others},
    }
    return {key: value for key, value in words.items() if value}


def _summary(info: ManagerInfo, *, complete: bool = False) -> dict[str, Any]:
    relations = []
    for relation in info.relations:
        entry: dict[str, Any] = {"name": relation.name, "target": relation.target}
        if complete:
            entry["many"] = relation.many
            if relation.description:
                entry["description"] = relation.description
        relations.append(entry)
    return {
        "manager": info.name,
        "description": info.description,
        "fields": [field.name for field in info.fields],
        "relations": relations,
        "filters": filter_names(info, complete=complete),
    }


def _field(field: FieldInfo | InputInfo) -> dict[str, Any]:
    details: dict[str, Any] = {"type": field.type}
    if field.description:
        details["description"] = field.description
    if field.nullable:
        details["nullable"] = True
    if field.choices:
        details["choices"] = [{"value": jsonable(value), "label": label} for value, label in field.choices]
    return details


def _input(item: InputInfo) -> dict[str, Any]:
    details: dict[str, Any] = {"name": item.name, "required": item.required, **_field(item)}
    if item.relation is not None:
        details["ids_of" if item.many else "id_of"] = item.relation
    return details


def _why(start: str, path: Path, view: ManagerView) -> str:
    """The way in words, in one line: ``each PartManager has one material (MaterialManager)``."""
    steps: list[str] = []
    passed: list[str] = []
    name = start
    for hop in path:
        info = view.get(name)
        relation = next(item for item in (info.relations if info is not None else ()) if item.name == hop)
        text = textwrap.shorten(relation.description, MAX_REASON, placeholder="…")
        about = f"{relation.target}: {text}" if text else relation.target
        steps.append(f"{'many' if relation.many else 'one'} {hop} ({about})")
        name = relation.target
        passed.append(name)
    if not steps:
        return f"{start} itself"
    hubs = [f"; it goes through {hub}, to which most others are related too" for hub in passed[:-1] if hub in view.hubs]
    return f"each {start} has {', each with '.join(steps)}{''.join(hubs)}"


search_managers: Final = ToolSpec(definition=_SEARCH, run=_search, reads_records=False)
get_manager_schema: Final = ToolSpec(definition=_SCHEMA, run=_schema, reads_records=False)
find_path: Final = ToolSpec(definition=_PATH, run=_path, reads_records=False)
