"""The evidence of one task: what it has, which requirement each piece meets, and what is missing.

A requirement is met by evidence of its kind that no other requirement of the task uses. Where an executor insists that
one result meets several, it is taken at its word. Evidence that another task found may be used, too: it is copied, so
that every record belongs to the task that rests on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gm_chat.planned.calculations import calculate_evidence
from gm_chat.planned.evidence import EvidenceRecord
from gm_chat.planned.reading import DefectError, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gm_chat.planned.actions import Calculate
    from gm_chat.planned.evidence import EvidenceKind, EvidenceStore
    from gm_chat.planned.models import EvidenceRequirement, PlannedTask

__all__ = ["Findings"]


class Findings:
    """What one task has found. ``foreign`` is evidence of other tasks that it may use."""

    def __init__(self, task: PlannedTask, store: EvidenceStore) -> None:
        self.task = task
        self.foreign: dict[str, EvidenceRecord] = {}
        self._store = store
        self._has_insisted = False

    @property
    def own(self) -> tuple[EvidenceRecord, ...]:
        """The task's own records, in the order in which they came."""
        return self._store.for_task(self.task.task_id)

    def with_call(self, identity: str) -> EvidenceRecord | None:
        """Return the record that an equal call gave this task before."""
        return next((record for record in self.own if record.call_identity == identity), None)

    def add(
        self, kind: EvidenceKind, identity: str, payload: Any, provenance: Mapping[str, str] | None = None
    ) -> EvidenceRecord:
        """Keep a result. Raises :class:`~gm_chat.planned.evidence.InvalidEvidenceError` if it is no JSON."""
        record = EvidenceRecord.create(
            self._next_id(kind), self.task.task_id, kind, identity, provenance or {}, payload
        )
        return self._store.add(record)

    def calculate(self, action: Calculate) -> EvidenceRecord:
        """Make a calculation and link it to its requirement.

        Raises :class:`DefectError` and :class:`~gm_chat.planned.calculations.CalculationError` in words for the model.
        """
        wanted = [item for item in self.task.requirements if item.kind == "calculation"]
        found = next((item for item in wanted if item.requirement_id == action.requirement_id), None)
        if found is None:
            known = ", ".join(item.requirement_id for item in wanted) or "none"
            raise DefectError(
                f"requirement_id names {shown(action.requirement_id)}; those of kind calculation are: {known}"
            )
        if found.operation != action.operation:
            raise DefectError(f"the requirement {found.requirement_id} asks for the operation {found.operation}")
        visible = {record.evidence_id for record in self.own} | self.foreign.keys()
        for operand in action.operands:
            if operand.evidence_id not in visible:
                raise DefectError(f"there is no evidence {shown(operand.evidence_id)} for this task")
        record = calculate_evidence(
            self._next_id("calculation"), self.task.task_id, action.operation, action.operands, self._store
        )
        if (same := self.with_call(record.call_identity)) is not None:
            raise DefectError(f"this calculation is {same.evidence_id} already")
        return self._store.add(record, requirement=found)

    def missing(self) -> list[EvidenceRequirement]:
        """Return the requirements for which there is nothing of their kind."""
        kinds = {record.kind for record in self.own}
        return [
            item
            for item in self.task.requirements
            if (not self._linked(item) if item.kind == "calculation" else item.kind not in kinds)
        ]

    def complete(self, evidence_ids: Sequence[str]) -> None:
        """Resolve the task by the evidence of these ids, or raise :class:`DefectError` that says what is missing."""
        named = [self._named(item) for item in evidence_ids]
        if missing := self.missing():
            raise DefectError(
                "these requirements have no evidence yet: "
                + ", ".join(f"{item.requirement_id} ({item.kind}: {shown(item.description)})" for item in missing)
            )
        shared = self._link(named)
        if shared and not self._has_insisted:
            self._has_insisted = True
            raise DefectError(
                f"there are fewer results than requirements ({', '.join(shared)}): get what is missing, or complete "
                "again with the same ids if these results hold all of it"
            )

    def settle(self) -> bool:
        """Resolve the task by what there is, the newest that is not empty; return whether that was possible."""
        if self.missing():
            return False
        self._link([])
        return True

    def linked(self) -> tuple[EvidenceRecord, ...]:
        """Return what the task rests on, and the rows that its calculations were made of."""
        found = {record.evidence_id: record for item in self.task.requirements for record in self._linked(item)}
        for record in list(found.values()):
            for evidence_id in _operands(record):
                operand = self._store.get(evidence_id)
                if operand is not None and operand.task_id == self.task.task_id:
                    found[evidence_id] = operand
        return tuple(found.values())

    def _linked(self, requirement: EvidenceRequirement) -> tuple[EvidenceRecord, ...]:
        return self._store.for_requirement(self.task.task_id, requirement)

    def _link(self, named: Sequence[EvidenceRecord]) -> list[str]:
        """Link requirements to evidence; return those that share theirs with another one."""
        shared: list[str] = []
        for kind in ("schema", "path", "query"):
            wanted = [item for item in self.task.requirements if item.kind == kind]
            if not wanted:
                continue
            chosen = [record for record in named if record.kind == kind]
            others = [record for record in self.own if record.kind == kind and record not in chosen]
            lacking = max(0, len(wanted) - len(chosen))
            found = [*chosen, *_newest(others, lacking)]
            for item, record in zip(wanted, found, strict=False):
                self._store.link(self.task.task_id, item, record.evidence_id)
            for record in found[len(wanted) :]:
                self._store.link(self.task.task_id, wanted[-1], record.evidence_id)
            for item in wanted[len(found) :]:
                self._store.link(self.task.task_id, item, found[-1].evidence_id)
                shared.append(item.requirement_id)
        return shared

    def _named(self, evidence_id: str) -> EvidenceRecord:
        record = self._store.get(evidence_id)
        if record is not None and record.task_id == self.task.task_id:
            return record
        if evidence_id in self.foreign:
            return self.adopt(self.foreign[evidence_id])
        known = ", ".join(_ids(self.own)) or "none"
        raise DefectError(f"there is no evidence {shown(evidence_id)}; the ids are: {known}")

    def adopt(self, record: EvidenceRecord) -> EvidenceRecord:
        """Copy another task's evidence, once."""
        kept = self.with_call(record.call_identity)
        if kept is not None:
            return kept
        return self.add(
            record.kind, record.call_identity, record.payload(), {**record.provenance, "from": record.evidence_id}
        )

    def _next_id(self, kind: EvidenceKind) -> str:
        return f"{self.task.task_id}:{kind}:{1 + sum(record.kind == kind for record in self.own)}"


def _newest(records: Sequence[EvidenceRecord], count: int) -> list[EvidenceRecord]:
    """The newest so many, but those without rows only where there are no others."""
    if not count:
        return []
    return sorted(records, key=_has_rows)[-count:]


def _has_rows(record: EvidenceRecord) -> bool:
    payload = record.payload()
    return not isinstance(payload, Mapping) or payload.get("data") != []


def _ids(records: Iterable[EvidenceRecord]) -> list[str]:
    return [record.evidence_id for record in records]


def _operands(record: EvidenceRecord) -> list[str]:
    if record.kind != "calculation":
        return []
    return [operand["evidence_id"] for operand in record.payload()["operands"]]
