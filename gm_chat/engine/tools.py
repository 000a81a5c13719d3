"""Running the tool calls of one completion, and remembering what this turn has read.

What a tool call can come to, and who learns of it:

* a result, or a :class:`~gm_chat.plugin.ToolError` as ``{"error": {...}}``: the model, the client and the observer;
* any other exception: the call is answered with ``internal_error``, so that neither a client nor the stored history
  is left with an open call, and :attr:`Answer.failure` carries the exception. The loop then ends the turn with
  ``chat_error`` (specification: unexpected exceptions are reported as that event): a model told to go on without its
  data would make it up, and a write that broke half-way must not be tried again.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from gm_chat.encoding import UnencodableError, canonical_json, jsonable
from gm_chat.engine.arguments import mismatch
from gm_chat.engine.events import ToolResult
from gm_chat.engine.limits import Outcome
from gm_chat.engine.messages import Call
from gm_chat.engine.permits import PermittedManagers, require
from gm_chat.plugin.context import ToolContext, TurnContext
from gm_chat.plugin.decisions import Action
from gm_chat.plugin.errors import ToolError

if TYPE_CHECKING:
    from gm_chat.engine.ports import StoredMessage, TurnServices
    from gm_chat.plugin.specs import ToolSpec
    from gm_chat.providers.base import ToolCallEvent, ToolDefinition

__all__ = ["MUTATE", "Answer", "Toolbox", "broken", "failed"]

MUTATE: Final = "mutate"
"""The built-in write tool. It runs many mutations, each of which is asked about as it runs; any other is one itself."""

_INTERNAL: Final = ToolError(
    "internal_error", "The tool failed on the server. Its data is not available; do not guess it."
)
_NO_MORE_CALLS: Final = ToolError("no_more_calls", "No further tool call is possible in this turn.")


@dataclass(frozen=True, slots=True)
class Answer:
    """A call's result (a JSON value), what it brought, and the exception that broke the tool, if any.

    ``refusals`` says how often the very call was refused before, if it was refused again.
    """

    call: Call
    result: Any
    outcome: Outcome
    failure: Exception | None = None
    refusals: int = 0

    @property
    def event(self) -> ToolResult:
        """What clients are told."""
        return ToolResult(self.call.id, self.call.name, self.result)


class Toolbox:
    """The tools of one turn. Reads of a batch run side by side; a read that is repeated is answered from memory."""

    def __init__(self, specs: Sequence[ToolSpec], *, services: TurnServices, context: TurnContext) -> None:
        """Hold the tools that the host gave this turn."""
        self._specs = {spec.definition.name: spec for spec in specs}
        self._services = services
        self._context = context
        self.managers = PermittedManagers(services, context)
        """What the tools read and write through."""
        self._read: dict[str, Any] = {}
        self._refused: Counter[str] = Counter()
        self._fresh: list[Answer] = []
        self._has_read = False

    def recall(self, rows: Iterable[StoredMessage]) -> None:
        """Know what the model reads of earlier rounds and turns: their results may hold text of records."""
        self._note_read(row.tool_name or "" for row in rows if row.role == "tool")

    def note_records(self) -> None:
        """Know that text of records is before the model."""
        self._has_read = True

    def _note_read(self, names: Iterable[str]) -> None:
        specs = map(self._specs.get, names)  # what a tool wrote that is gone by now may be anything
        self._has_read = self._has_read or any(spec is None or spec.reads_records for spec in specs)

    @property
    def definitions(self) -> list[ToolDefinition]:
        """What the model sees, in the host's order."""
        return [spec.definition for spec in self._specs.values()]

    @property
    def read_definitions(self) -> list[ToolDefinition]:
        """Those of the tools that change nothing."""
        return [spec.definition for spec in self._specs.values() if spec.kind == "read"]

    def is_write(self, call: Call) -> bool:
        """Whether the call would run a write tool."""
        spec = self._specs.get(call.name)
        return spec is not None and spec.kind == "write"

    def looks(self, call: Call) -> bool:
        """Whether the call is one for records or for a change: not for names of managers and fields alone."""
        spec = self._specs.get(call.name)
        return spec is not None and (spec.reads_records or spec.kind == "write")

    def mint(self, requests: Sequence[ToolCallEvent]) -> list[Call]:
        """Give each request an id of ours and arguments that are a JSON object, or the problem that they have."""
        calls = []
        for request in requests:
            args, problem = _read_arguments(request)
            calls.append(
                Call(self._services.new_id(), request.name, args, problem, request.id or None, request.metadata)
            )
        return calls

    async def run(self, calls: Sequence[Call]) -> list[Answer]:
        """Answer every call, in order. Equal reads of a batch run once. Only cancellation is raised."""
        keys = list(map(_key, calls))
        answers = await self._run_batch(calls, keys)
        self._note_read(call.name for call in calls if call.name in self._specs)
        refused = {key for key, answer in zip(keys, answers, strict=True) if answer.outcome is Outcome.FAILED}
        self._refused.update(refused)
        return [
            replace(self._remember(key, answer), refusals=self._refused[key] - 1 if key in refused else 0)
            for key, answer in zip(keys, answers, strict=True)
        ]

    async def _run_batch(self, calls: Sequence[Call], keys: Sequence[str]) -> list[Answer]:
        running: dict[str, asyncio.Task[Answer]] = {}
        slots: list[asyncio.Task[Answer] | Answer] = []
        async with asyncio.TaskGroup() as group:
            for call, key in zip(calls, keys, strict=True):
                if key in self._read:
                    slots.append(Answer(call, self._read[key], Outcome.REPEATED))
                elif key in running and not self.is_write(call):
                    slots.append(group.create_task(_same(running[key], call)))
                elif len(calls) == 1:
                    slots.append(await self._answer(call))  # nothing to run beside it: no task
                else:
                    running[key] = group.create_task(self._answer(call))
                    slots.append(running[key])
        return [slot if isinstance(slot, Answer) else slot.result() for slot in slots]

    async def run_approved(self, call: Call, shown: Mapping[str, Any] | None = None) -> Answer:
        """Answer a call whose very arguments the user has approved, having been ``shown`` what it would do.

        Everything else is checked as for any call.
        """
        return await self._answer(call, approved=True, shown=shown)

    def refuse(self, calls: Sequence[Call]) -> list[Answer]:
        """Answer calls that come after the model was asked for its answer."""
        return [Answer(call, _NO_MORE_CALLS.as_result(), Outcome.FAILED) for call in calls]

    def _remember(self, key: str, answer: Answer) -> Answer:
        """Keep a read's result. A write makes what was read before it doubtful, so that may be read again."""
        if self.is_write(answer.call):
            self._read.clear()
            self._fresh.clear()
            return answer
        if answer.outcome is not Outcome.FRESH:
            return answer
        self._read[key] = answer.result
        if any(_same_substance(answer, earlier) for earlier in self._fresh):
            return Answer(answer.call, answer.result, Outcome.REPEATED)
        self._fresh.append(answer)
        return answer

    async def _answer(self, call: Call, *, approved: bool = False, shown: Mapping[str, Any] | None = None) -> Answer:
        outcome = Outcome.FAILED
        try:
            await self._services.observer.tool_started(self._context, call.id, call.name, call.args, approved=approved)
            if call.problem is not None:
                outcome = Outcome.UNREADABLE
                raise ToolError("invalid_arguments", call.problem)
            return Answer(call, await self._run(call, approved=approved, shown=shown), Outcome.FRESH)
        except ToolError as error:
            return failed(call, error, outcome)
        except Exception as error:  # noqa: BLE001 (the boundary to third-party code; the loop reports it)
            return self._broken(call, error)

    async def _run(self, call: Call, *, approved: bool, shown: Mapping[str, Any] | None) -> Any:
        spec = self._specs.get(call.name)
        if spec is None:
            names = list(self._specs)
            raise ToolError(
                "unknown_tool", f"tool {call.name!r} does not exist; available: {', '.join(names)}", allowed=names
            )
        await require(Action("tool", call.name), self._services, self._context, call.args)
        settings = self._services.settings
        if spec.kind == "write" and call.name != MUTATE:
            await require(Action("mutation", call.name), self._services, self._context, call.args)
            if self._has_read and settings.taint_mutations:
                raise ToolError(
                    "confirmation_required",
                    f"not executed: records were read before, after which a change needs the user's approval, and "
                    f"{call.name!r} cannot ask for it; the user may ask for it in a new conversation",
                )
        seconds = settings.query_timeout_seconds
        context = ToolContext(
            turn=self._context,
            call_id=call.id,
            managers=self.managers,
            settings=settings,
            deadline=None if seconds is None else time.monotonic() + seconds,
            approved=approved,
            shown=shown,
            has_read=self._has_read,
        )
        # The tool gets a copy: events and history must show what the model asked, whatever the tool does to it.
        return jsonable(await spec.run(jsonable(call.args), context))

    def _broken(self, call: Call, error: Exception) -> Answer:
        """Decide whose fault it was: a tool may accept more than it advertises, so its schema is consulted only now."""
        spec = self._specs.get(call.name)
        blame = None if spec is None else mismatch(spec.definition.input_schema, call.args)
        if blame is not None and not self.is_write(call):
            return Answer(call, ToolError("invalid_arguments", blame).as_result(), Outcome.FAILED)
        return broken(call, error)


def failed(call: Call, error: ToolError, outcome: Outcome = Outcome.FAILED) -> Answer:
    """The answer to a call that a tool, or the engine in its stead, refused."""
    return Answer(call, jsonable(error.as_result()), outcome)


def broken(call: Call, error: Exception) -> Answer:
    """The answer to a call that something broke; the turn ends with the exception."""
    return Answer(call, _INTERNAL.as_result(), Outcome.FAILED, error)


async def _same(first: asyncio.Task[Answer], call: Call) -> Answer:
    answer = await first
    return Answer(call, answer.result, Outcome.REPEATED if answer.outcome is Outcome.FRESH else answer.outcome)


def _read_arguments(request: ToolCallEvent) -> tuple[Mapping[str, Any], str | None]:
    if request.error is not None:
        return {}, f"the arguments could not be read: {request.error}. Call {request.name!r} again, complete."
    args: object = request.args
    if not isinstance(args, Mapping):
        return {}, f"the arguments must be a JSON object, not {type(args).__name__}"
    try:
        return jsonable(args), None
    except UnencodableError as error:
        return {}, f"the arguments are not usable: {error}"


def _key(call: Call) -> str:
    return canonical_json([call.name, call.args, call.problem])


def _same_substance(one: Answer, other: Answer) -> bool:
    """Whether two reads came to the same, apart from numbers: asking with another limit for the same rows is no
    progress.

    Only top-level numbers are left out, so that equal answers to different questions stay different.
    """
    return (
        one.call.name == other.call.name
        and _without_numbers(one.call.args) == _without_numbers(other.call.args)
        and one.result == other.result
    )


def _without_numbers(args: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in args.items() if not isinstance(value, int | float)}
