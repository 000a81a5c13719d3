"""From stored rows to messages that every provider accepts. (Faults H1 to H3; specification: "Persistent context".)

Whatever the rows are, in the messages that come out:

* the first one is a user's, and none is empty;
* each call is answered exactly once, directly after the message that made it, in the order of the calls;
* ids are unique within the request; a provider's private metadata returns to that provider only.

A call whose result was never stored (the process died) is answered as interrupted. A result without its call, and
a call without identity, are told in words by the assistant, under a label.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from gm_chat.engine.messages import Call, CallIds, assistant_message, marked, model_json, tool_message
from gm_chat.providers.base import Message

if TYPE_CHECKING:
    from gm_chat.engine.ports import StoredMessage

__all__ = ["INTERRUPTED", "addressed_to", "to_messages", "window"]

INTERRUPTED: Final[Mapping[str, Any]] = {
    "error": {
        "code": "interrupted",
        "message": "The call was interrupted before its result was recorded; it is not known whether it took effect.",
    }
}
"""The answer to a stored call that has none."""

_NO_ID: Final = secrets.token_hex(8)
"""What results are marked by that were stored without the id of their call."""


def window(rows: Sequence[StoredMessage], max_messages: int) -> Sequence[StoredMessage]:
    """Return the most recent rows, at most ``max_messages``, starting at a user's message.

    If the last exchange alone is longer it is kept whole: half an exchange is no context.
    """
    starts = [index for index, row in enumerate(rows) if row.role == "user"]
    if not starts:
        return []
    return rows[next((start for start in starts if len(rows) - start <= max_messages), starts[-1]) :]


def addressed_to(provider: str, messages: Sequence[Message]) -> list[Message]:
    """Take out of ``messages`` what is private to another provider than this one."""
    return [message if message.provider in (None, provider) else _public(message) for message in messages]


def _public(message: Message) -> Message:
    calls = tuple(replace(call, metadata={}) for call in message.tool_calls)
    return replace(message, tool_calls=calls, metadata={})


def to_messages(rows: Sequence[StoredMessage], *, provider: str) -> list[Message]:
    """Convert rows, oldest first, into history for the provider of that name. Never raises for what a row lacks."""
    return list(itertools.dropwhile(lambda message: message.role != "user", _convert(rows, provider)))


def _convert(rows: Sequence[StoredMessage], provider: str) -> Iterator[Message]:
    ids = CallIds()
    position = 0
    while position < len(rows):
        row = rows[position]
        position += 1
        if row.role == "assistant":
            answers = list(itertools.takewhile(lambda later: later.role == "tool", rows[position:]))
            position += len(answers)
            yield from _exchange(row, answers, provider, ids)
        elif row.role == "tool":
            yield _told(_describe_result(row))
        elif row.content.strip():
            yield Message("user", row.content)


def _exchange(row: StoredMessage, answers: Sequence[StoredMessage], provider: str, ids: CallIds) -> Iterator[Message]:
    """An assistant's message, the answers to its calls, and in words what could not be linked."""
    own = row.provider == provider
    calls: dict[str, Call] = {}
    lost: list[str] = []
    for record in row.tool_calls:
        call = _read_call(record, row.metadata if own else {})
        if call is None or call.id in calls:
            lost.append(f"[Earlier call of {record.get('name') or 'a tool'}] {model_json(record.get('args'))}")
        else:
            calls[call.id] = call
    results: dict[str, StoredMessage] = {}
    for answer in answers:
        if answer.tool_call_id in calls and answer.tool_call_id not in results:
            results[answer.tool_call_id] = answer
        else:
            lost.append(_describe_result(answer))

    claimed = [(ids.claim(call), call) for call in calls.values()]
    text = row.content if row.content.strip() else ""
    if text or claimed:
        private = row.metadata.get("message", {}) if own else {}
        yield assistant_message(text, claimed, provider=row.provider, metadata=private)
    for id, call in claimed:
        stored = results.get(call.id)
        yield tool_message(id, call.name, INTERRUPTED if stored is None else stored.tool_result, key=call.id)
    for words in lost:
        yield _told(words)


def _read_call(record: Mapping[str, Any], private: Mapping[str, Any]) -> Call | None:
    id, name, args = record.get("id"), record.get("name"), record.get("args")
    if not (isinstance(id, str) and id and isinstance(name, str) and name):
        return None
    echo = private.get("calls", {}).get(id, {})
    return Call(
        id,
        name,
        args if isinstance(args, Mapping) else {},
        provider_id=echo.get("id"),
        metadata=echo.get("metadata"),
    )


def _describe_result(row: StoredMessage) -> str:
    result = row.content if row.tool_result is None and row.content.strip() else model_json(row.tool_result)
    return f"[Earlier result of {row.tool_name or 'a tool'}] {marked(result, row.tool_call_id or _NO_ID)}"


def _told(words: str) -> Message:
    return Message("assistant", words)
