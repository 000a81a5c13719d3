"""What gathering evidence takes from outside: providers, read tools, the managers that there are, a clock and an ear.

The loop of the chat fills these from the running turn, the public functions from what their caller gives. Neither the
tasks' work nor the schedule knows which of the two it is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gm_chat.engine.messages import Call
    from gm_chat.planned.provider_calls import RoundCaller
    from gm_chat.planned.resolver import ManagerResolver
    from gm_chat.providers.base import ToolCallEvent, ToolDefinition

__all__ = ["ReadPorts", "ReadTools", "ToolRun", "silent"]


@dataclass(frozen=True, slots=True)
class ToolRun:
    """What a tool gave: a JSON value, which is an error for the model where the tool refused.

    ``failure`` is what broke the tool; once clients have seen the result, the turn ends with it.
    """

    result: Any
    is_error: bool = False
    failure: Exception | None = None


class ReadTools(Protocol):
    """The tools that executors may call. None of them changes anything."""

    @property
    def definitions(self) -> Sequence[ToolDefinition]:
        """What the model sees."""
        ...

    def mint(self, request: ToolCallEvent) -> Call:
        """Give a request an id of ours."""
        ...

    async def run(self, call: Call) -> ToolRun:
        """Run a call of one of the definitions. Raises :class:`~gm_chat.engine.failures.TurnStopped`."""
        ...


def silent(event_type: str, payload: Mapping[str, Any]) -> None:
    """Hear nothing of a turn's diagnostics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPorts:
    """The outside of a planned read.

    ``outline`` describes managers to a model in a few lines, by their names. ``tell`` takes the diagnostics of
    :mod:`gm_chat.planned_audit`. ``instructions`` is what the project tells every model. ``clock`` gives seconds.
    """

    call: RoundCaller
    tools: ReadTools
    resolver: ManagerResolver | None
    outline: Callable[[Sequence[str]], str]
    tell: Callable[[str, Mapping[str, Any]], None] = silent
    instructions: str = ""
    plan_id: str = "plan"
    clock: Callable[[], float] = time.monotonic
