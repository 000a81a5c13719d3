"""Tool calls that a model writes as text, turned into structured ones where that is safe and was asked for.

Models that were trained on another format than their server's parser expects, small local ones above all, answer with
nothing but the call: a JSON object with ``name`` and ``arguments`` (or ``parameters``), bare, in a code block or
between tags such as ``<tool_call>``; or ``<function=name>`` with an object, or with ``<parameter=...>`` tags, inside.

Precision comes before recall: what is not run is at worst read, what is run by mistake was perhaps an example. So the
message must be *nothing but* one such call, of a tool that was offered in this very request and does not write. Prose
before or after it, a second call, an unknown key, a tool of another name: then it is text, and stays what it was.

The stream is not kept waiting: text that can no longer become a call goes out at once, the rest is held back until it
is decided. The decision is made character by character, hence the same however the text was cut into chunks.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from gm_chat.providers.arguments import CUT_OFF, decode_arguments, strict_json
from gm_chat.providers.base import (
    ChatEvent,
    DoneEvent,
    ProviderError,
    TextChunkEvent,
    ToolCallEvent,
    ToolDefinition,
)

__all__ = ["MAX_CHARACTERS", "TextCall", "structured"]

MAX_CHARACTERS: Final = 16_000
"""A longer message is text."""

_OPENERS: Final = (
    *("```json", "```xml", "```tool_call", "```"),
    *("<tool_call>", "<tools>", "<tool>", "<function_call>", "<function-call>", "<function>"),
    *("[TOOL_CALLS]", "<|python_tag|>", "<|tool_call|>", "["),
)
"""What may stand before the object, in any combination: models are seen to write each of these."""

_CLOSERS: Final = (
    *("</tool_call>", "</tools>", "</tool>", "</function_call>", "</function-call>", "</function>"),
    *("```", "]", "<|/tool_call|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>"),
)
"""What may follow it. Models forget these, and mix them up."""

_NAMED: Final = "<function="
_KEYS: Final = frozenset({"name", "arguments", "parameters", "function", "type", "id"})
_SPACE: Final = re.compile(r"\s*")
_PARAMETER: Final = re.compile(r"\s*<parameter=([^\s<>]+)>\n?((?:(?!<parameter=).)*?)\n?</parameter>\s*", re.DOTALL)


async def structured(events: AsyncIterator[ChatEvent], tools: Sequence[ToolDefinition]) -> AsyncGenerator[ChatEvent]:
    """Pass ``events`` on; where the whole text is one call of one of ``tools``, give a ``ToolCallEvent`` in its place.

    ``tools`` are those that the model was offered in this request: none in an answer round. A stream with a
    structured call of its own is left as it is, and so is one that fails. While text is held back, empty text tells
    that the stream lives. Closes ``events``, if it can be closed.
    """
    readable = {tool.name: tool for tool in tools if not tool.writes}
    text = TextCall(readable) if readable else None
    try:
        async for event in events:
            if text is None:
                yield event
            elif isinstance(event, TextChunkEvent):
                yield TextChunkEvent(text.feed(event.content))
                text = None if text.is_prose else text
            else:
                for decided in _decided(text, event):
                    yield decided
                text = None
    except ProviderError:
        if text is not None and text.held:
            yield TextChunkEvent(text.held)
        raise
    finally:
        aclose = getattr(events, "aclose", None)
        if aclose is not None:
            await aclose()


def _decided(text: TextCall, event: ToolCallEvent | DoneEvent) -> list[ChatEvent]:
    """What takes the place of the text that was held back, and of the event that ended it."""
    if isinstance(event, ToolCallEvent):
        return [TextChunkEvent(text.held), event]
    call = text.finish(cut=event.finish_reason in ("length", "filtered"))
    if call is None:
        return [TextChunkEvent(text.held), event]
    reason = "tool_calls" if event.finish_reason in ("stop", "unknown") else event.finish_reason
    return [call, replace(event, finish_reason=reason)]


class TextCall:
    """Decides about one message while it comes in: :meth:`feed` it, then :meth:`finish` it."""

    def __init__(
        self, tools: Mapping[str, ToolDefinition], new_id: Callable[[], str] = lambda: f"call_{uuid.uuid4().hex}"
    ) -> None:
        self.held = ""
        """The message so far, as long as it may still become a call."""
        self.is_prose = False
        """Whether it has become clear that it is none. Nothing is fed any further then."""
        self._tools = tools
        self._new_id = new_id
        self._position = 0
        self._read: Callable[[], bool] = self._read_head
        self._name: str | None = None
        self._span: tuple[int, int] | None = None
        self._object: _ObjectScanner | None = None

    def feed(self, fragment: str) -> str:
        """Take more of the message, and return what may go out: nothing, or all that was held back."""
        self.held += fragment
        if len(self.held) <= MAX_CHARACTERS and self._read():
            return ""
        self.is_prose = True
        released, self.held = self.held, ""
        return released

    def finish(self, *, cut: bool = False) -> ToolCallEvent | None:
        """Return the call that the whole message is, or ``None``: then what is :attr:`held` is text.

        ``cut`` says that the output limit, or a filter, ended the message.
        """
        if cut and self._span is None:
            name = self._object.name if self._object else self._name
            return ToolCallEvent(self._new_id(), name, {}, CUT_OFF) if name is not None else None
        if self._name is not None:
            start, end = self._span or (self._position, len(self.held))
            return self._tagged_call(self._name, self.held[start:end])
        if self._span is None:
            return None
        value, error = decode_arguments(self.held[slice(*self._span)])
        return None if error else self._call(value)

    # --- while it comes in: whether it may still become a call -------------------------------------------------------

    def _read_head(self) -> bool:
        self._position, is_open = _skip(self.held, self._position, _OPENERS)
        if is_open:
            return True
        if self.held.startswith(_NAMED, self._position):
            self._position += len(_NAMED)
            self._read = self._read_name
        elif self.held.startswith("{", self._position):
            self._object = _ObjectScanner(self._position, self._tools)
            self._read = self._read_object
        else:
            return False
        return self._read()

    def _read_object(self) -> bool:
        assert self._object is not None  # noqa: S101 (set together with this step)
        end = self._object.scan(self.held)
        if end is None:
            return not self._object.failed
        self._span = (self._position, end)
        return self._expect_end(end)

    def _read_name(self) -> bool:
        name, is_whole, _ = self.held[self._position :].partition(">")
        if not is_whole:
            return any(tool.startswith(name) for tool in self._tools)
        if name not in self._tools:
            return False
        self._name = name
        self._position += len(name) + 1
        self._read = self._read_tagged
        return self._read()

    def _read_tagged(self) -> bool:
        end = self.held.find("</function>", self._position)
        if end < 0:
            return True
        self._span = (self._position, end)
        return self._expect_end(end)

    def _expect_end(self, position: int) -> bool:
        self._position = position
        self._read = self._read_tail
        return self._read()

    def _read_tail(self) -> bool:
        self._position, is_open = _skip(self.held, self._position, _CLOSERS)
        return is_open

    # --- when it has come --------------------------------------------------------------------------------------------

    def _call(self, value: Mapping[str, Any]) -> ToolCallEvent | None:
        """Read ``{"name", "arguments"}`` in the spellings that models have for it; ``None`` if it says any more."""
        if isinstance(value.get("function"), Mapping):
            if not value.keys() <= {"type", "function", "id"}:
                return None
            value = value["function"]
        names = [value[key] for key in ("name", "function") if key in value]
        arguments = [value[key] for key in ("arguments", "parameters") if key in value]
        if len(names) != 1 or len(arguments) != 1 or not value.keys() <= _KEYS:
            return None
        if not (isinstance(names[0], str) and names[0] in self._tools and value.get("type", "function") == "function"):
            return None
        args, error = decode_arguments(arguments[0])
        return ToolCallEvent(self._new_id(), names[0], args, error)

    def _tagged_call(self, name: str, inner: str) -> ToolCallEvent | None:
        """Read what stands in ``<function=name>``: a JSON object, parameters in tags, or nothing."""
        args: Mapping[str, Any] | None
        args, error = self._parameters(name, inner), None
        if inner.lstrip().startswith("{"):
            args, error = decode_arguments(inner)
            if error and self._span is None:  # without the end of the tag it may be followed by prose
                return None
        return None if args is None else ToolCallEvent(self._new_id(), name, args, error)

    def _parameters(self, name: str, inner: str) -> Mapping[str, Any] | None:
        properties = self._tools[name].input_schema.get("properties", {})
        args: dict[str, Any] = {}
        position = 0
        while (match := _PARAMETER.match(inner, position)) and match[1] not in args:
            args[match[1]] = _typed(match[2], properties.get(match[1]))
            position = match.end()
        return None if inner[position:].strip() else args


class _ObjectScanner:
    """Follows a JSON object from its brace to its end, and notices early that it is no call of these tools.

    Early is before the end, for the sake of a reader who waits; whether it is one is decided by parsing it.
    """

    def __init__(self, start: int, tools: Collection[str]) -> None:
        self.failed = False
        self.name: str | None = None
        self._tools = tools
        self._next = start
        self._depth = 0
        self._string: int | None = None
        self._escaped = False
        self._key: str | None = None
        self._is_value = False

    def scan(self, text: str) -> int | None:
        """Read on in ``text``, which has grown at its end; return where the object ends, once it does."""
        while self._next < len(text) and not self.failed:
            character = text[self._next]
            self._next += 1
            if self._string is not None:
                self._in_string(character, text)
            elif character == '"':
                self._string = self._next
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                if self._depth == 0:
                    return self._next
            elif self._depth == 1:
                self._between(character)
        return None

    def _in_string(self, character: str, text: str) -> None:
        if self._escaped:
            self._escaped = False
        elif character == "\\":
            self._escaped = True
        elif character == '"':
            if self._depth == 1:
                self._string_of_ours(text[self._string : self._next - 1])
            self._string = None

    def _string_of_ours(self, content: str) -> None:
        if not self._is_value:
            self._key = content
            self.failed = content not in _KEYS
        elif self._key in ("name", "function"):
            self.name = content
            self.failed = content not in self._tools

    def _between(self, character: str) -> None:
        if character in ":,":
            self._is_value = character == ":"
        elif not self._is_value:
            self.failed = not character.isspace()  # a key without quotes, or in others


def _skip(text: str, position: int, literals: Collection[str]) -> tuple[int, bool]:
    """Return the position after all white space and ``literals``, and whether what comes next may be one more."""
    longest = max(map(len, literals))
    while True:
        position = _SPACE.match(text, position).end()  # type: ignore[union-attr]  # it matches everywhere
        rest = text[position : position + longest]
        if any(len(rest) < len(literal) and literal.startswith(rest) for literal in literals):
            return position, True
        found = max((literal for literal in literals if rest.startswith(literal)), key=len, default=None)
        if found is None:
            return position, False
        position += len(found)


def _typed(text: str, schema: object) -> Any:
    """Read a parameter's text as what its schema asks for; what does not fit stays text, for the model to mend."""
    kinds = schema.get("type") if isinstance(schema, Mapping) else None
    if kinds is None or "string" in kinds:
        return text
    try:
        return strict_json(text)
    except ValueError:
        return text
