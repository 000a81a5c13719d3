"""The loop for questions that are worth a plan: plan, gather evidence, answer from it alone.

Everything that a turn has applies here as it does to the ordinary loop, since the engine does it: every provider call
goes through :meth:`~gm_chat.engine.state.TurnState.ask`, every tool call through the turn's toolbox. What changes data
is the ordinary loop's, unchanged. (Specification: "Planned read orchestration".)
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from gm_chat.engine.events import Done, Error, TextChunk
from gm_chat.engine.failures import TurnStopped
from gm_chat.engine.history import addressed_to
from gm_chat.engine.limits import Outcome
from gm_chat.engine.prompt import manager_outline
from gm_chat.loops.legacy import legacy_loop
from gm_chat.planned.budget import RoundBudgetExhausted
from gm_chat.planned.config import planned_chat_settings, profile_for_role
from gm_chat.planned.planner import InvalidPlanError, make_plan
from gm_chat.planned.ports import ReadPorts, ToolRun
from gm_chat.planned.provider_calls import collect_round
from gm_chat.planned.resolver import ManagerResolver
from gm_chat.planned.router import is_worth_a_plan
from gm_chat.planned.scheduler import prepare_planned_turn, read_events
from gm_chat.providers.base import CallOptions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from gm_chat.engine.events import Event
    from gm_chat.engine.messages import Call
    from gm_chat.engine.ports import ProviderHandle
    from gm_chat.engine.state import TurnState
    from gm_chat.managers.api import ManagerView
    from gm_chat.planned.budget import RoundBudget
    from gm_chat.planned.config import PlannedChatSettings
    from gm_chat.planned.planner import PlanningResult
    from gm_chat.planned.provider_calls import ProviderRoundResult
    from gm_chat.planned.scheduler import PreparedPlannedTurn
    from gm_chat.providers.base import Message, ToolCallEvent, ToolDefinition

__all__ = ["planned_loop"]

MAX_SEARCHED: Final = 10
"""Managers that the resolver ranks."""

KEPT_RESOLVERS: Final = 32


async def planned_loop(turn: TurnState) -> AsyncGenerator[Event, None]:
    """Work a turn by a plan, or hand it to the ordinary loop: what writes, and what is not worth a plan."""
    prepared = ports = None
    if not turn.has_called:  # a turn that goes on after its user's word is the ordinary loop's
        ports = await _ports(turn)
        if _is_planned(turn, ports):
            prepared = await _prepare(turn, ports)
    if ports is None or prepared is None or prepared.mutation_plan is not None:
        async with aclosing(legacy_loop(turn)) as events:
            async for event in events:
                yield event
        return
    async with aclosing(read_events(prepared, ports)) as events:
        async for event in events:
            match event:
                case Done(orchestration=orchestration):
                    turn.orchestration = orchestration
                case Error(code=code):
                    raise TurnStopped(code)
                case TextChunk(content=content):
                    turn.transcript.write(content)
                    turn.transcript.end_round()
                    yield event
                case _:
                    yield event


def _is_planned(turn: TurnState, ports: ReadPorts) -> bool:
    if turn.services.settings.planned.mode == "always":
        return True
    assert ports.resolver is not None  # noqa: S101 - _ports() gives one
    question = turn.context.text
    said = sum(message.role == "user" for message in turn.transcript.messages)
    planned = is_worth_a_plan(question, ports.resolver.resolve(question), has_history=said > 1)
    ports.tell("route", {"plan_id": ports.plan_id, "route": "planned" if planned else "legacy"})
    return planned


async def _prepare(turn: TurnState, ports: ReadPorts) -> PreparedPlannedTurn:
    """Make a plan, or stop the turn with the reason why there is none."""
    settings = planned_chat_settings(turn.services.settings)

    async def planner(
        text: str, messages: Sequence[Message], settings: PlannedChatSettings, budget: RoundBudget, summary: object
    ) -> PlanningResult:
        return await make_plan(
            text,
            messages,
            budget,
            summary,
            call=ports.call,
            seconds=settings.evidence_timeout_seconds,
            instructions=ports.instructions,
        )

    began = ports.clock()
    try:
        return await prepare_planned_turn(
            turn.context.text,
            list(turn.transcript.messages),
            settings,
            turn.outline(),
            planner=planner,
            resolver=ports.resolver,
            clock=ports.clock,
        )
    except InvalidPlanError as error:
        reason = "provider_failed" if error.only_failures else "invalid_plan"
    except RoundBudgetExhausted:
        reason = "budget_exhausted"
    except TimeoutError:
        reason = "deadline_exceeded"
    finally:
        took = round(1000 * (ports.clock() - began))
        ports.tell("latency", {"plan_id": ports.plan_id, "stage": "planning", "stage_latency_ms": took})
    ports.tell("terminal", {"plan_id": ports.plan_id, "terminal_reason": reason})
    raise TurnStopped(reason)


# --- the turn as ports -------------------------------------------------------------------------------------------


async def _ports(turn: TurnState) -> ReadPorts:
    view = await turn.tools.managers.view(turn.context.actor)
    return ReadPorts(
        call=_Rounds(turn),
        tools=_ReadTools(turn),
        resolver=_resolver(view),  # type: ignore[arg-type]  # views are hashed by identity
        outline=partial(_outline, view),
        tell=partial(turn.services.observer.planned, turn.context),
        instructions=turn.instructions,
        plan_id=turn.context.turn_id,
        clock=time.monotonic,
    )


class _Rounds:
    """Makes a planned turn's provider calls: a :class:`~gm_chat.planned.provider_calls.RoundCaller`."""

    def __init__(self, turn: TurnState) -> None:
        self._turn = turn
        self._settings = planned_chat_settings(turn.services.settings)
        self._handles: dict[str, ProviderHandle] = {}

    async def __call__(
        self,
        role: str,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        *,
        seconds: float,
        response_format: Mapping[str, Any] | None = None,
    ) -> ProviderRoundResult:
        turn = self._turn
        handle = await self._handle(role)
        left = turn.in_time(CallOptions(deadline=seconds)).deadline
        deadline = seconds if left is None else min(seconds, left)
        options = CallOptions(deadline=deadline, response_format=response_format)
        name = (handle or turn.provider).name
        # Words before a call are lost: nobody is shown them, and many models cannot call without.
        result = await collect_round(
            turn.ask(addressed_to(name, messages), tools, options, handle), seconds=seconds, name=name, drop_words=True
        )
        if result.tool_call is not None:
            await turn.allowance.check()
        return result

    async def _handle(self, role: str) -> ProviderHandle | None:
        """The provider of a role; ``None`` for the turn's own, which has the turn's fallback."""
        profile = profile_for_role(self._settings, role)
        if not profile.configured:
            return None
        if profile.name not in self._handles:
            self._handles[profile.name] = await self._turn.services.profile_provider(profile.name)
        return self._handles[profile.name]


class _ReadTools:
    """The turn's tools that change nothing, each call of which is kept and told like any other."""

    def __init__(self, turn: TurnState) -> None:
        self._turn = turn
        self.definitions = turn.tools.read_definitions

    def mint(self, request: ToolCallEvent) -> Call:
        """Give a request an id of ours."""
        return self._turn.tools.mint([request])[0]

    async def run(self, call: Call) -> ToolRun:
        """Run a call, which the round that asked for it has found within the actor's budgets."""
        turn = self._turn
        turn.has_called = True
        (answer,) = await turn.tools.run([call])
        # The history of the conversation is the turn's provider's; what an executor's keeps to itself stays there.
        kept = replace(call, provider_id=None, metadata=None)
        turn.transcript.end_round([kept])
        turn.transcript.answer([(kept, answer.result)])
        await turn.services.observer.tool_finished(turn.context, call.id, call.name, call.args, answer.result)
        is_error = answer.outcome in (Outcome.FAILED, Outcome.UNREADABLE)
        return ToolRun(answer.result, is_error, answer.failure)


# --- the actor's view as the resolver's index --------------------------------------------------------------------


@lru_cache(maxsize=KEPT_RESOLVERS)
def _resolver(view: ManagerView) -> ManagerResolver:
    """The resolver of a view, which actors of equal rights share: it remembers the words of managers."""
    return ManagerResolver(
        _Summaries(view), view.catalog, path_finder=partial(_path, view), search=partial(_search, view)
    )


class _Summaries(Mapping[str, Mapping[str, Any]]):
    """What the resolver reads of the managers, made for those that it looks at."""

    def __init__(self, view: ManagerView) -> None:
        self._view = view

    def __len__(self) -> int:
        return sum(1 for _ in self._view)

    def __iter__(self) -> Iterator[str]:
        return (info.name for info in self._view)

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        info = self._view.get(name)
        if info is None:
            raise KeyError(name)
        return {
            "manager": info.name,
            "description": info.description,
            "fields": [field.name for field in info.fields],
            "relations": [{"name": relation.name, "target": relation.target} for relation in info.relations],
        }


def _search(view: ManagerView, text: str) -> list[str]:
    return [info.name for info in view.search(text, limit=MAX_SEARCHED)]


def _path(view: ManagerView, start: str, goal: str) -> Sequence[str] | None:
    paths = view.find_paths(start, goal)
    return paths[0] if paths else None


def _outline(view: ManagerView, names: Sequence[str]) -> str:
    """Managers as an executor sees them."""
    lines = ["Managers, with their fields and paths to related ones:"]
    for name in names:
        info = view.get(name)
        if info is not None:
            lines.append(manager_outline(info, view))
    return "\n".join(lines) if len(lines) > 1 else ""
