"""The one wire format: requests' bodies into text, events into JSON. Every transport uses it, and nothing else does.

(Specification: "Routes and request contracts", "Server event contract".)
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, assert_never

from gm_chat.encoding import jsonable
from gm_chat.engine.events import ConfirmMutation, Done, Error, Event, LoggedEvent, TextChunk, ToolCall, ToolResult
from gm_chat.errors import PUBLIC_MESSAGES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gm_chat.providers.base import TokenUsage

__all__ = ["BadMessage", "envelope", "event_object", "logged_object", "message_text", "usable_text"]


class BadMessage(ValueError):  # noqa: N818 - named after its public code
    """The body is not a message. The words of the exception are fit for the client, and quote nothing of the body."""

    @property
    def event(self) -> Error:
        """The event that answers the request."""
        return Error("bad_message", str(self))


def message_text(body: bytes, *, max_characters: int) -> str:
    """Return the text of ``{"text": "..."}``, or raise :class:`BadMessage` for anything else.

    Unknown keys are ignored.
    """
    try:
        payload = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise BadMessage("The body is not valid UTF-8.") from None
    except RecursionError:
        raise BadMessage("The body is nested too deeply.") from None
    except ValueError:
        raise BadMessage('The body is not JSON. Send an object like {"text": "..."}.') from None
    if not isinstance(payload, dict):
        raise BadMessage('The body must be a JSON object like {"text": "..."}.')
    return usable_text(payload.get("text"), max_characters=max_characters)


def usable_text(text: object, *, max_characters: int) -> str:
    """Return ``text`` if it is a message, or raise :class:`BadMessage`.

    NUL and lone surrogates, which no database or provider takes, become U+FFFD.
    """
    if not isinstance(text, str) or not text.strip():
        raise BadMessage(PUBLIC_MESSAGES["bad_message"])
    if len(text) > max_characters:
        raise BadMessage(f"The text is longer than the {max_characters} characters that are allowed.")
    return str(jsonable(text))


def event_object(event: Event) -> dict[str, Any]:
    """The public form of one event. It may still hold dates, decimals and the like: ``gm_chat.encoding`` ends it."""
    match event:
        case TextChunk(content):
            return {"type": "text_chunk", "content": content}
        case ToolCall(id, name, args, task_id):
            return {"type": "tool_call", "id": id, "name": name, "args": args, **_task(task_id)}
        case ToolResult(id, name, result, task_id):
            return {"type": "tool_result", "id": id, "name": name, "result": result, **_task(task_id)}
        case ConfirmMutation(id, mutation, input):
            return {"type": "confirm_mutation", "id": id, "mutation": mutation, "input": input}
        case Done(usage, orchestration):
            coverage = {} if orchestration is None else {"orchestration": orchestration}
            return {"type": "done", "usage": _usage(usage), **coverage}
        case Error(code, message, details):
            # The details come first: none of them can take the place of what the client must be able to rely on.
            return {**details, "type": "error", "message": message, "code": code}
        case _:
            assert_never(event)


def logged_object(logged: LoggedEvent) -> dict[str, Any]:
    """The public form of an event of a turn: with the turn's id, and its place in the turn's log."""
    return {**event_object(logged.event), "turn_id": logged.turn_id, "seq": logged.seq}


def envelope(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The body of a non-streaming answer: all events, the text in one piece, and the turn's id (null without one)."""
    answer = "".join(event["content"] for event in events if event["type"] == "text_chunk")
    return {"events": events, "answer": answer, "turn_id": events[0].get("turn_id")}


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
