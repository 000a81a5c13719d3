"""The two shapes of a conversation, side by side: provider messages and stored rows, and how one becomes the other.

Stored calls carry the ids that we minted. What only the producing provider may see again (its own call ids, opaque
metadata such as thought signatures) lies in the row's ``metadata``::

    {"message": {...}, "calls": {<our id>: {"id": <its id>, "metadata": {...}}}}
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gm_chat.encoding import jsonable
from gm_chat.engine.events import ToolCall
from gm_chat.engine.ports import StoredMessage
from gm_chat.providers.base import Message, ToolCallEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "SAME_MISTAKE",
    "Call",
    "CallIds",
    "assistant_message",
    "assistant_row",
    "marked",
    "mending",
    "model_json",
    "tool_message",
    "tool_row",
]


SAME_MISTAKE: Final = "You have sent that call before, and it fails again. Read the error, and send a different call."
"""What a model is told that sends a refused call again."""

_OWN: Final = frozenset({"query", "aggregate", "mutate"})
_MODEL: Final = json.JSONEncoder(check_circular=False, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call under an id of ours. ``problem`` says, in words for the model, why it must not run.

    ``provider_id`` and ``metadata`` are the provider's own and return to it alone.
    """

    id: str
    name: str
    args: Mapping[str, Any]
    problem: str | None = None
    provider_id: str | None = None
    metadata: Mapping[str, Any] | None = None

    @property
    def event(self) -> ToolCall:
        """What clients are told."""
        return ToolCall(self.id, self.name, self.args)


class CallIds:
    """Gives each call of one request an id that no other call of it has.

    A provider's own id is echoed where it is usable (some check the form of ids), ours where the provider repeated
    itself or gave none.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        """Know the ids that the request holds already."""
        self._taken = set(taken)

    def claim(self, call: Call) -> str:
        """Return the id under which a provider sees the call."""
        preferred = [id for id in (call.provider_id, call.id) if id]
        numbered = (f"{call.id}-{number}" for number in itertools.count(2))
        chosen = next(id for id in itertools.chain(preferred, numbered) if id not in self._taken)
        self._taken.add(chosen)
        return chosen


def assistant_message(
    text: str,
    calls: Sequence[tuple[str, Call]],
    *,
    provider: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Message:
    """What the assistant said, with its calls as (id for the provider, call) pairs."""
    events = tuple(ToolCallEvent(id, call.name, call.args, metadata=call.metadata or {}) for id, call in calls)
    return Message("assistant", text, tool_calls=events, provider=provider, metadata=metadata or {})


def tool_message(id: str, name: str, result: Any, *, key: str) -> Message:
    """The answer to the call that the provider knows as ``id``: JSON with sorted keys, :func:`marked` by ``key``.

    ``key`` is the call's id that we minted; a provider's own may repeat.
    """
    return Message("tool", marked(model_json(result), key), tool_call_id=id, tool_name=name, tool_result=result)


def mending(name: str, result: Any) -> str:
    """What is said behind the result of a call that would be right in another form, or after another; or nothing.

    Only of the core's own tools, which know it; what others say may come from anywhere.
    """
    refused = result.get("error", result) if isinstance(result, Mapping) else None
    if name not in _OWN or not isinstance(refused, Mapping):
        return ""
    undone = "That call changed nothing. " if name == "mutate" else ""
    for call, args in ((name, refused.get("corrected")), ("query", refused.get("look_up"))):
        if args:
            return f"{undone}Now call {call} with exactly these arguments: {model_json(args)}"
    return ""


def marked(text: str, key: str) -> str:
    """Enclose text that may come from records in tags of their own, ``<data-1f0c9a3b>``: data, never instructions.

    No record can close them, since their name comes from ``key``, a random id of ours that is younger than what a
    record says. The same key gives the same name, so that providers find the history in their caches. (Faults D6.)
    """
    name = f"data-{hashlib.blake2s(key.encode(errors='replace'), digest_size=4).hexdigest()}"
    return f"<{name}>{text}</{name}>"


def model_json(value: Any) -> str:
    """JSON for a model's eyes: sorted keys, compact, letters as they are (escapes would cost tokens)."""
    return _MODEL.encode(jsonable(value))


def assistant_row(text: str, calls: Sequence[Call], *, provider: str, metadata: Mapping[str, Any]) -> StoredMessage:
    """The stored form of what the assistant said."""
    echoes = {call.id: {"id": call.provider_id, "metadata": dict(call.metadata or {})} for call in calls}
    private: dict[str, Any] = {}
    if metadata:
        private["message"] = dict(metadata)
    if echoes:
        private["calls"] = echoes
    return StoredMessage(
        role="assistant",
        content=text,
        tool_calls=[{"id": call.id, "name": call.name, "args": call.args} for call in calls],
        provider=provider,
        metadata=private,
    )


def tool_row(call: Call, result: Any) -> StoredMessage:
    """The stored form of a call's answer."""
    return StoredMessage(
        role="tool", tool_call_id=call.id, tool_name=call.name, tool_args=call.args, tool_result=result
    )
