"""How long the tasks of one plan take side by side, where each waits for one slow read and nothing else."""

# ruff: noqa: ARG002 (the fakes have the signatures of their protocols and need only some of the arguments)

from __future__ import annotations

import asyncio
import itertools
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from gm_chat.engine.messages import Call
from gm_chat.planned.config import PlannedChatSettings
from gm_chat.planned.models import EvidenceRequirement, PlannedTask, ValidatedPlan
from gm_chat.planned.ports import ReadPorts, ToolRun
from gm_chat.planned.provider_calls import ProviderRoundResult
from gm_chat.planned.scheduler import PreparedPlannedTurn, read_events
from gm_chat.providers.base import TokenUsage, ToolCallEvent, ToolDefinition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gm_chat.providers.base import Message

__all__ = ["tasks_side_by_side"]


async def tasks_side_by_side(number: int, *, latency: float, slots: int) -> float:
    """Gather evidence for so many tasks, each of one read of ``latency`` seconds; return the seconds it took."""
    needed = EvidenceRequirement("r1", "query", "Parts", None)
    names = [f"t{count}" for count in range(1, number + 1)]
    tasks = tuple(PlannedTask(name, "Parts", (), (needed,), ("r1",), ()) for name in names)
    settings = PlannedChatSettings(enabled=True, profiles={}, roles={}, catalog_source=None, max_concurrent_tasks=slots)
    prepared = PreparedPlannedTurn.for_plan(ValidatedPlan("read", tasks), settings, user_text="Which parts?")
    outside = _Outside(latency)
    ports = ReadPorts(call=outside, tools=outside, resolver=None, outline=lambda _: "", tell=outside.tell)
    async with aclosing(read_events(prepared, ports)) as events:
        async for _ in events:
            pass
    if prepared.result is None or prepared.result.coverage.resolved != number:
        raise RuntimeError(f"not every task was resolved: {prepared.result!r}")
    return outside.evidence_seconds


class _Outside:
    """Executors that read once and are done, a synthesizer, and a tool that takes its time."""

    definitions = (ToolDefinition("query", "Reads.", {"type": "object"}),)

    def __init__(self, latency: float) -> None:
        self._latency = latency
        self._ids = itertools.count(1)
        self.evidence_seconds = 0.0
        self._began = time.perf_counter()

    async def __call__(
        self,
        role: str,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        *,
        seconds: float,
        response_format: Mapping[str, Any] | None = None,
    ) -> ProviderRoundResult:
        usage = TokenUsage()
        if not tools:
            return ProviderRoundResult('{"answer": "Some.", "evidence_ids": ["t1:query:1"]}', None, usage)
        name = messages[1].content.split(":")[0].removeprefix("Task ")
        if messages[-1].role != "tool":
            return ProviderRoundResult("", ToolCallEvent("", "query", {"task": name}), usage)
        return ProviderRoundResult(f'{{"action": "complete", "evidence_ids": ["{name}:query:1"]}}', None, usage)

    def mint(self, request: ToolCallEvent) -> Call:
        return Call(f"call-{next(self._ids)}", request.name, request.args)

    async def run(self, call: Call) -> ToolRun:
        await asyncio.sleep(self._latency)
        return ToolRun({"data": [], "total_count": 0, "has_more": False})

    def tell(self, event_type: str, payload: Mapping[str, Any]) -> None:
        if event_type == "coverage":
            self.evidence_seconds = time.perf_counter() - self._began
