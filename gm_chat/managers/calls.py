"""The ``mutate`` tool's name and input into a :class:`MutationCall`: strict, and before anything is asked or run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gm_chat.managers.api import InputInfo, MutationCall, RelationInfo
from gm_chat.managers.meant import proposing
from gm_chat.managers.spelling import match_name, nearest, shown
from gm_chat.managers.values import coerce
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.managers.api import FieldInfo, FieldType, ManagerView, MutationInfo

__all__ = ["build_call", "read_call"]

MAX_IDS: Final = 500


@proposing
def read_call(args: Mapping[str, Any], view: ManagerView) -> MutationCall:
    """:func:`build_call` of the arguments ``mutation``, ``input`` and ``expected``."""
    return build_call(args["mutation"], args["input"], view, args.get("expected"))


def build_call(
    name: str, values: Mapping[str, Any], view: ManagerView, expected: Mapping[str, Any] | None = None
) -> MutationCall:
    """Validate a mutation of what the actor sees; hidden ones are answered like unknown ones.

    Input names resolve whatever their case and underscores; a relation's also with ``_id`` at its end. ``expected`` are
    values that the row must have, by field or to-one relation, in a mutation of one row.
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
        advice = "" if "id" in missing else "; ask the user for what nobody has said"
        raise ToolError("invalid_argument", f"{name} needs {', '.join(missing)}{advice}", missing=missing)
    if mutation.kind == "update" and len(found) < 2:
        raise ToolError("invalid_argument", f"{name}: nothing is to change; give a field", allowed=list(inputs)[:20])
    return MutationCall(mutation, found, _expected(expected or {}, mutation, view))


def _expected(values: Mapping[str, Any], mutation: MutationInfo, view: ManagerView) -> dict[str, Any]:
    """What the row must be like, of the types that its fields have."""
    info = view.get(mutation.manager)
    if not values or info is None:
        return {}
    if all(item.name != "id" for item in mutation.inputs) or mutation.kind == "create":
        raise ToolError("invalid_argument", f"{mutation.name} changes no row that exists; leave out expected")
    members: dict[str, FieldInfo | RelationInfo] = {item.name: item for item in info.fields if not item.computed}
    members |= {item.name: item for item in info.relations if not item.many and _key_type(item, mutation, view)}
    found: dict[str, Any] = {}
    for key, value in values.items():
        name = match_name(key, members)
        if name is None and key.casefold().endswith("id"):
            name = match_name(key[:-2], [item.name for item in info.relations if item.name in members])
        if name is None:
            problem = f"expected: {mutation.manager} has no field {shown(key)} to compare"
            raise ToolError("invalid_argument", problem, allowed=nearest(key[:80], members))
        found[name] = None if value is None else _compared(members[name], value, mutation, view)
    return found


def _compared(member: FieldInfo | RelationInfo, value: Any, mutation: MutationInfo, view: ManagerView) -> Any:
    what = f"expected: {member.name}"
    if isinstance(member, RelationInfo):
        return coerce(value, _key_type(member, mutation, view) or "json", name=what)
    return coerce(value, member.type, name=what, choices=member.choices, max_text=None)


def _key_type(relation: RelationInfo, mutation: MutationInfo, view: ManagerView) -> FieldType | None:
    """The type of the ids of a relation, where the actor can know one."""
    target = view.get(relation.target)
    keys = [item.type for item in target.fields if item.key] if target is not None else []
    keys += [item.type for item in mutation.inputs if item.name == relation.name and item.relation]
    return keys[0] if keys else None


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
        if value is None and item.nullable:
            return None
        if not isinstance(value, list | tuple) or len(value) > MAX_IDS:
            what = "ids" if item.relation else "values"
            raise ToolError(
                "invalid_value", f"{item.name}: expected a list of at most {MAX_IDS} {what}, got {shown(value)}"
            )
        return [coerce(each, item.type, name=item.name, choices=item.choices) for each in value]
    if value is None and item.nullable:
        return None
    return coerce(value, item.type, name=item.name, choices=item.choices, max_text=None)
