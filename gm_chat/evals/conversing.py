"""One run of one case: its messages become turns of the product, and what came of them is written down."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from gm_chat.engine.events import ConfirmMutation, Error, TextChunk, ToolCall, ToolResult
from gm_chat.engine.ports import ConfirmRequest, TurnRequest
from gm_chat.evals.record import Observed, ToolUse, Verdict
from gm_chat.host.problems import Failed
from gm_chat.persistence.ledger import Used
from gm_chat.prices import cost_of
from gm_chat.providers.base import TokenUsage
from gm_chat.transports.turns import begin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gm_chat.engine.events import Event
    from gm_chat.engine.ports import ClosedTurn
    from gm_chat.evals.case_runtime import CaseRuntime, CaseStore
    from gm_chat.evals.dataset import Case
    from gm_chat.plugin import Actor

__all__ = ["MODELS_FAULTS", "SCOPE", "Conversation", "converse", "observed"]

SCOPE: Final = {"type": "terminal"}
"""What a project's ``permission`` is told of where a message comes from."""

MODELS_FAULTS: Final = frozenset(
    {
        "tool_retry_limit",
        "turn_limit",
        "mutation_limit",
        "mutation_batch_unsupported",
        "invalid_plan",
        "manager_unresolved",
        "dependency_blocked",
        "budget_exhausted",
        "synthesis_failed",
    }
)
"""Codes of turns that ended without an answer by the model's own doing: the case has failed. Others are errors."""

TURN: Final = "turn"
"""The judge that says so."""


@dataclass(slots=True)
class Conversation:
    """What came of a case so far. A case that breaks off keeps what it has."""

    questions: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    confirmations: list[str] = field(default_factory=list)
    ended_by: Error | None = None
    _calls: dict[str, ToolCall] = field(default_factory=dict)
    _results: dict[str, Any] = field(default_factory=dict)

    @property
    def calls(self) -> tuple[ToolUse, ...]:
        """The calls in the order in which they were made; the result is ``None`` where none came."""
        return tuple(
            ToolUse(name=call.name, arguments=call.args, result=self._results.get(call.id))
            for call in self._calls.values()
        )

    @property
    def fault(self) -> Verdict | None:
        """The verdict on a model that did not get to an answer."""
        if self.ended_by is None or self.ended_by.code not in MODELS_FAULTS:
            return None
        return Verdict(judge=TURN, passed=False, why=f"no answer, {self.ended_by.code}: {self.ended_by.message}")

    def hear(self, event: Event) -> None:
        """Take note of an event of the turn that runs."""
        match event:
            case TextChunk(content=content):
                self.answers[-1] += content
            case ToolCall():
                self._calls[event.id] = event
            case ToolResult(id=call_id, result=result):
                self._results[call_id] = result
            case ConfirmMutation(mutation=mutation):
                self.confirmations.append(mutation)
            case Error():
                self.ended_by = event
            case _:
                pass


async def converse(case: Case, runtime: CaseRuntime, actor: Actor, said: Conversation) -> None:
    """Send the case's messages one after the other, and note in ``said`` what comes of them.

    A mutation that is put before the user is approved, unless the case expects that none is: then it is rejected. A
    turn that ends in an error is the last one. Cancelled, it stops the turn first.
    """
    approved = case.hard.confirmation != "none"
    try:
        for message in case.conversation:
            said.questions.append(message.user)
            said.answers.append("")
            request: TurnRequest | ConfirmRequest
            request = TurnRequest(actor=actor, text=message.user, transport="terminal", scope=SCOPE)
            while isinstance(last := await _follow(runtime, request, said), ConfirmMutation):
                request = ConfirmRequest(
                    actor=actor, confirmation_id=last.id, approved=approved, transport="terminal", scope=SCOPE
                )
            if said.ended_by is not None:
                return
    finally:
        await runtime.runner.wait_closed(grace_seconds=0)


async def _follow(runtime: CaseRuntime, request: TurnRequest | ConfirmRequest, said: Conversation) -> Event:
    """Let a turn run to its end or pause, and return its last event."""
    place = (await begin(runtime.runner, request)).place
    if isinstance(place, Error):
        said.hear(place)
        return place
    try:
        events = [logged.event for logged in await runtime.runner.collect(*place, actor=request.actor)]
    except asyncio.CancelledError:
        await runtime.runner.cancel(place[0], actor=request.actor)
        raise
    for event in events:
        said.hear(event)
    return events[-1]


def observed(said: Conversation, runtime: CaseRuntime, store: CaseStore, began: float, **which: Any) -> Observed:
    """Sum up a conversation that began at ``began`` (``time.perf_counter()``); ``which`` names case and run."""
    usage = _usage(store.closed.values())
    counted = usage.reported and bool(store.closed)
    return Observed(
        **which,
        questions=tuple(said.questions),
        answers=tuple(said.answers),
        calls=said.calls,
        confirmations=tuple(said.confirmations),
        rounds=runtime.tally.rounds,
        input_tokens=usage.input_tokens if counted else None,
        output_tokens=usage.output_tokens if counted else None,
        cost=_cost(store.closed.values(), runtime.settings.prices),
        seconds=round(time.perf_counter() - began, 3),
        error=_error(said, runtime.tally.failure),
    )


def _usage(turns: Iterable[ClosedTurn]) -> TokenUsage:
    return sum((turn.usage for turn in turns), TokenUsage())


def _cost(turns: Iterable[ClosedTurn], prices: Mapping[str, Any]) -> Decimal | None:
    """The sum over all that was billed; ``None`` if part of it has no price or no count."""
    costs = [
        cost_of(model, _used(usage), prices) if usage.reported else None
        for turn in turns
        for model, usage in turn.spent.items()
    ]
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal(0)) if known and len(known) == len(costs) else None


def _used(usage: TokenUsage) -> Used:
    return Used(
        turns=1,
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
    )


def _error(said: Conversation, failure: BaseException | None) -> str:
    ended = said.ended_by
    if ended is None or ended.code in MODELS_FAULTS:
        return ""
    return f"{ended.code}: {ended.message if failure is None else Failed(failure)}"
