"""The ``direct`` tool strategy: beside the others, one ``query_<Manager>`` for each visible manager."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from gm_chat.plugin import ToolContext, ToolDefinition, ToolSpec
from gm_chat.tools.arguments import checked
from gm_chat.tools.query import query_properties, run_query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gm_chat.managers.api import ManagerInfo, ManagerView

__all__ = ["direct_tools", "tool_name"]

_LONGEST: Final = 64
_UNUSABLE: Final = re.compile(r"[^A-Za-z0-9_-]")
_MAX_NAMES: Final = 60


_made: Final[WeakKeyDictionary[ManagerView, Sequence[ToolSpec]]] = WeakKeyDictionary()
"""The tools of each view that is in use: actors with equal rights share it."""


def direct_tools(view: ManagerView) -> Sequence[ToolSpec]:
    """One query tool for each manager of the view, in the view's order; the same ones each time."""
    tools = _made.get(view)
    if tools is None:
        tools = _made[view] = tuple(_tool(info) for info in view)
    return tools


def tool_name(manager: str) -> str:
    """A name that every provider accepts. It depends on the manager alone, so it is stable.

    Where the manager's own name does not fit, a hash of it keeps different managers apart.
    """
    name = f"query_{manager}"
    usable = _UNUSABLE.sub("_", name)
    if usable == name and len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(manager.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{usable[: _LONGEST - len(digest) - 1]}-{digest}"


def _tool(info: ManagerInfo) -> ToolSpec:
    fields = ", ".join(field.name for field in info.fields[:_MAX_NAMES])
    relations = ", ".join(f"{item.name} ({item.target})" for item in info.relations[:_MAX_NAMES])
    description = f"Read rows of {info.name}: {info.description} Fields: {fields}."
    definition = ToolDefinition(
        tool_name(info.name),
        description + (f" Relations: {relations}." if relations else ""),
        {
            "type": "object",
            "properties": query_properties(),
            "required": ["fields"],
            "additionalProperties": False,
        },
    )

    async def run(args: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
        return await run_query({**checked(args, definition), "manager": info.name}, context)

    return ToolSpec(definition=definition, run=run)
