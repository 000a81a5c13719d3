"""``mutate``: run one allow-listed write, after the client has confirmed it where the settings ask for that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from gm_chat.encoding import jsonable
from gm_chat.managers.calls import read_call
from gm_chat.managers.spelling import nearest, shown
from gm_chat.plugin import ToolContext, ToolDefinition, ToolError, ToolSpec
from gm_chat.tools.arguments import checked
from gm_chat.tools.mending import explained

if TYPE_CHECKING:
    from gm_chat.managers.api import ManagerView

__all__ = ["mutate"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")

_MUTATE = ToolDefinition(
    "mutate",
    "Change data: create, update or delete one row, or run another mutation. Use it only when the user asks for a "
    "change. get_manager_schema lists the mutations and their inputs.",
    {
        "type": "object",
        "properties": {
            "mutation": {"type": "string", "description": "e.g. createPart, updatePart, deletePart"},
            "input": {
                "type": "object",
                "description": "new values by field; id is the row's own, which query finds; related rows by their ids",
            },
            "expected": {
                "type": "object",
                "description": "mostly left out: values from before the change without which it must not happen",
            },
        },
        "required": ["mutation", "input"],
        "additionalProperties": False,
    },
)


async def _run(args: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    args = checked(args, _MUTATE)
    name, values = _form(args["mutation"], args["input"])
    _names(args.get("expected", {}), "expected")
    view = await context.managers.view(context.actor)
    allowed: list[str] = list(context.settings["allowed_mutations"])
    if name not in allowed:
        raise _not_allowed(name, allowed, view)
    if not context.actor.is_authenticated:
        raise ToolError("authentication_required", "only a logged-in user may change data")
    if view.mutation(name) is None:  # that the list holds it would tell that it exists
        raise _not_allowed(name, allowed, view)
    try:
        call = read_call(args, view)
        if not context.approved and _is_asked_about(name, context):
            preview = await context.managers.preview(call, context.actor, deadline=context.deadline)
            asked = {"status": "confirmation_required", "mutation": name, "input": dict(values)}
            return asked if preview is None else {**asked, "preview": preview}
        call = replace(call, shown=context.shown)
        data = await context.managers.mutate(call, context.actor, deadline=context.deadline)
    except ToolError as error:
        raise await explained(error, args, view, context) from error
    return {"status": "executed", "data": jsonable(data)}


def _is_asked_about(name: str, context: ToolContext) -> bool:
    """Whether a person must approve the mutation; after records were read, it may be one of them that wants it."""
    tainted = context.has_read and context.settings.get("taint_mutations", False)
    return tainted or name in context.settings["confirm_mutations"]


def _form(name: Any, values: Any) -> tuple[str, Mapping[str, Any]]:
    """The shape of the two arguments, before anything is looked up."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ToolError("invalid_argument", f"mutation must be a name such as createPart, got {shown(name)}")
    return name, _names(values, "input")


def _names(values: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(values, Mapping):
        raise ToolError("invalid_argument", f'{what} must be an object such as {{"id": 7}}, got {shown(values)}')
    for key in values:
        if not isinstance(key, str) or not _NAME.fullmatch(key):
            raise ToolError("invalid_argument", f"{what}: {shown(key)} is not a name")
    return values


def _not_allowed(name: str, allowed: list[str], view: ManagerView) -> ToolError:
    """One answer for what the settings, the actor's rights or the schema lack; it offers what the actor could run."""
    offered = [item for item in allowed if view.mutation(item) is not None]
    message = f"the mutation {name!r} is not allowed in this chat"
    if not offered:
        message += ", and no other: data can only be read"
    return ToolError("mutation_not_allowed", message, allowed=nearest(name, offered))


mutate: Final = ToolSpec(definition=_MUTATE, run=_run, kind="write")
