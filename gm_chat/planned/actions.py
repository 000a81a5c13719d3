"""What an executor may do instead of calling a tool, read strictly: finish, give up, divide its task, or calculate.

::

    {"action": "complete", "evidence_ids": ["t1:query:1"]}
    {"action": "block", "reason": "there is no such customer"}
    {"action": "spawn_children", "children": [{"task_id": ...}, ...]}
    {"action": "calculate", "requirement_id": "r2", "operation": "sum",
     "operands": [{"evidence_id": "t1:query:1", "path": ["data", "*", "price"]}]}

Only the form is judged here; whether there is such evidence, or such a requirement, whoever acts on it finds out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gm_chat.planned.calculations import CalculationError, CalculationOperand
from gm_chat.planned.models import CALCULATION_OPERATIONS
from gm_chat.planned.reading import DefectError, read_object, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Action", "Block", "Calculate", "Complete", "SpawnChildren", "read_action"]

MAX_REASON: Final = 300
"""Characters of a reason that are kept."""


@dataclass(frozen=True, slots=True)
class Complete:
    """The task is resolved by this evidence."""

    evidence_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """The task cannot be resolved. The ``reason`` is the model's own words: for the operator, never for clients."""

    reason: str


@dataclass(frozen=True, slots=True)
class SpawnChildren:
    """The task is to be divided; ``payload`` is for :func:`~gm_chat.planned.validation.validate_dynamic_children`."""

    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Calculate:
    """A requirement is to be met by a calculation."""

    requirement_id: str
    operation: str
    operands: tuple[CalculationOperand, ...]


Action: TypeAlias = Complete | Block | SpawnChildren | Calculate

_KEYS: Final = {
    "complete": ("evidence_ids",),
    "block": ("reason",),
    "spawn_children": ("children",),
    "calculate": ("requirement_id", "operation", "operands"),
}


def read_action(text: str) -> Action:
    """Return the action that an executor wrote. Raises :class:`~gm_chat.planned.reading.DefectError`."""
    members = read_object(text)
    action = members.get("action")
    if not isinstance(action, str) or action not in _KEYS:
        raise DefectError(f"action must be one of {', '.join(_KEYS)}, not {shown(action)}")
    keys = ("action", *_KEYS[action])
    if set(members) != set(keys):
        raise DefectError(f"the action {action} has exactly the keys {', '.join(keys)}, not {', '.join(members)}")
    match action:
        case "complete":
            return Complete(_ids(members["evidence_ids"]))
        case "block":
            return Block(_text(members["reason"], "reason")[:MAX_REASON])
        case "spawn_children":
            return SpawnChildren({"children": members["children"]})
        case _:
            return _calculate(members)


def _calculate(members: Mapping[str, Any]) -> Calculate:
    operation, operands = members["operation"], members["operands"]
    if not isinstance(operation, str) or operation not in CALCULATION_OPERATIONS:
        raise DefectError(f"operation must be one of {', '.join(CALCULATION_OPERATIONS)}, not {shown(operation)}")
    if not isinstance(operands, list) or not operands:
        raise DefectError(f"operands must be an array of one operand or more, not {shown(operands)}")
    return Calculate(
        _text(members["requirement_id"], "requirement_id"),
        operation,
        tuple(_operand(item, f"operands[{number}]") for number, item in enumerate(operands)),
    )


def _operand(item: object, place: str) -> CalculationOperand:
    if not isinstance(item, dict) or set(item) != {"evidence_id", "path"}:
        raise DefectError(f"{place} must be an object with exactly the keys evidence_id, path")
    try:
        return CalculationOperand(item["evidence_id"], item["path"])
    except CalculationError as error:
        raise DefectError(f"{place}: {error}") from None


def _ids(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise DefectError(f"evidence_ids must be an array of one id or more, not {shown(value)}")
    ids = tuple(_text(item, f"evidence_ids[{number}]") for number, item in enumerate(value))
    if len(set(ids)) < len(ids):
        raise DefectError("evidence_ids must name each id once")
    return ids


def _text(value: object, place: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise DefectError(f"{place} must be a text that is not blank, not {shown(value)}")
    return value
