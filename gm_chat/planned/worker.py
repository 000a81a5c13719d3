"""One task at work: an executor is asked again and again, until the task is resolved or nothing more comes of it.

A round is fruitless if it brings neither evidence nor anything else that is new: a call that failed or was made before,
words that are no action. After one the simple executor hands over to the complex one, after :data:`PATIENCE` in a row
that one to the fallback; a call that is refused for the third time ends anyone's patience. Whoever has evidence for
every requirement and goes on without fruit is done: the task is resolved by what there is. Small models often find the
rows at once and then do not know how to stop.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gm_chat.encoding import to_json
from gm_chat.engine.failures import TurnStopped
from gm_chat.engine.messages import SAME_MISTAKE, CallIds, assistant_message, marked, tool_message
from gm_chat.planned.actions import Block, Calculate, Complete, SpawnChildren, read_action
from gm_chat.planned.budget import RoundBudgetExhausted
from gm_chat.planned.calculations import CalculationError
from gm_chat.planned.executor import CALCULATION_SCHEMA, described, executor_prompt
from gm_chat.planned.lookups import Lookups
from gm_chat.planned.provider_calls import InvalidProviderRoundError
from gm_chat.planned.reading import DefectError, UnreadableError
from gm_chat.planned.resolver import AUDIT_MATCH_SOURCES
from gm_chat.planned.routing import select_executor_role
from gm_chat.planned.validation import validate_dynamic_children
from gm_chat.providers.base import Message, ProviderError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gm_chat.planned.board import Board
    from gm_chat.planned.evidence import EvidenceRecord
    from gm_chat.planned.findings import Findings
    from gm_chat.planned.models import PlannedTask, TerminalReason
    from gm_chat.planned.provider_calls import ProviderRoundResult
    from gm_chat.planned.resolver import ManagerCandidate
    from gm_chat.providers.base import ToolCallEvent, ToolDefinition

__all__ = ["PATIENCE", "work_on"]

logger = logging.getLogger("gm_chat.planned")

PATIENCE: Final = 3
"""Fruitless rounds in a row that an executor gets."""

MOMENT: Final = 0.01
"""Seconds that a timer may be early."""

MAX_OUTLINED: Final = 3
"""Candidates whose schema an executor is shown; a simple one, for whom nothing is in doubt, sees the first alone."""

_SHARED_TOOLS: Final = frozenset({"query", "aggregate"})
_TOOLS_OF: Final = {"schema": "get_manager_schema", "path": "find_path"}


async def work_on(board: Board, task: PlannedTask, given: Sequence[EvidenceRecord]) -> None:
    """Work a task, and settle it on the board; ``given`` is the evidence of the tasks that it depends on.

    Raises :class:`~gm_chat.engine.failures.TurnStopped` and what breaks a tool: either ends the turn.
    """
    board.statuses[task.task_id] = "running"
    began = board.ports.clock()
    worker = _Worker.of(board, task, given)
    try:
        reason = await worker.run()
    except RoundBudgetExhausted:
        reason = None if worker.findings.settle() else "budget_exhausted"
    board.settle(task, reason)
    took = round(1000 * max(0.0, board.ports.clock() - began))
    board.tell("latency", task, stage="evidence", task_latency_ms=took)


@dataclass(frozen=True, slots=True)
class _Fruit:
    """A round brought something."""


@dataclass(frozen=True, slots=True)
class _NoFruit:
    """A round brought nothing new.

    ``may_settle``: the executor has nothing else in mind, as far as one can see. ``is_stuck``: it was told that it sent
    a refused call again, and sent it once more.
    """

    may_settle: bool = True
    is_stuck: bool = False


@dataclass(frozen=True, slots=True)
class _End:
    """The task is over; without a ``reason`` it is resolved."""

    reason: TerminalReason | None = None


_Outcome: TypeAlias = _Fruit | _NoFruit | _End


@dataclass(slots=True, kw_only=True)
class _Worker:
    board: Board
    task: PlannedTask
    lookups: Lookups
    role: str
    messages: list[Message]
    has_candidates: bool
    fruitless: int = 0
    ids: CallIds = field(default_factory=CallIds)

    @classmethod
    def of(cls, board: Board, task: PlannedTask, given: Sequence[EvidenceRecord]) -> _Worker:
        """Choose the executor and write down what it reads first."""
        board.findings(task).foreign.update({record.evidence_id: record for record in given})
        candidates = _candidates(board, task)
        role = select_executor_role(
            task,
            unique_manager=sum(item.exact or item.named for item in candidates) == 1,
            path_depth=None,
            prior_failure=False,
        )
        board.tell("route", task, role=role, route="selected", escalated=False)
        messages = executor_prompt(
            task,
            question=board.question,
            outline=board.ports.outline(
                [item.manager for item in candidates[: 1 if role == "simple_executor" else MAX_OUTLINED]]
            ),
            given=given,
            may_divide=role == "complex_executor" and task.parent_id is None,
            instructions=board.ports.instructions,
        )
        return cls(
            board=board,
            task=task,
            lookups=Lookups(board, task),
            role=role,
            messages=messages,
            has_candidates=bool(candidates),
        )

    @property
    def findings(self) -> Findings:
        """The task's evidence."""
        return self.board.findings(self.task)

    async def run(self) -> TerminalReason | None:
        """Ask until the task is over; return ``None`` if it is resolved."""
        if not self.has_candidates and self.board.ports.resolver is not None:
            return "manager_unresolved"
        while True:
            if self.board.left() <= 0:
                return "deadline_exceeded"
            outcome = await self._round()
            match outcome:
                case _End(reason=reason):
                    return reason
                case _Fruit():
                    self.fruitless = 0
                case _NoFruit(may_settle=may_settle, is_stuck=is_stuck):
                    if may_settle and self.findings.settle():
                        return None
                    self.fruitless = PATIENCE if is_stuck else self.fruitless + 1
                    if not self._escalate():
                        return None if self.findings.settle() else "budget_exhausted"

    def _escalate(self) -> bool:
        """Hand over after fruitless rounds; return whether somebody is left to be asked."""
        if self.role == "simple_executor":
            self._hand_over("complex_executor")
        elif self.fruitless >= PATIENCE:
            if self.role == "fallback_executor":
                return False
            self._hand_over("fallback_executor")
        return True

    def _hand_over(self, role: str) -> None:
        self.role, self.fruitless = role, 0
        self.board.tell("route", self.task, role=role, route="escalated", escalated=True)

    # --- a round ------------------------------------------------------------------------------------------------

    async def _round(self) -> _Outcome:
        self._charge()
        only_calculate = self.fruitless > 0 and self._lacks_only_calculations()
        try:
            result = await self.board.ports.call(
                self.role,
                self.messages,
                () if only_calculate else self._tools(),
                seconds=self.board.left(),
                response_format=CALCULATION_SCHEMA if only_calculate else None,
            )
        except InvalidProviderRoundError as error:
            if error.usage is not None:
                self.board.usage += error.usage
            return self._notice(error.detail)
        except ProviderError as error:
            return self._provider_failed(error)
        except TurnStopped:
            raise
        except TimeoutError as error:  # the task's, or one of the provider's own
            return _End("deadline_exceeded") if self.board.left() < MOMENT else self._provider_failed(error)
        except Exception as error:  # noqa: BLE001 - a provider may raise anything; the fallback may fare better
            return self._provider_failed(error)
        self.board.usage += result.usage
        if result.tool_call is not None:
            return await self._tool(result, result.tool_call)
        self.messages.append(assistant_message(result.text, (), provider=result.provider, metadata=result.metadata))
        return await self._act(result.text)

    def _charge(self) -> None:
        budget, root = self.board.budget, self.task.root_id
        if budget.executor_remaining(root) <= 0:
            raise RoundBudgetExhausted(f"nothing is left for the task {self.task.task_id!r}", root_id=root)
        budget.consume_subtree(root)
        self.board.tell(
            "budget",
            self.task,
            subtree_rounds_used=budget.subtree_count(root),
            subtree_rounds_remaining=budget.subtree_remaining[root],
            global_rounds_used=budget.global_count,
            global_rounds_remaining=budget.global_remaining,
        )

    def _provider_failed(self, error: Exception) -> _Outcome:
        logger.warning("the %s of a planned turn failed: %s: %s", self.role, type(error).__name__, error)
        if self.role == "fallback_executor":
            return _End(None if self.findings.settle() else "provider_failed")
        self._hand_over("fallback_executor")
        return _Fruit()  # another provider is asked, which is new

    def _tools(self) -> list[ToolDefinition]:
        """A simple task is shown the tools that its requirements need, others all that read."""
        tools = self.board.ports.tools.definitions
        if self.role != "simple_executor":
            return list(tools)
        kinds = {requirement.kind for requirement in self.task.requirements}
        wanted = _SHARED_TOOLS | {tool for kind, tool in _TOOLS_OF.items() if kind in kinds}
        return [tool for tool in tools if tool.name in wanted] or list(tools)

    def _lacks_only_calculations(self) -> bool:
        missing = self.findings.missing()
        return bool(missing) and all(item.kind == "calculation" for item in missing)

    def _notice(self, detail: str, *, may_settle: bool = True) -> _Outcome:
        self.messages.append(Message("user", f"That cannot be used: {detail}. Reply with one tool call or one action."))
        return _NoFruit(may_settle)

    # --- actions ------------------------------------------------------------------------------------------------

    async def _act(self, text: str) -> _Outcome:
        try:
            match action := read_action(text):
                case Complete(evidence_ids=ids):
                    self.findings.complete(ids)
                    return _End()
                case Block(reason=reason):
                    return self._blocked(reason)
                case Calculate():
                    return self._calculate(action)
                case SpawnChildren(payload=payload):
                    return await self._divide(payload)
        except UnreadableError as error:
            return self._notice(error.detail)  # words of its own
        except DefectError as error:
            return self._notice(error.detail, may_settle=False)
        except CalculationError as error:
            return self._notice(str(error), may_settle=False)

    def _blocked(self, reason: str) -> _Outcome:
        logger.info("an executor of a planned turn gave up: %s", reason)
        return _End("dependency_blocked" if self.findings.own else "manager_unresolved")

    def _calculate(self, action: Calculate) -> _Outcome:
        record = self.findings.calculate(action)
        self.board.tell("evidence", self.task, progress="evidence_added", evidence_counts=self.board.counts(self.task))
        if self.findings.settle():
            return _End()
        self.messages.append(Message("user", to_json(described(record))))
        return _Fruit()

    async def _divide(self, payload: Mapping[str, Any]) -> _Outcome:
        """Work the children that the executor wants, one after the other, and show it what they found."""
        children = validate_dynamic_children(self.task, payload, self.board.tasks)
        self.board.tasks.extend(children)
        self.board.statuses.update({child.task_id: "pending" for child in children})
        waiting = list(children)
        while waiting:
            names = {item.task_id for item in waiting}
            child = next(item for item in waiting if names.isdisjoint(item.depends_on))
            waiting.remove(child)
            await self._work_child(child)
        found = []
        for child in children:
            records = self.board.findings(child).linked() if self.board.statuses[child.task_id] == "resolved" else ()
            self.findings.foreign.update({record.evidence_id: record for record in records})
            found.append({"task_id": child.task_id, "results": [described(record) for record in records]})
        key = f"{self.board.ports.plan_id}:{self.task.task_id}:{len(self.messages)}"
        self.messages.append(Message("user", marked(to_json({"children": found}), key)))
        return _Fruit() if any(item["results"] for item in found) else _NoFruit(may_settle=False)

    async def _work_child(self, child: PlannedTask) -> None:
        family = {task.task_id: task for task in self.board.tasks}
        needed = [family[name] for name in child.depends_on]
        if any(item is not self.task and self.board.statuses[item.task_id] != "resolved" for item in needed):
            self.board.settle(child, "dependency_blocked")
            return
        given = [
            record
            for item in needed
            for record in (self.findings.own if item is self.task else self.board.findings(item).linked())
        ]
        await work_on(self.board, child, given)

    # --- tools --------------------------------------------------------------------------------------------------

    async def _tool(self, result: ProviderRoundResult, request: ToolCallEvent) -> _Outcome:
        call = self.board.ports.tools.mint(request)
        id = self.ids.claim(call)
        self.messages.append(assistant_message("", [(id, call)], provider=result.provider, metadata=result.metadata))
        found = await self.lookups.answer(call)
        answer = tool_message(id, call.name, found.shown, key=call.id)
        if found.advice:
            answer = replace(answer, content=f"{answer.content}\n{found.advice}")
        self.messages.append(answer)
        if found.refusals:
            self.messages.append(Message("user", SAME_MISTAKE))
        return _Fruit() if found.is_new else _NoFruit(found.is_repeated, is_stuck=found.refusals > 1)


def _candidates(board: Board, task: PlannedTask) -> Sequence[ManagerCandidate]:
    resolver = board.ports.resolver
    if resolver is None:
        return ()
    text = " ".join([task.objective, *(requirement.description for requirement in task.requirements)])
    found = resolver.resolve(text)
    sources = {AUDIT_MATCH_SOURCES[reason]: None for item in found for reason in item.explanations}
    board.tell("candidate", task, candidate_count=len(found), match_sources=list(sources))
    return found
