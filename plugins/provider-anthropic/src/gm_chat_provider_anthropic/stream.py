"""From the JSON objects of a message stream to neutral events. Pure: nothing here waits or knows the SDK.

The objects are read as the wire has them, not as the SDK's models: see :mod:`gm_chat.providers.wire`. The SDK's own
reader, besides, turns arguments that were cut off into ``{}``.
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
    ProviderContextError,
    ProviderIncompleteError,
    ProviderMalformedError,
    ProviderRefusedError,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
)
from gm_chat.providers.wire import count_of, is_count, object_of, text_of
from gm_chat_provider_anthropic.thinking import Thought, thought_metadata

__all__ = ["StreamAssembler"]

_FINISH: Final[Mapping[str, FinishReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
"""``refusal`` is an error. ``pause_turn``, which only tools of the vendor's own cause, counts as unknown."""

_THINKING: Final = ("thinking", "redacted_thinking")
_SIGN_OF_LIFE: Final = TextChunkEvent("")
_COUNTERS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


@dataclass(slots=True)
class _Block:
    """A content block that is still arriving. ``characters`` and ``calls``: how much of the message precedes it."""

    kind: str
    start: Mapping[str, Any]
    characters: int
    calls: int
    parts: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)
    stopped: bool = False


class StreamAssembler:
    """Feed it the stream's objects in order, then :meth:`finish` it.

    Text comes out at once. Tool calls come out of :meth:`finish` only: a call of a stream that breaks off later must
    not have been run.
    """

    def __init__(self, new_id: Callable[[], str] = lambda: f"toolu_{uuid.uuid4().hex}") -> None:
        self._new_id = new_id
        self._blocks: list[_Block] = []
        self._by_index: dict[int | None, _Block] = {}
        self._characters = 0
        self._stop_reason: str | None = None
        self._stop_details: Mapping[str, Any] = {}
        self._usage: dict[str, int] = {}
        self._model: str | None = None
        self.is_complete = False
        """Whether ``message_stop`` has come."""

    def feed(self, event: object) -> Iterator[TextChunkEvent]:
        """Take one object and yield the text in it, empty text for a thought, which is not part of the answer.

        Objects of unknown types say nothing.
        """
        values = object_of(event, "an event of the stream")
        said: TextChunkEvent | None = None
        match values.get("type"):
            case "message_start":
                self._start_message(object_of(values.get("message"), "a message"))
            case "content_block_start":
                said = self._start_block(_index(values), object_of(values.get("content_block"), "a block"))
            case "content_block_delta":
                said = self._feed_block(_index(values), object_of(values.get("delta"), "a delta"))
            case "content_block_stop":
                if block := self._by_index.get(_index(values)):
                    block.stopped = True
            case "message_delta":
                self._end_message(object_of(values.get("delta"), "a delta"))
                self._count(values.get("usage"))
            case "message_stop":
                self.is_complete = True
        if said is not None:
            self._characters += len(said.content)
            yield said

    def _start_message(self, message: Mapping[str, Any]) -> None:
        self._model = text_of(message.get("model"), "a model's name") or self._model
        self._count(message.get("usage"))

    def _end_message(self, delta: Mapping[str, Any]) -> None:
        self._stop_reason = text_of(delta.get("stop_reason"), "a stop_reason") or self._stop_reason
        if isinstance(delta.get("stop_details"), Mapping):
            self._stop_details = delta["stop_details"]

    def _start_block(self, index: int | None, start: Mapping[str, Any]) -> TextChunkEvent | None:
        """Begin a block; one index for two open blocks is refused where the rest of a call could go astray."""
        open_block = self._by_index.get(index)
        if open_block is not None and open_block.kind == "tool_use" and not open_block.stopped:
            raise ProviderMalformedError(f"a block starts at index {index!r} while a tool call is still arriving there")
        kind = text_of(start.get("type"), "a block's type")
        calls = sum(block.kind == "tool_use" for block in self._blocks)
        block = _Block(kind, start, self._characters, calls)
        self._blocks.append(block)
        self._by_index[index] = block
        if kind in _THINKING:
            return _SIGN_OF_LIFE
        return _text(start) if kind == "text" else None

    def _feed_block(self, index: int | None, delta: Mapping[str, Any]) -> TextChunkEvent | None:
        block = self._by_index.get(index)
        match delta.get("type"):
            case "text_delta":
                return _text(delta)
            case "input_json_delta":
                if block is None or block.kind in ("text", *_THINKING):
                    raise ProviderMalformedError(f"arguments came at index {index!r}, where no tool call has started")
                block.parts.append(text_of(delta.get("partial_json"), "arguments"))
            case "thinking_delta" if block is not None and block.kind == "thinking":
                block.parts.append(text_of(delta.get("thinking"), "a thought"))
                return _SIGN_OF_LIFE
            case "signature_delta" if block is not None and block.kind == "thinking":
                block.signature.append(text_of(delta.get("signature"), "a signature"))
        return None

    def _count(self, usage: object) -> None:
        """Note token counts. They are cumulative, so the last one counts; but a 0 may mean "told before"."""
        if not isinstance(usage, Mapping):
            return
        details = usage.get("output_tokens_details")
        thinking = details.get("thinking_tokens") if isinstance(details, Mapping) else None
        for name, value in (*((name, usage.get(name)) for name in _COUNTERS), ("thinking_tokens", thinking)):
            if is_count(value):
                self._usage[name] = count_of(value) or self._usage.get(name, 0)

    def finish(self) -> list[ChatEvent]:
        """Return the tool calls and the :class:`DoneEvent`, or raise why there are none."""
        if not self.is_complete or self._stop_reason is None:
            missing = "a stop_reason" if self.is_complete else "message_stop"
            raise ProviderIncompleteError(f"the stream ended without {missing}")
        if self._stop_reason == "refusal":
            explanation = self._stop_details.get("explanation") or self._stop_details.get("category")
            raise ProviderRefusedError(f"the model refused: {explanation or 'no reason was given'}")
        reason = _FINISH.get(self._stop_reason, "unknown")
        calls: list[ChatEvent] = [
            self._call(block, cut=reason == "length" and (block is self._blocks[-1] or not block.stopped))
            for block in self._blocks
            if block.kind == "tool_use"
        ]
        if self._stop_reason == "model_context_window_exceeded" and not calls and not self._characters:
            raise ProviderContextError("the conversation leaves no room for an answer in the model's context window")
        if calls and reason in ("stop", "unknown"):
            reason = "tool_calls"  # what some servers mean by it
        metadata = thought_metadata([_thought(block) for block in self._blocks if block.kind in _THINKING])
        return [*calls, DoneEvent(self._tokens(), reason, self._model, metadata)]

    def _call(self, block: _Block, *, cut: bool) -> ToolCallEvent:
        name = text_of(block.start.get("name"), "a tool's name")
        if not name:
            raise ProviderMalformedError(f"a tool call (id {block.start.get('id')!r:.80}) came without a name")
        # Some servers give the arguments at once, where this API has an empty object.
        arguments = "".join(block.parts).strip() or block.start.get("input") or ""
        args, error = decode_arguments(arguments, cut=cut)
        return ToolCallEvent(text_of(block.start.get("id"), "an id") or self._new_id(), name, args, error)

    def _tokens(self) -> TokenUsage:
        usage = self._usage
        cached = usage.get("cache_read_input_tokens", 0)
        return TokenUsage(
            usage.get("input_tokens", 0) + usage.get("cache_creation_input_tokens", 0) + cached,
            usage.get("output_tokens", 0),
            cached_tokens=cached,
            thinking_tokens=usage.get("thinking_tokens", 0),
            reported="input_tokens" in usage and "output_tokens" in usage,
        )


def _text(values: Mapping[str, Any]) -> TextChunkEvent | None:
    text = text_of(values.get("text"), "a text")
    return TextChunkEvent(text) if text else None


def _thought(block: _Block) -> Thought:
    if block.kind == "redacted_thinking":
        data = text_of(block.start.get("data"), "redacted data")
        return Thought({"type": "redacted_thinking", "data": data}, block.characters, block.calls)
    thinking = text_of(block.start.get("thinking"), "a thought") + "".join(block.parts)
    signature = text_of(block.start.get("signature"), "a signature") + "".join(block.signature)
    return Thought({"type": "thinking", "thinking": thinking, "signature": signature}, block.characters, block.calls)


def _index(values: Mapping[str, Any]) -> int | None:
    index = values.get("index")
    if index is not None and not isinstance(index, int):
        raise ProviderMalformedError(f"a block has the index {index!r:.80}: expected a number")
    return index
