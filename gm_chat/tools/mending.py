"""How a refused change would be right: what small models get wrong about rows that they have not looked at.

They make up ids, write names where ids belong, and repeat the new values as those to ``expect``. The change is refused
all the same; the error tells what to do next in arguments that can be copied.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from gm_chat.managers.api import And, Condition, QueryPlan, Selection
from gm_chat.managers.calls import read_call
from gm_chat.managers.values import WrongValueError
from gm_chat.plugin import ToolError
from gm_chat.tools.near import MAX_LETTERS, is_free_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.managers.api import ManagerInfo, ManagerView
    from gm_chat.plugin import ToolContext

__all__ = ["explained"]

MAX_NAMES: Final = 2
"""Text fields in which a row's name is sought."""


async def explained(error: ToolError, args: Mapping[str, Any], view: ManagerView, context: ToolContext) -> ToolError:
    """The error of a ``mutate`` call with what mends it, where that is certain.

    ``corrected`` are the call's arguments as they would be right, ``look_up`` those of the ``query`` that finds the
    row's id. It reads as the actor, and only to see whether an id that was written as text is one.
    """
    mutation = view.mutation(args["mutation"])
    manager = view.get(mutation.manager) if mutation is not None else None
    if mutation is None or manager is None:
        return error
    expected = args.get("expected", {})
    without = {key: value for key, value in args.items() if key != "expected"}
    if error.code == "conflict":
        if not expected or any(args["input"].get(key) != value for key, value in expected.items()):
            return error  # somebody else may have changed the row
        message = f"{error.message}; expected takes values from before the change, not those of input: leave it out"
        return ToolError(error.code, message, **{**error.details, "corrected": without})
    if mutation.kind == "create" and expected and _is_right(without, view):
        return ToolError(error.code, error.message, **{**error.details, "corrected": without})
    wrong = error.__cause__
    is_wrong_id = isinstance(wrong, WrongValueError) and wrong.name == "id"
    is_about_id = is_wrong_id or error.code == "not_found" or "id" in error.details.get("missing", ())
    if not is_about_id or all(item.name != "id" for item in manager.fields):  # the actor may see none
        return error
    if isinstance(wrong, WrongValueError) and await _exists(manager, wrong.meant, context):
        return error
    details = {key: value for key, value in error.details.items() if key != "corrected"}
    message = f"{error.message}; query finds the id of the row"
    return ToolError(error.code, message, **details, look_up=_look_up(manager, args["input"].get("id")))


def _is_right(args: Mapping[str, Any], view: ManagerView) -> bool:
    try:
        read_call(args, view)
    except ToolError:
        return False
    return True


async def _exists(manager: ManagerInfo, id: Any, context: ToolContext) -> bool:
    if id is None:
        return False
    plan = QueryPlan(
        manager=manager.name,
        selection=Selection(("id",)),
        where=And((Condition(("id",), "exact", id),)),
        limit=1,
    )
    with contextlib.suppress(ToolError):
        page = await context.managers.query(plan, context.actor, deadline=context.deadline)
        return bool(page.total_count)
    return False


def _look_up(manager: ManagerInfo, written: Any) -> dict[str, Any]:
    """The query that shows ids beside what rows are called, of rows that are called as the id was written."""
    names = [item.name for item in manager.fields if is_free_text(item)][:MAX_NAMES]
    query: dict[str, Any] = {"manager": manager.name, "fields": ["id", *names]}
    if isinstance(written, str) and not written.isdigit() and len(written) <= MAX_LETTERS and names:
        found = [{f"{name}__icontains": written} for name in names]
        query["filters"] = found[0] if len(found) == 1 else {"or": found}
    return query
