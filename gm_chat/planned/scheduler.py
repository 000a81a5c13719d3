"""A planned read from end to end: plan, evidence, answer. The loop of the chat and callers of their own go this way.

:func:`prepare_planned_turn` makes the plan, :func:`read_events` carries it out over
:class:`~gm_chat.planned.ports.ReadPorts`; :func:`iter_planned_read_events` is the same for callers that have no turn of
the engine, with their own functions as :class:`SchedulerCallbacks`. (Specification: "Planned orchestration helpers".)
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gm_chat.engine.events import Done, TextChunk
from gm_chat.engine.failures import TurnStopped
from gm_chat.engine.public import event_object
from gm_chat.errors import public_chat_error
from gm_chat.planned.board import Board
from gm_chat.planned.budget import RoundBudget, RoundBudgetExhausted
from gm_chat.planned.callbacks import SchedulerCallbacks, callback_ports
from gm_chat.planned.citations import citations
from gm_chat.planned.events import orchestration, planned_error
from gm_chat.planned.gathering import gather
from gm_chat.planned.planner import PlanningResult, plan_request
from gm_chat.planned.synthesis import SynthesisFailedError, SynthesisResult, make_answer
from gm_chat.providers.base import TokenUsage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping

    from gm_chat.engine.events import Event
    from gm_chat.planned.config import PlannedChatSettings
    from gm_chat.planned.evidence import EvidenceRecord, EvidenceStore
    from gm_chat.planned.models import TaskStatus, TerminalReason, ValidatedPlan
    from gm_chat.planned.ports import ReadPorts
    from gm_chat.planned.resolver import ManagerResolver
    from gm_chat.providers.base import Message

__all__ = [
    "PlannedCoverage",
    "PlannedExecutionResult",
    "PreparedPlannedTurn",
    "SchedulerCallbacks",
    "iter_planned_read_events",
    "prepare_planned_turn",
    "read_events",
]

logger = logging.getLogger("gm_chat.planned")


@dataclass(frozen=True, slots=True)
class PlannedCoverage:
    """How many of a plan's roots were resolved, and why the others, ``(task_id, reason)``, were not."""

    resolved: int
    total: int
    unresolved: tuple[tuple[str, TerminalReason], ...]

    def as_mapping(self, resolved_ids: Collection[str]) -> dict[str, Any]:
        """Return the coverage as JSON, with the ids of the resolved roots."""
        return {
            "resolved": self.resolved,
            "total": self.total,
            "resolved_task_ids": list(resolved_ids),
            "unresolved": [{"task_id": task_id, "reason": reason} for task_id, reason in self.unresolved],
        }


@dataclass(frozen=True, slots=True)
class PlannedExecutionResult:
    """How a plan's tasks ended, children included, with all of their evidence. Never an event for clients."""

    statuses: Mapping[str, TaskStatus]
    reasons: Mapping[str, TerminalReason]
    evidence: EvidenceStore
    coverage: PlannedCoverage
    usage: TokenUsage

    def unresolved_reason(self, task_id: str) -> TerminalReason | None:
        """Return why a task was not resolved; ``None`` if it was."""
        return self.reasons.get(task_id)


@dataclass(slots=True)
class PreparedPlannedTurn:
    """A plan that is ready to be carried out, with what planning has used and how much time is left.

    ``evidence_deadline`` is a time of the clock that the turn was prepared with; ``None`` gives it all of the time.
    ``result`` is there once the evidence was gathered.
    """

    plan: ValidatedPlan
    budget: RoundBudget
    usage: TokenUsage
    settings: PlannedChatSettings
    user_text: str
    catalog_summary: object = None
    resolver: ManagerResolver | None = None
    evidence_deadline: float | None = None
    attempt_usages: tuple[TokenUsage, ...] = ()
    result: PlannedExecutionResult | None = None

    @classmethod
    def for_plan(
        cls,
        plan: ValidatedPlan,
        settings: PlannedChatSettings,
        *,
        user_text: str,
        usage: TokenUsage | None = None,
        catalog_summary: object = None,
        resolver: ManagerResolver | None = None,
        evidence_deadline: float | None = None,
        attempt_usages: tuple[TokenUsage, ...] = (),
    ) -> PreparedPlannedTurn:
        """Prepare a turn with a plan that is there already, and a fresh budget."""
        return cls(
            plan,
            RoundBudget([task.task_id for task in plan.tasks]),
            usage or TokenUsage(),
            settings,
            user_text,
            catalog_summary,
            resolver,
            evidence_deadline,
            attempt_usages,
        )

    @property
    def mutation_plan(self) -> ValidatedPlan | None:
        """The plan, if it is one that the ordinary loop carries out; else ``None``."""
        return self.plan if self.plan.intent == "mutation" else None


async def prepare_planned_turn(  # noqa: PLR0913 (the specification fixes the parameters)
    user_text: str,
    messages: list[Message],
    settings: PlannedChatSettings,
    catalog_summary: object,
    *,
    planner: Callable[..., Awaitable[PlanningResult]] = plan_request,
    resolver: ManagerResolver | None = None,
    clock: Callable[[], float] | None = None,
    callbacks: SchedulerCallbacks | None = None,
    scope: Mapping[str, Any] | None = None,
) -> PreparedPlannedTurn:
    """Make a plan, whose time for evidence has then begun already.

    ``messages`` is the conversation so far, ``catalog_summary`` any JSON value that tells of the managers.
    ``callbacks`` are asked about the rate limit of ``scope`` first. Raises
    :class:`~gm_chat.planned.planner.InvalidPlanError`, :class:`~gm_chat.planned.budget.RoundBudgetExhausted` and
    ``TimeoutError``.
    """
    now = clock or time.monotonic
    ends_at = now() + settings.evidence_timeout_seconds
    if callbacks is not None:
        await callbacks.limit(scope or {})
    budget = RoundBudget(())
    made = await planner(user_text, messages, settings, budget, catalog_summary)
    return PreparedPlannedTurn(
        made.plan,
        budget.with_roots([task.task_id for task in made.plan.tasks]),
        made.usage,
        settings,
        user_text,
        catalog_summary,
        resolver,
        ends_at,
        made.attempt_usages,
    )


async def iter_planned_read_events(
    prepared: PreparedPlannedTurn,
    *,
    scope: Mapping[str, Any],
    conversation: object,
    messages: list[Message],
    callbacks: SchedulerCallbacks | None = None,
    clock: Callable[[], float] | None = None,
) -> AsyncGenerator[dict[str, Any], None]:
    """Carry out a plan and yield its public events, the last of which is one ``done`` or one ``error``.

    ``scope`` says who asks, as for ``permission``; ``conversation`` is what the callbacks know it as; ``messages`` gets
    what the turn adds. Without ``callbacks`` the tools of the process's chat are used. Raises ``ValueError`` for a plan
    that is not to be read.
    """
    if prepared.mutation_plan is not None:
        raise ValueError("a mutation plan has nothing to read: give the turn to the ordinary loop")
    ports = callback_ports(
        callbacks or SchedulerCallbacks(),
        prepared.settings,
        scope=scope,
        conversation=conversation,
        messages=messages,
        resolver=prepared.resolver,
        summary=prepared.catalog_summary,
        clock=clock or time.monotonic,
    )
    try:
        async with aclosing(read_events(prepared, ports)) as events:
            async for event in events:
                if isinstance(event, TextChunk):
                    await ports.said(event.content)
                yield event_object(event)
    except TurnStopped as stop:
        yield event_object(stop.event)
    except Exception as error:
        logger.exception("a planned read failed")
        yield public_chat_error(error).as_event()


async def read_events(prepared: PreparedPlannedTurn, ports: ReadPorts) -> AsyncGenerator[Event, None]:
    """Carry out a read plan: yield its tool events, then the answer and ``Done``, or one ``Error``.

    Raises :class:`~gm_chat.engine.failures.TurnStopped` and what breaks a tool.
    """
    settings, events = prepared.settings, asyncio.Queue[Any]()
    began = ports.clock()
    ends_at = prepared.evidence_deadline
    board = Board(
        plan=prepared.plan,
        question=prepared.user_text,
        ports=ports,
        budget=prepared.budget,
        ends_at=began + settings.evidence_timeout_seconds if ends_at is None else ends_at,
        release=events.put_nowait,
        usage=prepared.usage,
    )
    board.tell("plan", role="planner", task_count=len(prepared.plan.tasks), trust_group_valid=True)
    async with aclosing(gather(board, events, slots=settings.max_concurrent_tasks)) as gathered:
        async for event in gathered:
            yield event
    coverage = _coverage(board)
    prepared.result = PlannedExecutionResult(board.statuses, board.reasons, board.store, coverage, board.usage)
    board.tell("latency", stage="evidence", stage_latency_ms=_milliseconds(ports.clock() - began))
    board.tell("coverage", coverage={"resolved": coverage.resolved, "total": coverage.total})
    for event in await _answer(board, prepared, coverage):
        yield event


async def _answer(board: Board, prepared: PreparedPlannedTurn, coverage: PlannedCoverage) -> list[Event]:
    """Write the answer; return the events that end the turn."""
    resolved = [task for task in board.plan.tasks if board.statuses[task.task_id] == "resolved"]
    reason: TerminalReason | None = None
    answer: SynthesisResult | None = None
    began = board.ports.clock()
    if not resolved:
        reason = board.reasons[board.plan.tasks[0].task_id]
    else:
        records = {item.evidence_id: item for task in resolved for item in board.findings(task).linked()}
        answer, reason = await _synthesized(board, prepared, list(records.values()), coverage)
        board.tell("latency", stage="synthesis", stage_latency_ms=_milliseconds(board.ports.clock() - began))
    counts = {"resolved": coverage.resolved, "total": coverage.total}
    board.tell("usage", input_tokens=board.usage.input_tokens, output_tokens=board.usage.output_tokens)
    board.tell("terminal", coverage=counts, terminal_reason=reason)
    if answer is None:
        return [planned_error(reason or "synthesis_failed")]
    said = orchestration(
        **counts, unresolved=coverage.unresolved, citations=citations(answer.evidence_ids, board.store)
    )
    return [TextChunk(answer.answer), Done(board.usage, said)]


async def _synthesized(
    board: Board, prepared: PreparedPlannedTurn, records: list[EvidenceRecord], coverage: PlannedCoverage
) -> tuple[SynthesisResult | None, TerminalReason | None]:
    """Return an answer, or why there is none; what it cost is added to the board's usage."""
    objectives = {task.task_id: task.objective for task in board.plan.tasks}
    said = {
        "resolved": coverage.resolved,
        "total": coverage.total,
        "not_resolved": [objectives[task_id] for task_id, _ in coverage.unresolved],
    }
    try:
        answer = await make_answer(
            prepared.user_text,
            records,
            said,
            board.budget,
            call=board.ports.call,
            seconds=prepared.settings.synthesis_timeout_seconds,
            clock=board.ports.clock,
            instructions=board.ports.instructions,
        )
    except SynthesisFailedError as error:
        logger.warning("a planned turn got no answer from its evidence: %s", "; ".join(error.defects))
        board.usage += error.usage or TokenUsage()
        return None, "synthesis_failed"
    except RoundBudgetExhausted as error:
        board.usage += error.usage or TokenUsage()
        return None, "budget_exhausted"
    except TimeoutError:
        return None, "deadline_exceeded"
    board.usage += answer.usage
    return answer, None


def _coverage(board: Board) -> PlannedCoverage:
    roots = board.plan.tasks
    unresolved = tuple((task.task_id, board.reasons[task.task_id]) for task in roots if task.task_id in board.reasons)
    return PlannedCoverage(len(roots) - len(unresolved), len(roots), unresolved)


def _milliseconds(seconds: float) -> int:
    return round(1000 * max(0.0, seconds))
