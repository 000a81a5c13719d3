"""The public form of an event: what every transport sends, and what callers of the planned functions get.

(Specification: "Server event contract".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from gm_chat.engine.events import ConfirmMutation, Done, Error, Event, TextChunk, ToolCall, ToolResult

if TYPE_CHECKING:
    from gm_chat.providers.base import TokenUsage

__all__ = ["event_object"]


def event_object(event: Event) -> dict[str, Any]:
    """The public form of one event. It may still hold dates, decimals and the like: ``gm_chat.encoding`` ends it."""
    match event:
        case TextChunk(content):
            return {"type": "text_chunk", "content": content}
        case ToolCall(id, name, args, task_id):
            return {"type": "tool_call", "id": id, "name": name, "args": args, **_task(task_id)}
        case ToolResult(id, name, result, task_id):
            return {"type": "tool_result", "id": id, "name": name, "result": result, **_task(task_id)}
        case ConfirmMutation(id, mutation, input, preview):
            told = {} if preview is None else {"preview": preview}
            return {"type": "confirm_mutation", "id": id, "mutation": mutation, "input": input, **told}
        case Done(usage, orchestration):
            coverage = {} if orchestration is None else {"orchestration": orchestration}
            return {"type": "done", "usage": _usage(usage), **coverage}
        case Error(code, message, details):
            # The details come first: none of them can take the place of what the client must be able to rely on.
            return {**details, "type": "error", "message": message, "code": code}
        case _:
            assert_never(event)


def _task(task_id: str | None) -> dict[str, str]:
    return {} if task_id is None else {"task_id": task_id}


def _usage(usage: TokenUsage) -> dict[str, Any]:
    """Counts that say nothing are left out, except the two that the specification promises."""
    counts: dict[str, Any] = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    if usage.cached_tokens:
        counts["cached_tokens"] = usage.cached_tokens
    if usage.thinking_tokens:
        counts["thinking_tokens"] = usage.thinking_tokens
    if not usage.reported:
        counts["reported"] = False
    return counts
