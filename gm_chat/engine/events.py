"""The public events of a turn, as values. ``transports.wire`` turns them into JSON; nothing else does.

(Specification: "Server event contract".)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.providers.base import TokenUsage

__all__ = ["ConfirmMutation", "Done", "Error", "Event", "LoggedEvent", "TextChunk", "ToolCall", "ToolResult"]


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A fragment of the assistant's text."""

    content: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool was requested; ``id`` is ours, unique within the conversation. ``task_id`` belongs to planned turns."""

    id: str
    name: str
    args: Mapping[str, Any]
    task_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to the call of the same ``id``."""

    id: str
    name: str
    result: Any
    task_id: str | None = None


@dataclass(frozen=True, slots=True)
class ConfirmMutation:
    """The turn pauses until the client approves or rejects exactly this mutation.

    ``preview`` tells what it would do (:mod:`gm_chat.managers.preview`), where its manager source can.
    """

    id: str
    mutation: str
    input: Mapping[str, Any]
    preview: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The turn is complete. ``orchestration`` is the coverage of planned turns."""

    usage: TokenUsage
    orchestration: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Error:
    """The turn failed. ``details`` holds the optional public fields, e.g. ``retry_after_seconds``."""

    code: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)


Event = TextChunk | ToolCall | ToolResult | ConfirmMutation | Done | Error


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event in a turn's log; ``seq`` starts at 1 and has no gaps."""

    turn_id: str
    seq: int
    event: Event

    @property
    def is_last(self) -> bool:
        """Whether the stream ends here: done, failed, or paused for a confirmation."""
        return isinstance(self.event, Done | Error | ConfirmMutation)
