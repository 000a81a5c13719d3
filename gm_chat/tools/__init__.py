"""The chat's own tools: each a :class:`~gm_chat.plugin.ToolSpec`, registered like a plugin's.

They know managers only through ``ToolContext.managers``, so that they work over any source.
"""

from gm_chat.plugin import ToolSpec
from gm_chat.tools.aggregate import aggregate
from gm_chat.tools.direct import direct_tools
from gm_chat.tools.discovery import find_path, get_manager_schema, search_managers
from gm_chat.tools.mutate import mutate
from gm_chat.tools.query import query

__all__ = [
    "aggregate",
    "core_tools",
    "direct_tools",
    "find_path",
    "get_manager_schema",
    "mutate",
    "query",
    "search_managers",
]


def core_tools() -> list[ToolSpec]:
    """The five tools of the specification, in its order, and ``aggregate``; ``disabled_tools`` can take any away."""
    return [search_managers, get_manager_schema, find_path, query, mutate, aggregate]
