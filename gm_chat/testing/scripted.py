"""A provider that plays a script: what a turn does is then decided by the test alone, to the last event.

A *script* is a sequence of rounds, one for each call of the provider; a round is a sequence of steps::

    from gm_chat.testing.scripted import ScriptedProvider, call

    def test_answers_from_data(client):
        with ScriptedProvider.playing(
            ["Let me look. ", call("query", manager="PartManager", fields=["name"])],   # first call
            ["Bolt ", "and gear."],                                                     # second call
        ) as script:
            response = client.post("/chat/", {"text": "Which parts?"}, content_type="application/json")
        assert response.json()["answer"] == "Let me look. Bolt and gear."
        assert script.requests[1].results == [{"data": [{"name": "Bolt"}, {"name": "Gear"}], ...}]

A step is

* ``"text"``: a chunk of text;
* :func:`call`: a tool call, also a malformed one (``error="cut off"``);
* a number: wait so many seconds;
* an async callable without arguments: await it (``gate.wait`` holds the stream until the test opens the gate);
* an exception: raise it;
* a provider event: yield it as it is; :func:`done` ends the round with other usage than the default;
* :data:`NO_DONE`, as the last one: the stream ends without its terminal event.

A failure before a round's first event is tried again, and so uses up the next round, unless the settings say
``provider_config={"max_retries": 0}``.

A round may also be a function of the :class:`ScriptedRequest` that returns the steps. Scripts in settings
(``provider_config={"script": [...]}``) are plain data: text, numbers, and ``{"call": name, "args": {...}}``.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeAlias

from gm_chat.providers.base import (
    MISSING,
    BaseLLMProvider,
    CallOptions,
    Capability,
    ChatEvent,
    DoneEvent,
    FinishReason,
    Message,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
    ToolDefinition,
)

__all__ = [
    "NO_DONE",
    "Round",
    "Script",
    "ScriptExhaustedError",
    "ScriptedProvider",
    "ScriptedRequest",
    "Step",
    "call",
    "done",
]


class _NoDone:
    """The type of :data:`NO_DONE`."""

    def __repr__(self) -> str:
        return "NO_DONE"


NO_DONE: Final = _NoDone()
"""The step that leaves out the terminal event."""

DEFAULT_USAGE: Final = TokenUsage(input_tokens=10, output_tokens=5)
"""What a round reports unless it says otherwise."""

Step: TypeAlias = str | float | ChatEvent | BaseException | Callable[[], Awaitable[Any]] | _NoDone | Mapping[str, Any]


class ScriptExhaustedError(Exception):
    """The provider was called more often than the script has rounds."""


def call(name: str, /, *, call_id: str = "", error: str | None = None, **args: Any) -> ToolCallEvent:
    """Make a tool-call step. ``error`` marks arguments that could not be read; they are then empty."""
    return ToolCallEvent(call_id, name, args, error=error)


def done(
    input_tokens: int = 0, output_tokens: int = 0, *, finish_reason: FinishReason = "stop", reported: bool = True
) -> DoneEvent:
    """Make the terminal step of a round."""
    return DoneEvent(TokenUsage(input_tokens, output_tokens, reported=reported), finish_reason)


@dataclass(frozen=True, slots=True)
class ScriptedRequest:
    """What the provider was asked in one round."""

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    options: CallOptions

    @property
    def system(self) -> str:
        """The system prompt."""
        return "\n".join(message.content for message in self.messages if message.role == "system")

    @property
    def results(self) -> list[Any]:
        """The tool results of the running turn, in order.

        It begins at the last user message, except for one that stands directly after a tool result: that is the
        engine's own request for an answer.
        """
        results: list[Any] = []
        for before, message in zip((None, *self.messages), self.messages, strict=False):
            if message.role == "user" and (before is None or before.role != "tool"):
                results.clear()
            elif message.tool_result is not MISSING:
                results.append(message.tool_result)
        return results

    @property
    def tool_names(self) -> list[str]:
        """The names of the offered tools."""
        return [tool.name for tool in self.tools]


Round: TypeAlias = Sequence[Step] | Callable[[ScriptedRequest], Sequence[Step]]


@dataclass(slots=True)
class Script:
    """Rounds to play, and the requests that were made so far.

    ``repeat`` starts over at the end instead of raising :class:`ScriptExhaustedError`. One script serves any number
    of provider instances: a provider is built anew for each request.
    """

    rounds: Sequence[Round]
    repeat: bool = False
    requests: list[ScriptedRequest] = field(default_factory=list)
    open_streams: int = 0
    """Streams that were started and neither ended nor closed: 0 after every turn, or something leaks."""

    def next_round(self, request: ScriptedRequest) -> Sequence[Step]:
        """Record a request and return the steps that answer it."""
        position = len(self.requests)
        self.requests.append(request)
        if self.repeat and self.rounds:
            position %= len(self.rounds)
        if position >= len(self.rounds):
            raise ScriptExhaustedError(
                f"the script has {len(self.rounds)} round(s), but the provider was called {position + 1} times; "
                f"the last message was {request.messages[-1] if request.messages else None!r}"
            )
        chosen = self.rounds[position]
        return chosen(request) if callable(chosen) else chosen


class ScriptedProvider(BaseLLMProvider):
    """Plays the script that :meth:`playing` set, else the one under ``provider_config["script"]``."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset({"tool_choice", "response_format", "deadline"})
    script: ClassVar[Script | None] = None
    """The running script. It belongs to the process, as server threads and tasks must see it too."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        """Take ``config``, or the chat's ``provider_config``."""
        super().__init__(config)
        # An instance serves one request or socket, so a script from the settings starts over with each.
        rounds = self.provider_config.get("script")
        self._configured = None if rounds is None else Script(rounds)

    @classmethod
    @contextmanager
    def playing(cls, *rounds: Round, repeat: bool = False) -> Iterator[Script]:
        """Let every instance play ``rounds`` while the block runs; yields the script, with its ``requests``."""
        before, cls.script = cls.script, Script(rounds, repeat=repeat)
        try:
            yield cls.script
        finally:
            cls.script = before

    def complete(
        self, messages: list[Message], tools: list[ToolDefinition], *, options: CallOptions | None = None
    ) -> AsyncGenerator[ChatEvent, None]:
        """Play the next round."""
        return _play(self._script(), ScriptedRequest(tuple(messages), tuple(tools), options or CallOptions()))

    def _script(self) -> Script:
        script = self.script or self._configured
        if script is None:
            raise LookupError(
                "ScriptedProvider has nothing to play: use `with ScriptedProvider.playing([...], ...)` "
                'or set provider_config = {"script": [[...], ...]}'
            )
        return script


async def _play(script: Script, request: ScriptedRequest) -> AsyncGenerator[ChatEvent, None]:
    script.open_streams += 1
    try:
        steps = script.next_round(request)
        ids = map(f"scripted-{len(script.requests)}-{{}}".format, itertools.count(1))
        for step in steps:
            match step:
                case str():
                    yield TextChunkEvent(step)
                case int() | float():
                    await asyncio.sleep(step)
                case BaseException():
                    raise step
                case _NoDone():
                    return
                case DoneEvent():
                    yield step
                    return
                case ToolCallEvent():
                    yield step if step.id else ToolCallEvent(next(ids), step.name, step.args, step.error, step.metadata)
                case TextChunkEvent():
                    yield step
                case Mapping():
                    yield ToolCallEvent(next(ids), step["call"], step.get("args", {}), step.get("error"))
                case _:
                    await step()
        yield DoneEvent(DEFAULT_USAGE, "stop")
    finally:
        script.open_streams -= 1
