"""The words of a plan, as values: what a planner may ask for, and how it ends.

A plan has *roots*, tasks that the user's question consists of; while a root is worked on it may get a few *children*.
Each task lists its *requirements*, the pieces of evidence that resolve it. Nothing here checks anything: only
:mod:`gm_chat.planned.validation` makes these values of what a model wrote. (Specification: "Planned task and
validation types".)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = [
    "CALCULATION_OPERATIONS",
    "EvidenceRequirement",
    "PlanIntent",
    "PlannedTask",
    "RequirementKind",
    "RoutingFeature",
    "TaskStatus",
    "TerminalReason",
    "ValidatedPlan",
]

TaskStatus = Literal["pending", "running", "resolved", "blocked", "budget_exhausted"]
TerminalReason = Literal[
    "invalid_plan",
    "manager_unresolved",
    "dependency_blocked",
    "budget_exhausted",
    "deadline_exceeded",
    "provider_failed",
    "synthesis_failed",
]
RequirementKind = Literal["schema", "path", "query", "calculation"]
RoutingFeature = Literal["has_dependency", "requires_calculation", "multiple_queries"]
PlanIntent = Literal["read", "mutation"]

CALCULATION_OPERATIONS: Final = (
    "count",
    "sum",
    "average",
    "minimum",
    "maximum",
    "difference",
    "ratio",
    "percentage",
)
"""What a calculation may do; :func:`gm_chat.planned.calculations.calculate` says how."""


@dataclass(frozen=True, slots=True)
class EvidenceRequirement:
    """One piece of evidence that a task needs. ``operation`` belongs to calculations and is ``None`` elsewhere.

    ``requirement_id`` is unique within its task.
    """

    requirement_id: str
    kind: RequirementKind
    description: str
    operation: str | None


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A part of the question that can be answered on its own, or a child of one.

    ``depends_on`` names tasks whose evidence it builds on. ``completion_criteria`` repeats the requirements' ids and
    ``routing_features`` says what makes the task hard; both follow from the rest, so that a planner that contradicts
    itself is noticed.
    """

    task_id: str
    objective: str
    depends_on: tuple[str, ...]
    requirements: tuple[EvidenceRequirement, ...]
    completion_criteria: tuple[str, ...]
    routing_features: tuple[RoutingFeature, ...]
    parent_id: str | None = None

    @property
    def root_id(self) -> str:
        """The root whose budget pays for the task: its parent, or itself."""
        return self.task_id if self.parent_id is None else self.parent_id


@dataclass(frozen=True, slots=True)
class ValidatedPlan:
    """A plan that may be carried out: one to six roots to read, or none where data is to be changed."""

    intent: PlanIntent
    tasks: tuple[PlannedTask, ...]
