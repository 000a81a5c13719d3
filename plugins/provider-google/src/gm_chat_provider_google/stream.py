"""From the JSON objects of a stream to neutral events. Pure: nothing here waits or knows the SDK.

The objects are read as the wire has them, not as the SDK's models: building one for each chunk costs more than
everything else, unknown names of its many enumerations raise warnings, and a value of another type ends the stream.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from gm_chat.providers.arguments import decode_arguments
from gm_chat.providers.base import (
    ChatEvent,
    DoneEvent,
    FinishReason,
    ProviderError,
    ProviderFilteredError,
    ProviderIncompleteError,
    ProviderMalformedError,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
)
from gm_chat.providers.wire import array_of, is_count, object_of, text_of
from gm_chat_provider_google.failures import SignatureError
from gm_chat_provider_google.signatures import KEY, PartsLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["StreamAssembler"]

_FINISH: Final[Mapping[str, FinishReason]] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(
        (
            *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"),
            *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "ESCALATION", "PUP_LIMITED_DISABLED"),
        ),
        "filtered",
    ),
}
_FAILED_CALL: Final = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"})
"""The model wrote a call that Gemini could not read, or of a tool that it was not offered."""

_UNSPECIFIED: Final = frozenset({"FINISH_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED"})
_MAX_QUOTED: Final = 300


@dataclass(frozen=True, slots=True)
class _Call:
    """A tool call under the tool's own name, as it came."""

    name: str
    args: object = None
    id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class StreamAssembler:
    """Feed it the stream's objects in order, then :meth:`finish` it.

    Text comes out at once. Tool calls come out of :meth:`finish` only: a call of a stream that breaks off later must
    not have been run. Gemini sends each call whole, in most cases without an id; then one is minted.
    """

    def __init__(
        self,
        model: str,
        tools: Mapping[str, str] | None = None,
        new_id: Callable[[], str] = lambda: f"call_{uuid.uuid4().hex}",
    ) -> None:
        """Read an answer of ``model``. ``tools`` maps the names that it was offered to the tools' own."""
        self._tools = tools or {}
        self._new_id = new_id
        self._log = PartsLog(model)
        self._calls: list[_Call] = []
        self._has_text = False
        self._reason: str | None = None
        self._reason_text = ""
        self._blocked: str | None = None
        self._counts: dict[str, int] = {}
        self._answered_by: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the terminal marker has come."""
        return self._reason is not None or self._blocked is not None

    def feed(self, chunk: Mapping[str, Any]) -> Iterator[TextChunkEvent]:
        """Take one object and yield the text in it, empty text for a thought, which is not part of the answer."""
        answered_by = chunk.get("modelVersion")
        if isinstance(answered_by, str) and answered_by:
            self._answered_by = answered_by
        self._count(chunk.get("usageMetadata"))
        feedback = object_of(chunk.get("promptFeedback"), "promptFeedback")
        self._blocked = _reason(feedback, "blockReason") or self._blocked
        for candidate in array_of(chunk.get("candidates"), "candidates"):
            values = object_of(candidate, "a candidate")
            if not values.get("index"):  # the first of several, of which one was asked for
                yield from self._feed_candidate(values)

    def _feed_candidate(self, candidate: Mapping[str, Any]) -> Iterator[TextChunkEvent]:
        content = object_of(candidate.get("content"), "content")
        for item in array_of(content.get("parts"), "parts"):
            part = object_of(item, "a part")
            text = self._feed_part(part)
            if text or part.get("thought"):
                yield TextChunkEvent(text)
        reason = _reason(candidate, "finishReason")
        if reason is not None:
            self._reason = reason
            self._reason_text = text_of(candidate.get("finishMessage"), "finishMessage")[:_MAX_QUOTED]

    def _feed_part(self, part: Mapping[str, Any]) -> str:
        """Take a part and return its text, if that belongs to the answer."""
        call = part.get("functionCall")
        if call is not None:
            self._feed_call(object_of(call, "a functionCall"), part.get(KEY))
            return ""
        text = text_of(part.get("text"), "text")
        if part.get("thought"):
            self._log.thought(text, part.get(KEY))
            return ""
        if "text" in part or part.keys() == {KEY}:  # other kinds of parts, which were not asked for, are passed over
            self._log.text(len(text), part.get(KEY))
            self._has_text = self._has_text or bool(text)
        return text

    def _feed_call(self, call: Mapping[str, Any], signature: object) -> None:
        name = text_of(call.get("name"), "a functionCall's name")
        if not name:
            raise ProviderMalformedError("a functionCall came without a name")
        if call.get("partialArgs") or call.get("willContinue"):
            raise ProviderMalformedError(f"the functionCall {name!r} comes in pieces, which was not asked for")
        id = text_of(call.get("id"), "a functionCall's id")
        metadata = self._log.call(signature)
        if id:
            metadata["id"] = id
        self._calls.append(_Call(self._tools.get(name, name), call.get("args"), id, metadata))

    def _count(self, usage: object) -> None:
        """Keep the last value of each count: they are cumulative, and not all stand in every chunk."""
        for key, value in object_of(usage, "usageMetadata").items():
            if is_count(value):
                self._counts[key] = value

    def finish(self) -> list[ChatEvent]:
        """Return the tool calls and the :class:`DoneEvent`, or raise why there are none."""
        if self._blocked is not None and not self._has_text:
            raise ProviderFilteredError(f"a content filter refused the prompt (blockReason {self._blocked!r})")
        if self._reason is None:
            raise ProviderIncompleteError("the stream ended without a finishReason")
        told = f"(finishReason {self._reason!r}{': ' if self._reason_text else ''}{self._reason_text})"
        if self._reason == "MISSING_THOUGHT_SIGNATURE":
            raise SignatureError(f"a thought signature is missing in the history {told}")
        if self._reason == "MALFORMED_RESPONSE":
            raise ProviderMalformedError(f"Gemini could not read what its model wrote {told}", retryable=True)
        if self._reason in _FAILED_CALL:
            return [*self._failed_calls(told), self._done("tool_calls")]
        reason = _FINISH.get(self._reason, "unknown")
        if reason == "filtered" and not self._has_text:
            raise ProviderFilteredError(f"a content filter removed the answer {told}")
        if reason == "unknown" and not self._has_text and not self._calls:
            raise ProviderError(f"Gemini stopped without an answer {told}")
        cut = reason in ("length", "filtered")
        calls = [self._event(call, cut=cut) for call in self._calls]
        return [*calls, self._done("tool_calls" if calls and reason == "stop" else reason)]

    def _done(self, reason: FinishReason) -> DoneEvent:
        return DoneEvent(self._usage(), reason, self._answered_by, self._log.metadata())

    def _event(self, call: _Call, *, cut: bool = False) -> ToolCallEvent:
        args, error = decode_arguments(call.args, cut=cut)
        return ToolCallEvent(call.id or self._new_id(), call.name, args, error, call.metadata)

    def _failed_calls(self, told: str) -> Iterator[ToolCallEvent]:
        """Yield the calls of an answer that Gemini itself declared broken: none is run, the model is told.

        Gemini mostly leaves such a call out, and names its tool in words at best; else there is nothing to answer to.
        A call of a tool that was not offered goes on as it is: the host knows what to say to that.
        """
        calls = self._calls or list(self._told_call())
        if not calls:
            raise ProviderMalformedError(f"Gemini could not read a tool call of its model {told}", retryable=True)
        for call in calls:
            if self._reason == "UNEXPECTED_TOOL_CALL" and call.name not in self._tools.values():
                yield self._event(call)
            else:
                error = f"Gemini refused the call {told}; it was not run"
                yield replace(self._event(call), args={}, error=error)

    def _told_call(self) -> Iterator[_Call]:
        """Yield the call of the offered tool that the reason's text names first, if it names one."""
        found = ((match.start(), name) for name in self._tools if (match := _named(name, self._reason_text)))
        for _, name in sorted(found)[:1]:
            yield _Call(self._tools[name], metadata=self._log.call(None))

    def _usage(self) -> TokenUsage:
        count = self._counts.get
        thinking = count("thoughtsTokenCount", 0)
        return TokenUsage(
            count("promptTokenCount", 0) + count("toolUsePromptTokenCount", 0),
            count("candidatesTokenCount", 0) + thinking,
            cached_tokens=count("cachedContentTokenCount", 0),
            thinking_tokens=thinking,
            reported="promptTokenCount" in self._counts,
        )


def _named(name: str, text: str) -> re.Match[str] | None:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)


def _reason(values: Mapping[str, Any], key: str) -> str | None:
    reason = text_of(values.get(key), key)
    return None if reason in _UNSPECIFIED else reason or None
