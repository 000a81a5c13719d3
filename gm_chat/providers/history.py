"""Repair of neutral history, so that what an adapter converts is valid for every provider.

Providers refuse a request whose tool calls lack results, whose results lack calls or stand elsewhere than right after
their calls, that holds an empty text, or repeats an id. Stored history can be all of that: a process died between two
results, a window was cut, two providers took turns. An adapter calls :func:`normalise` first and then only translates.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gm_chat.encoding import jsonable, to_json
from gm_chat.providers.base import MISSING, Message, ToolCallEvent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["INTERRUPTED", "normalise"]

INTERRUPTED: Final = to_json(
    {"error": {"code": "interrupted", "message": "The call was interrupted: whether it had an effect is unknown."}}
)
_ANY_ID: Final = re.compile(r".+", re.DOTALL)


def normalise(messages: Sequence[Message], *, call_id: re.Pattern[str] = _ANY_ID) -> list[Message]:
    """Return an equivalent history that keeps these promises:

    * no message is empty; a tool result is never blank: it is JSON text in ``content``;
    * two system, two user or two textual assistant messages in a row are one, joined by a blank line;
    * an assistant message with calls is followed by exactly one result per call, in the order of the calls;
      a call without a result gets :data:`INTERRUPTED`;
    * call ids are unique in the whole history and match ``call_id``, others are replaced by ``call_<n>``;
    * a result without its call, which no provider accepts, becomes assistant text that says what it is;
    * no lone surrogate is left, which a model may write and no request can carry.
    """
    messages = list(map(_encodable, messages))
    ids = _Ids(call_id)
    result: list[Message] = []
    position = 0
    while position < len(messages):
        message = messages[position]
        position += 1
        if message.role == "assistant" and message.tool_calls:
            end = position
            while end < len(messages) and messages[end].role == "tool":
                end += 1
            for item in _exchange(message, messages[position:end], ids):
                _append(result, item)
            position = end
        elif message.role == "tool":
            _append(result, _orphan(message))
        elif message.role in ("system", "user", "assistant"):
            _append(result, message)
        else:
            raise ValueError(
                f"message {position - 1} has the role {message.role!r}: expected system, user, assistant or tool"
            )
    return result


def _encodable(message: Message) -> Message:
    return replace(
        message,
        content=jsonable(message.content),
        tool_calls=tuple(replace(call, id=jsonable(call.id), name=jsonable(call.name)) for call in message.tool_calls),
        tool_call_id=jsonable(message.tool_call_id),
        tool_name=jsonable(message.tool_name),
    )


class _Ids:
    """Hands out call ids: the given one if it is usable and new, else a fresh one, the same at each conversion."""

    def __init__(self, usable: re.Pattern[str]) -> None:
        self._usable = usable
        self._taken: set[str] = set()
        self._count = 0

    def claim(self, wanted: str) -> str:
        chosen = wanted
        while chosen in self._taken or not self._usable.fullmatch(chosen):
            self._count += 1
            chosen = f"call_{self._count}"
        self._taken.add(chosen)
        return chosen


def _exchange(message: Message, results: Sequence[Message], ids: _Ids) -> Iterator[Message]:
    """Yield an assistant message with its results in order, then whatever answered none of its calls."""
    open_results = list(results)
    calls: list[ToolCallEvent] = []
    answers: list[Message] = []
    for call in message.tool_calls:
        answer = next((item for item in open_results if item.tool_call_id == call.id), None)
        if answer is not None:
            open_results.remove(answer)
        renamed = replace(call, id=ids.claim(call.id))
        calls.append(renamed)
        answers.append(
            Message(
                "tool",
                INTERRUPTED if answer is None else _result_text(answer),
                tool_call_id=renamed.id,
                tool_name=call.name,
                tool_result=MISSING if answer is None else answer.tool_result,
            )
        )
    yield replace(message, content=message.content if message.content.strip() else "", tool_calls=tuple(calls))
    yield from answers
    yield from map(_orphan, open_results)


def _result_text(message: Message) -> str:
    if message.content.strip():
        return message.content
    return "null" if message.tool_result is MISSING else to_json(message.tool_result)


def _orphan(message: Message) -> Message:
    return Message(
        "assistant", f"[Earlier result of the tool {message.tool_name or 'unknown'}: {_result_text(message)}]"
    )


def _append(result: list[Message], message: Message) -> None:
    """Add a message, leaving out an empty one and joining one that continues the last."""
    if not (message.content.strip() or message.tool_calls or message.role == "tool"):
        return
    last = result[-1] if result else None
    if last is not None and last.role == message.role != "tool" and not last.tool_calls:
        both = f"{last.content}\n\n{message.content}" if message.content.strip() else last.content
        result[-1] = replace(message, content=both)
    else:
        result.append(message)
