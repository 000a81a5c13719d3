"""What a planned turn knows: immutable records of what tools and calculations gave, and which requirement each meets.

A record is a snapshot. Its payload is kept as JSON text and read anew at each access, so that nobody can change what an
answer rests on. Records live as long as their turn. (Specification: "Planned resolution, evidence, and calculations".)
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, get_args

from gm_chat.encoding import UnencodableError, jsonable

if TYPE_CHECKING:
    from gm_chat.planned.models import EvidenceRequirement

__all__ = [
    "DuplicateEvidenceError",
    "EvidenceError",
    "EvidenceKind",
    "EvidenceLinkError",
    "EvidenceNotFoundError",
    "EvidenceRecord",
    "EvidenceStore",
    "IncompatibleEvidenceError",
    "InvalidEvidenceError",
    "canonical_call_identity",
    "evidence_kind",
]

EvidenceKind = Literal["schema", "path", "query", "calculation"]

_KINDS: Final[tuple[EvidenceKind, ...]] = get_args(EvidenceKind)
_OF_TOOL: Final[Mapping[str, EvidenceKind]] = {
    "get_manager_schema": "schema",
    "find_path": "path",
    "query": "query",
    "aggregate": "query",
}
_CANONICAL: Final = json.JSONEncoder(
    check_circular=False, allow_nan=False, ensure_ascii=False, sort_keys=True, separators=(",", ":")
)


class EvidenceError(ValueError):
    """Evidence, or its link to a requirement, is not acceptable."""


class InvalidEvidenceError(EvidenceError):
    """A record has a blank id, an unknown kind, or a payload that is no JSON."""


class DuplicateEvidenceError(EvidenceError):
    """The store has a record of that id already."""


class EvidenceNotFoundError(EvidenceError):
    """The store has no record of that id."""


class IncompatibleEvidenceError(EvidenceError):
    """A record cannot meet that requirement: another task's, of another kind, or of another operation."""


EvidenceLinkError = IncompatibleEvidenceError


def evidence_kind(tool: str, result: object) -> EvidenceKind | None:
    """Return what a tool's result proves, ``None`` if it proves nothing.

    An empty path is a path, ``null`` is none; a search only suggests. That a tool failed its caller knows.
    """
    return None if result is None else _OF_TOOL.get(tool)


def canonical_call_identity(name: str, args: Mapping[str, Any]) -> str:
    """Return the JSON text that equal calls of a tool share, whatever the order of their arguments.

    Raises :class:`InvalidEvidenceError` for a blank name or arguments that JSON does not have.
    """
    if not isinstance(args, Mapping):
        raise TypeError(f"the arguments of a call are a mapping, not {type(args).__name__}")
    return _canonical({"name": _text(name, "the name of a call"), "args": args}, "the arguments of a call")


@dataclass(frozen=True, slots=True)
class EvidenceRecord:
    """One result. Use :meth:`create`; ``payload_json`` is canonical.

    ``evidence_id`` reads ``<task>:<kind>:<n>``. ``call_identity`` says which call gave it, ``provenance`` in a few
    words of the host's where it is from.
    """

    evidence_id: str
    task_id: str
    kind: EvidenceKind
    call_identity: str
    provenance: Mapping[str, str]
    payload_json: str

    def __post_init__(self) -> None:
        for name in ("evidence_id", "task_id", "call_identity"):
            _text(getattr(self, name), name)
        if self.kind not in _KINDS:
            raise InvalidEvidenceError(f"the kind of evidence is {self.kind!r}: expected one of {', '.join(_KINDS)}")
        provenance: object = self.provenance
        if not isinstance(provenance, Mapping) or not all(
            isinstance(item, str) for pair in provenance.items() for item in pair
        ):
            raise InvalidEvidenceError("the provenance of evidence maps texts to texts")
        try:
            self.payload()
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidEvidenceError(f"the payload of evidence {self.evidence_id!r} is not JSON: {error}") from None
        object.__setattr__(self, "provenance", MappingProxyType(dict(self.provenance)))

    @classmethod
    def create(
        cls,
        evidence_id: str,
        task_id: str,
        kind: EvidenceKind,
        call_identity: str,
        provenance: Mapping[str, str] | None,
        payload: object,
    ) -> Self:
        """Take a snapshot of ``payload``. Raises :class:`InvalidEvidenceError`, e.g. for an infinite number."""
        return cls(evidence_id, task_id, kind, call_identity, provenance or {}, _canonical(payload, "the payload"))

    def payload(self) -> Any:
        """Return the result, a fresh copy each time."""
        return json.loads(self.payload_json, parse_constant=_no_constant)


@dataclass(slots=True)
class EvidenceStore:
    """The evidence of one turn and its links to requirements. Nothing is ever taken out or replaced."""

    _records: dict[str, EvidenceRecord] = field(default_factory=dict, init=False)
    _links: dict[tuple[str, str], list[str]] = field(default_factory=dict, init=False)

    @property
    def records(self) -> tuple[EvidenceRecord, ...]:
        """All records, in the order in which they came."""
        return tuple(self._records.values())

    def add(self, record: EvidenceRecord, *, requirement: EvidenceRequirement | None = None) -> EvidenceRecord:
        """Keep a record and return it; with a ``requirement`` also link it, or keep nothing if it does not fit.

        Raises :class:`DuplicateEvidenceError` and :class:`IncompatibleEvidenceError`.
        """
        if record.evidence_id in self._records:
            raise DuplicateEvidenceError(f"there is evidence {record.evidence_id!r} already")
        if requirement is not None:
            _check_fit(record, record.task_id, requirement)
        self._records[record.evidence_id] = record
        if requirement is not None:
            self.link(record.task_id, requirement, record.evidence_id)
        return record

    def get(self, evidence_id: str) -> EvidenceRecord | None:
        """Return the record of that id."""
        return self._records.get(evidence_id)

    def for_task(self, task_id: str) -> tuple[EvidenceRecord, ...]:
        """Return a task's records, in the order in which they came."""
        return tuple(record for record in self._records.values() if record.task_id == task_id)

    def link(self, task_id: str, requirement: EvidenceRequirement, evidence_id: str) -> EvidenceRecord:
        """Say that a record meets a requirement of its task, and return it. To say it again changes nothing.

        Raises :class:`EvidenceNotFoundError` and :class:`IncompatibleEvidenceError`.
        """
        record = self._records.get(evidence_id)
        if record is None:
            raise EvidenceNotFoundError(f"there is no evidence {evidence_id!r}")
        _check_fit(record, task_id, requirement)
        linked = self._links.setdefault((task_id, requirement.requirement_id), [])
        if evidence_id not in linked:
            linked.append(evidence_id)
        return record

    def for_requirement(self, task_id: str, requirement: EvidenceRequirement) -> tuple[EvidenceRecord, ...]:
        """Return the records that were linked to a requirement, in the order of their links."""
        return tuple(self._records[name] for name in self._links.get((task_id, requirement.requirement_id), ()))


def _check_fit(record: EvidenceRecord, task_id: str, requirement: EvidenceRequirement) -> None:
    place = f"evidence {record.evidence_id!r} cannot meet the requirement {requirement.requirement_id!r}"
    if record.task_id != task_id:
        raise IncompatibleEvidenceError(f"{place}: it belongs to the task {record.task_id!r}, not to {task_id!r}")
    if record.kind != requirement.kind:
        raise IncompatibleEvidenceError(f"{place}: it is of kind {record.kind!r}, not {requirement.kind!r}")
    if record.kind == "calculation":
        payload = record.payload()
        operation = payload.get("operation") if isinstance(payload, dict) else None
        if operation != requirement.operation:
            raise IncompatibleEvidenceError(f"{place}: its operation is {operation!r}, not {requirement.operation!r}")


def _canonical(value: object, what: str) -> str:
    try:
        plain = jsonable(value)
    except UnencodableError as error:
        raise InvalidEvidenceError(f"{what} must be JSON: {error}") from None
    # The encoder writes null for what is not finite. To an answer that rests on it, that would be a statement.
    if not _is_finite(value):
        raise InvalidEvidenceError(f"{what} must be JSON, which has only finite numbers")
    return _CANONICAL.encode(plain)


def _is_finite(value: object) -> bool:
    match value:
        case float() | Decimal():
            return math.isfinite(value)
        case Mapping():
            return all(map(_is_finite, value.values()))
        case list() | tuple() | set() | frozenset():
            return all(map(_is_finite, value))
        case _:
            return True


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidEvidenceError(f"{what} must be a text that is not blank, not {value!r}")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
