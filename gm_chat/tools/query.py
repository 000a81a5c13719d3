"""``query``: read rows of one manager and of what it is related to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gm_chat.managers.plan import build_plan
from gm_chat.managers.reach import managers_of
from gm_chat.plugin import ToolContext, ToolDefinition, ToolSpec
from gm_chat.tools.arguments import checked
from gm_chat.tools.near import similar_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.managers.api import ManagerView, Selection

__all__ = ["MAX_BYTES", "query", "query_properties", "run_query"]

MAX_BYTES: Final = 64_000
"""Budget of a result's rows, in bytes of JSON: about 20,000 tokens."""

HIDDEN_NOTE: Final = "Rows that this user may not see are left out; do not conclude that they do not exist."
CUT_NOTE: Final = "These nested lists show only their first rows; query the related manager for all of them."


def query_properties() -> dict[str, Any]:
    """The JSON Schema of everything but ``manager``; paths are text and nesting is unrolled two deep."""
    nested = {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}}
    return {
        "fields": {
            "type": "array",
            "minItems": 1,
            "items": {"anyOf": [{"type": "string"}, nested]},
            "description": 'names, "relation__field" paths, "*" for all own fields, {"relation": ["field"]} for a list',
        },
        "filters": {
            "type": "object",
            "description": 'all must hold; leave out for all rows. {"name__icontains": "bolt", '
            '"supplier__name__icontains": "acme"}; dates take "2024-05" or "last 30 days"; lookups: icontains gt gte '
            'lt lte in isnull weekday; {"FIELD__gt": {"field": "OTHER"}}; also and, or, not',
        },
        "order_by": {
            "type": "array",
            "items": {"type": "string"},
            "description": '["-FIELD"]: highest first',
        },
        "first_per": {
            "type": "array",
            "items": {"type": "string"},
            "description": '["RELATION"]: only the first row of each, by order_by',
        },
        "limit": {"type": "integer"},
        "offset": {"type": "integer"},
    }


_QUERY = ToolDefinition(
    "query",
    "Read rows of one manager, with fields of related managers. total_count is the number of all matching rows.",
    {
        "type": "object",
        "properties": {
            "manager": {"type": "string", "description": "e.g. PartManager"},
            **query_properties(),
        },
        "required": ["manager", "fields"],
        "additionalProperties": False,
    },
)


async def run_query(args: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    """Validate, run, and report as ``{data, total_count, has_more}``; ``args`` name the manager.

    Further keys only where they say something: ``truncated`` (whole rows dropped at the byte budget),
    ``cut_lists`` (paths of nested lists that are not complete), ``labels`` (of the choices in the rows), ``hint``
    with ``corrected``, or ``matches_without``, and ``similar_rows`` (where nothing matches, and wider filters do),
    ``note``.
    """
    view = await context.managers.view(context.actor)
    plan = build_plan(args, view, max_results=context.settings["max_results"], max_bytes=MAX_BYTES)
    page = await context.managers.query(plan, context.actor, deadline=context.deadline)
    result: dict[str, Any] = {
        "data": list(page.data),
        "total_count": page.total_count,
        "has_more": page.has_more,
    }
    if not page.total_count:
        result |= await similar_rows(args, plan, view, context)
    if page.truncated:
        result["truncated"] = True
        if not page.data:
            result["hint"] = "One row alone exceeds the size limit; ask for fewer fields."
    if page.cut_lists:
        result["cut_lists"] = {"paths": ["__".join(path) for path in page.cut_lists], "note": CUT_NOTE}
    if page.data and (labels := _labels(plan.manager, plan.selection, view)):
        result["labels"] = labels
    if any(view.rows_may_be_hidden(name) for name in managers_of(plan, view)):
        result["note"] = HIDDEN_NOTE  # by the actor's rights alone: a note that depended on rows would betray them
    return result


async def _run(args: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    return await run_query(checked(args, _QUERY), context)


def _labels(manager: str, selection: Selection, view: ManagerView, path: str = "") -> dict[str, dict[str, str]]:
    """For each selected field with choices, by path: what its stored values are called."""
    info = view.get(manager)
    if info is None:
        return {}
    found: dict[str, dict[str, str]] = {}
    for field in info.fields:
        if field.name in selection.fields:
            labels = {str(value): label for value, label in field.choices if str(value) != label}
            if labels:
                found[path + field.name] = labels
    targets = {relation.name: relation.target for relation in info.relations}
    for inner in selection.relations:
        found |= _labels(targets[inner.name], inner.selection, view, f"{path}{inner.name}__")
    return found


query: Final = ToolSpec(definition=_QUERY, run=_run)
