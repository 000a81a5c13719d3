"""The public events of planned turns, in the form in which clients get them.

They are the events of every turn; a tool's name the task they belong to, and ``done`` says how much of the question was
answered. (Specification: "Planned orchestration helpers".)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from gm_chat.engine.events import Done, Error, ToolCall, ToolResult
from gm_chat.engine.public import event_object
from gm_chat.errors import PLANNED_REASONS, PUBLIC_MESSAGES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gm_chat.providers.base import TokenUsage

__all__ = [
    "PLANNED_PUBLIC_MESSAGES",
    "orchestration",
    "planned_done_event",
    "planned_error",
    "planned_error_event",
    "planned_tool_call_event",
    "planned_tool_result_event",
]

PLANNED_PUBLIC_MESSAGES: Final[Mapping[str, str]] = MappingProxyType(
    {code: PUBLIC_MESSAGES[code] for code in (*PLANNED_REASONS, "rate_limited")}
)
"""What clients read when a planned turn ends without an answer, by its code."""


def orchestration(
    *, resolved: int, total: int, unresolved: Iterable[object], citations: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Return what ``done`` says about the coverage of the question.

    ``resolved`` and ``total`` count roots. ``unresolved`` holds ``(task_id, reason)`` pairs, or mappings with these two
    keys. ``citations`` say which queries the answer rests on; without any the key is absent.
    Raises ``TypeError`` for another shape, ``ValueError`` for an unknown reason or counts that contradict each other.
    """
    pairs = [_pair(item) for item in unresolved]
    if not 0 <= resolved <= total:
        raise ValueError(f"{resolved} of {total} tasks cannot be resolved")
    return {
        "status": "complete" if resolved == total else "partial",
        "coverage": {"resolved": resolved, "total": total},
        "unresolved": [{"task_id": task_id, "reason": _known(reason)} for task_id, reason in pairs],
        **({"citations": [dict(citation) for citation in citations]} if citations else {}),
    }


def planned_error(reason: str) -> Error:
    """Return the terminal event of a turn without an answer. Raises ``ValueError`` for an unknown reason."""
    return Error(_known(reason), PLANNED_PUBLIC_MESSAGES[reason])


def planned_done_event(
    usage: TokenUsage,
    *,
    resolved: int,
    total: int,
    unresolved: Iterable[object],
    citations: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the ``done`` event of an answered turn; see :func:`orchestration`."""
    return event_object(
        Done(usage, orchestration(resolved=resolved, total=total, unresolved=unresolved, citations=citations))
    )


def planned_error_event(reason: str) -> dict[str, Any]:
    """Return the ``error`` event of a turn without an answer. Raises ``ValueError`` for an unknown reason."""
    return event_object(planned_error(reason))


def planned_tool_call_event(task_id: str, call_id: str, name: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event of a tool that is about to run for a task."""
    return event_object(ToolCall(call_id, name, args, task_id))


def planned_tool_result_event(task_id: str, call_id: str, name: str, result: Any) -> dict[str, Any]:
    """Return the event of what that tool gave."""
    return event_object(ToolResult(call_id, name, result, task_id))


def _pair(item: object) -> tuple[str, object]:
    match item:
        case Mapping() if "task_id" in item and "reason" in item:
            task_id, reason = item["task_id"], item["reason"]
        case (task_id, reason):
            pass
        case _:
            raise TypeError(f"an unresolved task is a pair of its id and the reason, not {item!r}")
    if not isinstance(task_id, str):
        raise TypeError(f"the id of an unresolved task is a text, not {task_id!r}")
    return task_id, reason


def _known(reason: object) -> str:
    if not isinstance(reason, str) or reason not in PLANNED_PUBLIC_MESSAGES:
        raise ValueError(f"{reason!r} is no public reason: expected one of {', '.join(PLANNED_PUBLIC_MESSAGES)}")
    return reason
