"""What the tasks of one turn share: their evidence, the budget, the time, and where their events go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gm_chat.planned.evidence import EvidenceStore
from gm_chat.planned.findings import Findings
from gm_chat.providers.base import TokenUsage

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from gm_chat.engine.events import Event
    from gm_chat.planned.budget import RoundBudget
    from gm_chat.planned.models import PlannedTask, TaskStatus, TerminalReason, ValidatedPlan
    from gm_chat.planned.ports import ReadPorts, ToolRun

__all__ = ["Board"]

KINDS = ("schema", "path", "query", "calculation")


@dataclass(slots=True, kw_only=True)
class Board:
    """One planned read at work. ``ends_at`` is a time of the ports' clock; ``release`` hands an event to the client."""

    plan: ValidatedPlan
    question: str
    ports: ReadPorts
    budget: RoundBudget
    ends_at: float
    release: Callable[[Event], None]
    store: EvidenceStore = field(default_factory=EvidenceStore)
    statuses: dict[str, TaskStatus] = field(default_factory=dict)
    reasons: dict[str, TerminalReason] = field(default_factory=dict)
    usage: TokenUsage = field(default_factory=TokenUsage)
    runs: dict[str, asyncio.Future[tuple[str, ToolRun]]] = field(default_factory=dict)
    """Calls that run or have succeeded, by their identity, with the ids of their events: no read is made twice."""
    tasks: list[PlannedTask] = field(init=False)
    """All tasks, children included."""
    _findings: dict[str, Findings] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tasks = list(self.plan.tasks)
        self.statuses.update({task.task_id: "pending" for task in self.plan.tasks})

    def left(self) -> float:
        """Seconds until all evidence must be there."""
        return self.ends_at - self.ports.clock()

    def findings(self, task: PlannedTask) -> Findings:
        """What a task has found."""
        if task.task_id not in self._findings:
            self._findings[task.task_id] = Findings(task, self.store)
        return self._findings[task.task_id]

    def settle(self, task: PlannedTask, reason: TerminalReason | None) -> None:
        """Say how a task ended: resolved, or why not. Only the first word counts."""
        if self.statuses.get(task.task_id) in ("resolved", "blocked", "budget_exhausted"):
            return
        if reason is None:
            self.statuses[task.task_id] = "resolved"
        else:
            self.statuses[task.task_id] = "budget_exhausted" if reason == "budget_exhausted" else "blocked"
            self.reasons[task.task_id] = reason
        progress = "task_resolved" if reason is None else "task_blocked"
        self.tell("task_progress", task, progress=progress, terminal_reason=reason, evidence_counts=self.counts(task))

    def counts(self, task: PlannedTask) -> dict[str, int]:
        """How much evidence of each kind a task has."""
        records = self.store.for_task(task.task_id)
        return {kind: sum(record.kind == kind for record in records) for kind in KINDS}

    def tell(self, event_type: str, task: PlannedTask | None = None, **payload: Any) -> None:
        """Tell a diagnostic, with its lineage."""
        lineage: Mapping[str, Any] = {"plan_id": self.ports.plan_id}
        if task is not None:
            lineage = {
                **lineage,
                "task_id": task.task_id,
                "root_task_id": task.root_id,
                "parent_task_id": task.parent_id,
            }
        self.ports.tell(event_type, {**lineage, **payload})
