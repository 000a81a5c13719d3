"""``aggregate``: compute over all rows of a manager in the database, in place of a model that adds rows up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gm_chat.managers.aggregate import build_aggregate
from gm_chat.managers.reach import managers_of_aggregate
from gm_chat.plugin import ToolContext, ToolDefinition, ToolSpec
from gm_chat.tools.arguments import checked
from gm_chat.tools.near import similar_filter
from gm_chat.tools.query import HIDDEN_NOTE, MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.managers.measures import AggregatePlan

__all__ = ["aggregate"]

_AGGREGATE = ToolDefinition(
    "aggregate",
    "Compute over all matching rows: counts, sums, averages, rankings, per group or month. Never add rows up yourself.",
    {
        "type": "object",
        "properties": {
            "manager": {"type": "string"},
            "measures": {
                "type": "object",
                "description": '{"total": "sum(FIELD * FIELD)"} adds up, {"n": "count()"} counts rows; also avg, min, '
                "max, median, count(distinct FIELD); across groups: rank(n), share, change, running; of some rows: "
                '{"n": {"formula": "count()", "where": {}}}',
            },
            "group_by": {
                "type": "array",
                "items": {"type": "string"},
                "description": '["FIELD", "RELATION__FIELD"]; of dates "FIELD__month" year quarter week day weekday',
            },
            "filters": {"type": "object", "description": "as in query"},
            "having": {"type": "object", "description": "leave out, or: which groups to keep, by measures"},
            "order_by": {"type": "array", "items": {"type": "string"}, "description": "of measures, as in query"},
            "fill": {"type": "boolean", "description": "adds periods without rows"},
            "limit": {"type": "integer"},
        },
        "required": ["manager"],
        "additionalProperties": False,
    },
)


async def _run(args: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    """Validate, run, and report as ``{data, has_more}``: one object per group, or one in all.

    Further keys only where they say something: ``total_count`` (of the groups, where the page ends them), ``truncated``
    (whole groups dropped at the byte budget), ``labels`` (of the choices among the groups), ``hint`` (where a text
    filter matches nothing, and a wider one does), ``note``.
    """
    view = await context.managers.view(context.actor)
    plan = build_aggregate(
        checked(args, _AGGREGATE, also=("offset",)),
        view,
        max_results=context.settings["max_results"],
        max_bytes=MAX_BYTES,
    )
    page = await context.managers.aggregate(plan, context.actor, deadline=context.deadline)
    result: dict[str, Any] = {"data": list(page.data), "has_more": page.has_more}
    if plan.groups and not page.has_more and (page.data or not plan.offset):
        result["total_count"] = plan.offset + len(page.data)
    if not page.data or (not plan.groups and not any(page.data[0].values())):
        result |= await similar_filter(args, plan, view, context)
    if page.truncated:
        result["truncated"] = True
    if page.data and (labels := _labels(plan)):
        result["labels"] = labels
    if any(view.rows_may_be_hidden(name) for name in managers_of_aggregate(plan, view)):
        result["note"] = HIDDEN_NOTE  # by the actor's rights alone: a note that depended on rows would betray them
    return result


def _labels(plan: AggregatePlan) -> dict[str, dict[str, str]]:
    """For each group with choices, by name: what its stored values are called."""
    found = {
        group.name: {str(value): label for value, label in group.choices if str(value) != label}
        for group in plan.groups
    }
    return {name: labels for name, labels in found.items() if labels}


aggregate: Final = ToolSpec(definition=_AGGREGATE, run=_run)
