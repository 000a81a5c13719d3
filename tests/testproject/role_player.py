"""A model for planned turns, each of whose roles plays its part of what :class:`Part` says about a question."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from gm_chat.providers.base import BaseLLMProvider, DoneEvent, TextChunkEvent, TokenUsage, ToolCallEvent
from testproject.plans import act, answer, complete, plan, task

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from gm_chat.providers.base import CallOptions, ChatEvent, Message, ToolDefinition

__all__ = ["Part", "Play", "RolePlayer"]


@dataclass(frozen=True)
class Part:
    """A task: its calls, and the calculation over their results, ``(operation, [(number of the call, path), ...])``."""

    objective: str
    calls: Sequence[Mapping[str, Any]]
    calculation: tuple[str, Sequence[tuple[int, Sequence[Any]]]] | None = None
    depends_on: Sequence[str] = ()
    gives_up: bool = False

    def planned(self, task_id: str) -> dict[str, Any]:
        kinds = ["query" for _ in self.calls] + ["calculation"] * (self.calculation is not None)
        operation = "sum" if self.calculation is None else self.calculation[0]
        return task(task_id, self.objective, *kinds, depends_on=self.depends_on, operation=operation)

    def steps(self, task_id: str) -> list[Any]:
        """What the executor says, round by round: a call, or words."""
        if self.gives_up:
            return [*self.calls, act("block", reason="there is no such data")]
        if self.calculation is None:
            return [*self.calls, complete(*self.evidence(task_id))]
        operation, operands = self.calculation
        named = [{"evidence_id": f"{task_id}:query:{number}", "path": list(path)} for number, path in operands]
        wanted = f"r{len(self.calls) + 1}"
        return [*self.calls, act("calculate", requirement_id=wanted, operation=operation, operands=named)]

    def evidence(self, task_id: str) -> list[str]:
        if self.gives_up:
            return []
        found = [f"{task_id}:query:{number}" for number, _ in enumerate(self.calls, 1)]
        return found if self.calculation is None else [*found, f"{task_id}:calculation:1"]


@dataclass(frozen=True)
class Play:
    """All that is said about a question; the tasks are called ``t1`` and so on."""

    question: str
    parts: Sequence[Part]
    answer: str
    tasks: Mapping[str, Part] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tasks", {f"t{number}": part for number, part in enumerate(self.parts, 1)})


class RolePlayer(BaseLLMProvider):
    """Plays what it is asked for, and notes as which role; the fallback is asked for plans and answers, too."""

    plays: ClassVar[Sequence[Play]] = ()
    roles: ClassVar[list[str]] = []
    """Who was asked, in order."""

    async def complete(
        self, messages: list[Message], tools: list[ToolDefinition], *, options: CallOptions | None = None
    ) -> AsyncIterator[ChatEvent]:
        self.roles.append(self.provider_config["role"])
        asked = "\n".join(message.content for message in messages if message.role == "user")
        (play,) = (play for play in self.plays if play.question in asked)
        said = self._said(play, messages)
        yield TextChunkEvent(said) if isinstance(said, str) else ToolCallEvent("1", *next(iter(said.items())))
        yield DoneEvent(TokenUsage(10, 5))

    @staticmethod
    def _said(play: Play, messages: Sequence[Message]) -> Any:
        if "You plan" in messages[0].content:
            return plan(*(part.planned(name) for name, part in play.tasks.items()))
        if "You answer a question" in messages[0].content:
            return answer(play.answer, *(item for name, part in play.tasks.items() for item in part.evidence(name)))
        first = next(message.content for message in messages if message.role == "user")
        name = first.removeprefix("Task ").partition(":")[0]
        return play.tasks[name].steps(name)[sum(message.role == "assistant" for message in messages)]
