"""From the JSON lines of a chat stream to neutral events. Pure: nothing here waits or knows the SDK."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from gm_chat.providers.arguments import decode_arguments
from gm_chat.providers.base import (
    ChatEvent,
    DoneEvent,
    FinishReason,
    ProviderIncompleteError,
    ProviderMalformedError,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
)
from gm_chat.providers.wire import array_of, count_of, is_count, object_of, text_of, value_of

__all__ = ["LineDecoder", "StreamAssembler"]

_FINISH: Final[Mapping[str, FinishReason]] = {"stop": "stop", "length": "length"}


class LineDecoder:
    """Turns pieces of bytes into the JSON objects of whole lines.

    Lines end at ``\\n`` only. (httpx ends them at every separator that Unicode knows, some of which may stand
    unescaped inside a JSON string.)
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> Iterator[Mapping[str, Any]]:
        """Take a piece and yield the objects of the lines that it completes."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            if line.strip():
                yield self._decode(line)

    def finish(self) -> Iterator[Mapping[str, Any]]:
        """Yield the object of a last line without its end; raise if the line is only the start of one."""
        if self._rest.strip():
            try:
                yield self._decode(self._rest)
            except ProviderMalformedError as error:
                raise ProviderIncompleteError("the stream ended in the middle of a line") from error

    def _decode(self, line: bytes) -> Mapping[str, Any]:
        value = value_of(line)
        if not isinstance(value, Mapping):
            raise ProviderMalformedError(f"a line of the stream is {value!r:.80}: expected a JSON object")
        return value


class StreamAssembler:
    """Feed it the stream's objects in order, then :meth:`finish` it.

    Text comes out at once. Tool calls come out of :meth:`finish` only: a call of a stream that breaks off later must
    not have been run. Ollama sends each call whole, mostly without an id; then one is minted.
    """

    def __init__(self, new_id: Callable[[], str] = lambda: f"call_{uuid.uuid4().hex}") -> None:
        self._new_id = new_id
        self._calls: list[tuple[str, str, object]] = []
        self._last: Mapping[str, Any] | None = None

    def feed(self, chunk: Mapping[str, Any]) -> Iterator[TextChunkEvent]:
        """Take one object and yield the text in it, empty text for a thought, which is not part of the answer."""
        message = object_of(chunk.get("message"), "a message")
        text = text_of(message.get("content"), "a message's content")
        if text:
            yield TextChunkEvent(text)
        elif message.get("thinking"):
            yield TextChunkEvent("")
        for item in array_of(message.get("tool_calls"), "tool_calls"):
            call = object_of(item, "a tool call")
            function = object_of(call.get("function"), "a function")
            name = function.get("name")
            if not isinstance(name, str) or not name:
                raise ProviderMalformedError(f"a tool call has the name {name!r:.80}: expected the name of a tool")
            self._calls.append((str(call.get("id") or ""), name, function.get("arguments")))
        if chunk.get("done") is True:
            self._last = chunk

    @property
    def is_complete(self) -> bool:
        """Whether the last line, with ``"done": true``, has come."""
        return self._last is not None

    def finish(self) -> list[ChatEvent]:
        """Return the tool calls and the :class:`DoneEvent`, or raise if the stream broke off."""
        if self._last is None:
            raise ProviderIncompleteError("the stream ended without 'done': true")
        reason = _FINISH.get(str(self._last.get("done_reason") or "stop"), "unknown")
        calls = [self._event(*call, cut=reason == "length") for call in self._calls]
        if calls and reason == "stop":
            reason = "tool_calls"
        model = self._last.get("model")
        return [*calls, DoneEvent(_usage(self._last), reason, model if isinstance(model, str) else None)]

    def _event(self, id: str, name: str, arguments: object, *, cut: bool) -> ToolCallEvent:
        args, error = decode_arguments(arguments, cut=cut)
        return ToolCallEvent(id or self._new_id(), name, args, error)


def _usage(last: Mapping[str, Any]) -> TokenUsage:
    prompt, completion = last.get("prompt_eval_count"), last.get("eval_count")
    return TokenUsage(
        count_of(prompt),
        count_of(completion),
        cached_tokens=count_of(last.get("prompt_eval_cached_count")),
        reported=is_count(prompt) and is_count(completion),
    )
