"""Answering the tool calls of one task: each read once in a turn, its result kept as evidence.

A call that another task makes at the same time, or has made, is not made again: its result becomes evidence of this
task, too, and clients see one call. A call that failed may be made again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gm_chat.engine.events import ToolCall, ToolResult
from gm_chat.engine.messages import mending
from gm_chat.planned.evidence import InvalidEvidenceError, canonical_call_identity, evidence_kind
from gm_chat.planned.executor import described
from gm_chat.plugin.errors import ToolError

if TYPE_CHECKING:
    from gm_chat.engine.messages import Call
    from gm_chat.planned.board import Board
    from gm_chat.planned.models import PlannedTask
    from gm_chat.planned.ports import ToolRun

__all__ = ["Looked", "Lookups"]

_CORE: Final = frozenset({"search_managers", "get_manager_schema", "find_path", "query", "aggregate"})
_REPEATED: Final = "You have made this call before. Use its result, or make another one."


@dataclass(frozen=True, slots=True)
class Looked:
    """What came of a call: what the executor is shown, and whether that is new to it.

    ``advice`` says how a call would be right, ``refusals`` counts how often it was refused before this refusal.
    """

    shown: Any
    is_new: bool = False
    is_repeated: bool = False
    advice: str = ""
    refusals: int = 0


class Lookups:
    """The calls of one task."""

    def __init__(self, board: Board, task: PlannedTask) -> None:
        self._board = board
        self._task = task
        self._seen: set[str] = set()
        self._refused: Counter[str] = Counter()

    async def answer(self, call: Call) -> Looked:
        """Run a call, unless it cannot be run or was made before. Raises what breaks a tool."""
        names = [tool.name for tool in self._board.ports.tools.definitions]
        if call.name not in names:
            return _failed("unknown_tool", f"there is no tool {call.name!r}; there are: {', '.join(names)}")
        if call.problem is not None:
            return _failed("invalid_arguments", call.problem)
        try:
            identity = canonical_call_identity(call.name, call.args)
        except InvalidEvidenceError as error:
            return _failed("invalid_arguments", str(error))
        known = self._board.findings(self._task).with_call(identity)
        is_repeated = known is not None or identity in self._seen
        self._board.tell("tool_call", self._task, canonical_call_identity=identity, duplicate=is_repeated)
        if is_repeated:
            place = {} if known is None else {"evidence_id": known.evidence_id}
            return Looked({"note": _REPEATED, **place}, is_repeated=True)
        call_id, run = await self._run(call, identity)
        if run.is_error:
            refusals = self._refused[identity]
            self._refused[identity] += 1
            return Looked(run.result, advice=mending(call.name, run.result), refusals=refusals)
        self._seen.add(identity)
        return self._keep(call, call_id, identity, run.result)

    def _keep(self, call: Call, call_id: str, identity: str, result: Any) -> Looked:
        kind = evidence_kind(call.name, result)
        if kind is None and call.name not in _CORE and result is not None:
            kind = "query"  # what a plugin's tool has read
        if kind is None:
            return Looked(result, is_new=True)
        try:
            record = self._board.findings(self._task).add(
                kind, identity, result, {"tool": call.name, "call_id": call_id}
            )
        except InvalidEvidenceError as error:
            return _failed("unusable_result", str(error))
        counts = self._board.counts(self._task)
        self._board.tell(
            "tool_result",
            self._task,
            canonical_call_identity=identity,
            duplicate=False,
            progress="evidence_added",
            evidence_counts=counts,
        )
        self._board.tell("evidence", self._task, progress="evidence_added", evidence_counts=counts)
        return Looked(described(record), is_new=True, advice=mending(call.name, result))

    async def _run(self, call: Call, identity: str) -> tuple[str, ToolRun]:
        """Run a call, or wait for an equal one of another task; return the id under which clients know it."""
        runs = self._board.runs
        while (other := runs.get(identity)) is not None:
            await asyncio.wait({other})
            if not other.cancelled():
                return other.result()
        ours = runs[identity] = asyncio.get_running_loop().create_future()
        self._board.release(ToolCall(call.id, call.name, call.args, self._task.task_id))
        try:
            run = await self._board.ports.tools.run(call)
        except BaseException:
            del runs[identity]
            ours.cancel()
            raise
        self._board.release(ToolResult(call.id, call.name, run.result, self._task.task_id))
        if run.is_error:
            del runs[identity]  # it may be tried again
        ours.set_result((call.id, run))
        if run.failure is not None:
            raise run.failure
        return call.id, run


def _failed(code: str, message: str) -> Looked:
    return Looked(ToolError(code, message).as_result())
