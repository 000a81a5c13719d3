"""Arithmetic over evidence: eight named operations in decimal numbers, so that no model has to reckon.

Sums and differences are exact; quotients have 28 significant digits. An operand points at a value in the result of a
query, so that every number in an answer can be traced to rows. A list that the query cut off is never counted or summed
as if it were whole. (Specification: "Planned resolution, evidence, and calculations".)
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import TYPE_CHECKING, Any, Final

from gm_chat.planned.evidence import EvidenceRecord, canonical_call_identity
from gm_chat.planned.models import CALCULATION_OPERATIONS

if TYPE_CHECKING:
    from gm_chat.planned.evidence import EvidenceStore

__all__ = ["EVERY", "CalculationError", "CalculationOperand", "calculate", "calculate_evidence"]

EVERY: Final = "*"
"""In an operand's path: every item of a list, e.g. ``("data", "*", "price")``."""

MAX_DIGITS: Final = 100
"""Digits before and after the decimal point of an operand."""

QUOTIENT: Final = Context(prec=28)
_EXACT: Final = Context(prec=4 * MAX_DIGITS)
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


class CalculationError(ValueError):
    """The calculation cannot be made. The message tells the model what to mend."""


@dataclass(frozen=True, slots=True)
class CalculationOperand:
    """A place in the result of a query: keys of objects, and positions in lists, counted from 0, or :data:`EVERY`."""

    evidence_id: str
    path: tuple[str | int, ...]

    def __post_init__(self) -> None:
        evidence_id: object = self.evidence_id  # a model wrote it
        path: object = self.path
        if not isinstance(evidence_id, str) or not evidence_id.strip():
            raise CalculationError(f"evidence_id must be the id of evidence, not {evidence_id!r}")
        if not isinstance(path, list | tuple):
            raise CalculationError(f"path must be an array of keys and positions, not {path!r}")
        for step in path:
            if isinstance(step, bool) or not isinstance(step, str | int) or (isinstance(step, int) and step < 0):
                raise CalculationError(f"path holds {step!r}: expected a key, or a position of 0 or more")
        object.__setattr__(self, "path", tuple(path))


def calculate(operation: str, operands: Sequence[object]) -> Decimal | int:
    """Evaluate one of the eight operations.

    ``count`` takes one list or object. ``difference``, ``ratio`` and ``percentage`` (left / right x 100) take two
    numbers, the others at least one. A number may be written as text; truth values and ``None`` are none.
    Raises :class:`CalculationError`.
    """
    if operation not in CALCULATION_OPERATIONS:
        raise CalculationError(
            f"there is no operation {operation!r}: expected one of {', '.join(CALCULATION_OPERATIONS)}"
        )
    if operation == "count":
        return _count(operands)
    numbers = [_number(operand) for operand in operands]
    if operation in _PAIRS and len(numbers) != 2:
        raise CalculationError(f"{operation} takes exactly 2 operands, but there are {len(numbers)}")
    if not numbers:
        raise CalculationError(f"{operation} takes at least 1 operand, but there is none")
    with localcontext(_EXACT):
        return _OPERATIONS[operation](numbers)


def calculate_evidence(
    evidence_id: str,
    task_id: str,
    operation: str,
    operands: Sequence[CalculationOperand],
    store: EvidenceStore,
    *,
    provenance: Mapping[str, str] | None = None,
    call_identity: str | None = None,
) -> EvidenceRecord:
    """Calculate over query evidence in ``store`` and return the result as evidence, which the caller may add to it.

    Its payload is ``{operation, operands, value}``; the value is an integer, or a plain decimal number as text.
    Raises :class:`CalculationError`.
    """
    value = calculate(operation, [value for operand in operands for value in _values(operand, store)])
    places = [{"evidence_id": operand.evidence_id, "path": list(operand.path)} for operand in operands]
    args = {"operation": operation, "operands": places}
    return EvidenceRecord.create(
        evidence_id,
        task_id,
        "calculation",
        call_identity or canonical_call_identity("calculate", args),
        provenance or {"calculator": "framework", "operation": operation},
        {**args, "value": _plain(value)},
    )


# --- operands ----------------------------------------------------------------------------------------------------


def _values(operand: CalculationOperand, store: EvidenceStore) -> list[Any]:
    record = store.get(operand.evidence_id)
    if record is None:
        raise CalculationError(f"there is no evidence {operand.evidence_id!r}")
    if record.kind != "query":
        raise CalculationError(
            f"operands point into the results of queries, but {operand.evidence_id!r} is of kind {record.kind!r}"
        )
    payload = record.payload()
    values = [payload]
    for number, step in enumerate(operand.path):
        walked = operand.path[:number]
        if step == EVERY and all(isinstance(value, list) for value in values):
            _check_whole(payload, walked, operand)
            values = [item for value in values for item in value]
        else:
            values = [_step(value, step, operand) for value in values]
    if any(isinstance(value, list) for value in values):
        _check_whole(payload, operand.path, operand)
    return values


def _step(value: Any, step: str | int, operand: CalculationOperand) -> Any:
    if isinstance(value, dict) and isinstance(step, str) and step in value:
        return value[step]
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    match value:
        case dict():
            found = f"the keys there are {', '.join(list(value)[:20])}"
        case list():
            found = f"there are {len(value)} items"
        case _:
            found = "there is a single value"
    raise CalculationError(
        f"the path {list(operand.path)} leads nowhere in {operand.evidence_id!r}: at {step!r} {found}"
    )


def _check_whole(payload: Any, path: tuple[str | int, ...], operand: CalculationOperand) -> None:
    """Refuse a list that the query did not return in full: its rows, or a nested list that it says it has cut."""
    if not isinstance(payload, dict):
        return
    names = [step for step in path if isinstance(step, str) and step != EVERY]
    if names == ["data"]:
        rows, total = payload.get("data"), payload.get("total_count")
        more = isinstance(rows, list) and isinstance(total, int) and total > len(rows)
        if more or payload.get("has_more") is True or payload.get("truncated") is True:
            raise CalculationError(
                f"{operand.evidence_id!r} holds only a part of the rows; take its total_count, or ask for an aggregate"
            )
    cut = payload.get("cut_lists")
    if isinstance(cut, dict) and "__".join(names[1:]) in cut.get("paths", ()):
        raise CalculationError(
            f"the list at {list(path)} in {operand.evidence_id!r} is cut off; query that manager itself, or aggregate"
        )


# --- numbers -----------------------------------------------------------------------------------------------------


def _count(operands: Sequence[object]) -> int:
    if len(operands) != 1:
        raise CalculationError(f"count takes exactly 1 operand, but there are {len(operands)}")
    counted = operands[0]
    if isinstance(counted, str) or not isinstance(counted, Sequence | Mapping):
        raise CalculationError(f"count takes a list or an object, not {_kind(counted)}")
    return len(counted)


def _number(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise CalculationError(f"an operand must be a number, not {_kind(value)}")
    if isinstance(value, int) and value.bit_length() > 4 * MAX_DIGITS:
        raise CalculationError(f"an operand has more than {MAX_DIGITS} digits")
    if isinstance(value, str):
        value = value.strip()
        if not _NUMBER.fullmatch(value):
            raise CalculationError(f"an operand must be a finite number, not the text {value[:60]!r}")
    elif not isinstance(value, int) and not math.isfinite(value):
        raise CalculationError(f"an operand must be a finite number, not {value}")
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or -exponent > MAX_DIGITS or len(digits) + exponent > MAX_DIGITS:
        raise CalculationError(f"an operand has more than {MAX_DIGITS} digits before or after its point")
    return number


def _sum(numbers: Sequence[Decimal]) -> Decimal:
    return sum(numbers, Decimal(0))


def _quotient(left: Decimal, right: Decimal) -> Decimal:
    if not right:
        raise CalculationError("the divisor is 0")
    return QUOTIENT.divide(left, right)


_PAIRS: Final = frozenset({"difference", "ratio", "percentage"})
_OPERATIONS: Final[Mapping[str, Callable[[Sequence[Decimal]], Decimal]]] = {
    "sum": _sum,
    "average": lambda numbers: _quotient(_sum(numbers), Decimal(len(numbers))),
    "minimum": min,
    "maximum": max,
    "difference": lambda pair: pair[0] - pair[1],
    "ratio": lambda pair: _quotient(pair[0], pair[1]),
    "percentage": lambda pair: _quotient(pair[0] * 100, pair[1]),
}


def _plain(value: Decimal | int) -> int | str:
    return int(value) if value == int(value) else format(value, "f")


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a truth value"
        case str() | int() | float() | Decimal():
            return "a single value"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
        case _:
            return f"a {type(value).__name__}"
