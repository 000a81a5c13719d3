"""From the JSON objects of a completion stream to neutral events. Pure: nothing here waits or knows the SDK.

The objects are read as the wire has them, not as the SDK's models: see :mod:`gm_chat.providers.wire`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gm_chat.providers.arguments import decode_arguments
from gm_chat.providers.base import (
    ChatEvent,
    DoneEvent,
    FinishReason,
    ProviderError,
    ProviderFilteredError,
    ProviderIncompleteError,
    ProviderMalformedError,
    ProviderRefusedError,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
)
from gm_chat.providers.wire import array_of, count_of, object_of, text_of

__all__ = ["StreamAssembler"]

_FINISH: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "filtered",
}
_CUT: Final = frozenset({"length", "content_filter"})


@dataclass(slots=True)
class _Call:
    """A tool call that is still arriving."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class StreamAssembler:
    """Feed it the stream's objects in order, then :meth:`finish` it.

    Text comes out at once. Tool calls come out of :meth:`finish` only: a call of a stream that breaks off later must
    not have been run.
    """

    def __init__(self, new_id: Callable[[], str] = lambda: f"call_{uuid.uuid4().hex}") -> None:
        self._new_id = new_id
        self._calls: list[_Call] = []
        self._finish_reason: str | None = None
        self._has_text = False
        self._refusal = ""
        self._usage: TokenUsage | None = None
        self._model: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the terminal marker has come; what may follow it is the usage."""
        return self._finish_reason is not None

    def feed(self, chunk: object) -> Iterator[TextChunkEvent]:
        """Take one object and yield the text in it, empty text for a thought, which is not part of the answer."""
        values = object_of(chunk, "a chunk of the stream")
        model = values.get("model")
        if isinstance(model, str) and model:
            self._model = model
        if isinstance(values.get("usage"), Mapping):
            self._usage = _usage(values["usage"])  # cumulative where a server repeats it: the last one counts
        for choice in array_of(values.get("choices"), "choices"):
            yield from self._feed_choice(object_of(choice, "a choice"))

    def _feed_choice(self, choice: Mapping[str, Any]) -> Iterator[TextChunkEvent]:
        delta = object_of(choice.get("delta"), "a delta")
        text = text_of(delta.get("content"), "content")
        if text:
            self._has_text = True
            yield TextChunkEvent(text)
        elif delta.get("reasoning_content") or delta.get("reasoning"):  # the names that the imitators have for it
            yield TextChunkEvent("")
        self._refusal += text_of(delta.get("refusal"), "refusal")
        for fragment in array_of(delta.get("tool_calls"), "tool_calls"):
            self._feed_call(object_of(fragment, "a tool call"))
        # Some gateways append a "stop" of their own, which must not hide that the answer was cut.
        if choice.get("finish_reason") and self._finish_reason not in _CUT:
            self._finish_reason = str(choice["finish_reason"])

    def _feed_call(self, fragment: Mapping[str, Any]) -> None:
        function = object_of(fragment.get("function"), "a function")
        name = text_of(function.get("name"), "a function's name")
        call = self._call_of(fragment.get("index"), text_of(fragment.get("id"), "an id"), name)
        call.name = call.name or name
        call.arguments.append(text_of(function.get("arguments"), "arguments"))

    def _call_of(self, index: object, id: str, name: str) -> _Call:
        """Return the call that a fragment continues, or a new one; raise where it could be either.

        Calls are told apart by (index, id). Servers leave out either, or number every call 0, so a fragment that
        brings a second name without an id of its own, or that has no id where several calls could be meant, is
        refused: guessing wrong would run one call with another's arguments.
        """
        if index is not None and not isinstance(index, int):
            raise ProviderMalformedError(f"a tool call has the index {index!r}: expected a number")
        candidates = [call for call in self._calls if index is None or call.index in (index, None)]
        same = [call for call in candidates if call.id == id] if id else candidates
        if not same:  # an id that comes late belongs to the call that waits for one
            same = [call for call in candidates if not call.id and not (call.name and name)]
        if len(same) > 1 or (same and name and same[0].name and (not id or name != same[0].name)):
            raise ProviderMalformedError(
                f"a fragment of a tool call (index {index!r}, id {id!r}, name {name!r}) fits more than one call"
            )
        if same:
            same[0].id = same[0].id or id
            return same[0]
        call = _Call(index, id)
        self._calls.append(call)
        return call

    def finish(self) -> list[ChatEvent]:
        """Return the tool calls and the :class:`DoneEvent`, or raise why there are none."""
        if self._finish_reason is None:
            raise ProviderIncompleteError("the stream ended without a finish_reason")
        reason = _FINISH.get(self._finish_reason, "unknown")
        if self._finish_reason == "error":
            raise ProviderError("the server ended the answer with the finish_reason 'error', without saying which")
        if "malformed" in self._finish_reason.lower():
            raise ProviderMalformedError(f"the model's call was malformed (finish_reason {self._finish_reason!r})")
        if reason == "filtered" and not self._has_text:
            raise ProviderFilteredError("a content filter removed the answer (finish_reason 'content_filter')")
        if self._refusal:
            raise ProviderRefusedError(f"the model refused: {self._refusal}")
        calls = [self._event(call, cut=reason in ("length", "filtered")) for call in self._calls]
        if calls and reason == "stop":
            reason = "tool_calls"  # what several servers mean by it
        return [*calls, DoneEvent(self._usage or TokenUsage(reported=False), reason, self._model)]

    def _event(self, call: _Call, *, cut: bool) -> ToolCallEvent:
        if not call.name:
            raise ProviderMalformedError(f"a tool call (index {call.index!r}, id {call.id!r}) came without a name")
        args, error = decode_arguments("".join(call.arguments), cut=cut)
        return ToolCallEvent(call.id or self._new_id(), call.name, args, error)


def _usage(values: Mapping[str, Any]) -> TokenUsage:
    prompt, completion = values.get("prompt_tokens"), values.get("completion_tokens")
    return TokenUsage(
        count_of(prompt),
        count_of(completion),
        cached_tokens=count_of(_detail(values, "prompt_tokens_details", "cached_tokens")),
        thinking_tokens=count_of(_detail(values, "completion_tokens_details", "reasoning_tokens")),
        reported=isinstance(prompt, int) and isinstance(completion, int),
    )


def _detail(values: Mapping[str, Any], group: str, key: str) -> object:
    details = values.get(group)
    return details.get(key) if isinstance(details, Mapping) else None
