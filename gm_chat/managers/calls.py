"""The ``mutate`` tool's name and input into a :class:`MutationCall`: strict, and before anything is asked or run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gm_chat.managers.api import InputInfo, MutationCall
from gm_chat.managers.spelling import match_name, nearest, shown
from gm_chat.managers.values import coerce
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.managers.api import ManagerView, MutationInfo

__all__ = ["build_call"]

MAX_IDS: Final = 500


def build_call(name: str, values: Mapping[str, Any], view: ManagerView) -> MutationCall:
    """Validate a mutation of what the actor sees; hidden ones are answered like unknown ones.

    Input names resolve whatever their case and underscores; a relation's also with ``_id`` at its end.
    """
    mutation = view.mutation(name)
    if mutation is None:
        known = [item.name for manager in view for item in manager.mutations]
        raise ToolError("unknown_mutation", f"there is no mutation {shown(name)}", allowed=nearest(name, known))
    inputs = {item.name: item for item in mutation.inputs}
    found: dict[str, Any] = {}
    for key, value in values.items():
        item = _input(key, inputs, mutation)
        if item.name in found:
            raise ToolError("invalid_argument", f"{name}: {item.name!r} is given twice")
        found[item.name] = _value(item, value)
    missing = [item.name for item in mutation.inputs if item.required and item.name not in found]
    if missing:
        raise ToolError("invalid_argument", f"{name} needs {', '.join(missing)}", missing=missing)
    if mutation.kind == "update" and len(found) < 2:
        raise ToolError("invalid_argument", f"{name}: nothing is to change; give a field", allowed=list(inputs)[:20])
    return MutationCall(mutation, found)


def _input(key: Any, inputs: Mapping[str, InputInfo], mutation: MutationInfo) -> InputInfo:
    if isinstance(key, str):
        name = match_name(key, inputs)
        if name is None and key.casefold().endswith("id"):
            name = match_name(key[:-2], [item.name for item in inputs.values() if item.relation and not item.many])
        if name is not None:
            return inputs[name]
    raise ToolError(
        "invalid_argument",
        f"{mutation.name} takes no input {shown(key)}",
        allowed=nearest(str(key)[:80], inputs),
    )


def _value(item: InputInfo, value: Any) -> Any:
    if item.many:
        if not isinstance(value, list | tuple) or len(value) > MAX_IDS:
            raise ToolError(
                "invalid_value", f"{item.name}: expected a list of at most {MAX_IDS} ids, got {shown(value)}"
            )
        return [coerce(each, item.type, name=item.name) for each in value]
    if value is None and item.nullable:
        return None
    return coerce(value, item.type, name=item.name, choices=item.choices, max_text=None)
