"""What an adapter's author declares, and what all of the contract's tests use."""
# ruff: noqa: S101 - these are tests, although they ship: assert is how pytest explains a failure

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from gm_chat.providers.base import (
    CallOptions,
    ChatEvent,
    DoneEvent,
    Message,
    Provider,
    ProviderError,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
    ToolDefinition,
)
from gm_chat.testing.histories import QUESTION, TOOLS
from gm_chat.testing.replay import ReplayServer, Reply
from gm_chat.testing.wire_cases import WireCase, wire_cases

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

__all__ = ["ContractBase", "Recording", "collect", "outcome", "stream", "summary"]


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded stream and its meaning. ``usage`` is ``None`` if the service reported none.

    ``errors`` holds, for each call whose arguments are broken, how its error must begin (else an empty string).
    """

    body: bytes
    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    errors: Sequence[str] = ()
    usage: TokenUsage | None = None


class ContractBase:
    """What a subclass sets, and the server that its adapter is tested against."""

    path: ClassVar[str]
    """The path that the adapter posts to, below the address that ``build`` gets."""
    terminal: ClassVar[bytes]
    """What the line of the stream that ends a completion is known by, e.g. ``b'"done":true'``."""
    content_type: ClassVar[str] = "text/event-stream"
    error_body: ClassVar[bytes] = b'{"error": {"message": "not today", "type": "test", "code": null}}'
    wire_format: ClassVar[str | None] = None
    """The format that the service speaks, if it is one of :data:`gm_chat.testing.wire_cases.FORMATS`."""

    text: ClassVar[Recording]
    """Text, with at least two chunks and a character that takes several bytes."""
    tool_call: ClassVar[Recording]
    """One tool call."""
    parallel_calls: ClassVar[Recording]
    """Several tool calls in one answer."""
    cut_off: ClassVar[Recording | None] = None
    """A tool call whose arguments the output limit cut off, if the service streams arguments piecewise."""

    def build(self, url: str, **config: Any) -> Provider:
        """Return the adapter for a server at ``url``; ``config`` may hold ``timeout_seconds``."""
        raise NotImplementedError

    def check_request(self, body: Mapping[str, Any]) -> None:
        """Raise unless ``body`` is what the SDK's own types allow."""
        raise NotImplementedError

    def cases(self) -> Sequence[WireCase]:
        """Return the wire cases to hold: those of ``wire_format``, and whatever a subclass adds."""
        return wire_cases(self.wire_format) if self.wire_format else ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make one test of each wire case."""
        if "wire_case" in metafunc.fixturenames:
            metafunc.parametrize("wire_case", self.cases(), ids=lambda case: case.name)

    @asynccontextmanager
    async def serving(self, *replies: Reply, **config: Any) -> AsyncIterator[tuple[ReplayServer, Provider]]:
        """Run a server with these replies, and an adapter that talks to it."""
        async with ReplayServer() as server:
            server.reply(self.path, *replies)
            yield server, self.build(server.url, **config)

    def replying(self, recording: Recording, **changes: Any) -> Reply:
        """Return the reply that replays a recording, with further fields of :class:`Reply`."""
        return Reply(recording.body, content_type=self.content_type, **changes)

    def end_of(self, recording: Recording) -> int:
        """Return where the recording's terminal line starts."""
        position = recording.body.index(self.terminal)
        return recording.body.rfind(b"\n", 0, position) + 1


def stream(
    provider: Provider,
    messages: Sequence[Message] = QUESTION,
    tools: Sequence[ToolDefinition] = (),
    options: CallOptions | None = None,
) -> Any:
    """Start a completion; options are passed only if given, as a provider need not take them."""
    return provider.complete(list(messages), list(tools), **({"options": options} if options else {}))


async def collect(
    provider: Provider,
    messages: Sequence[Message] = QUESTION,
    tools: Sequence[ToolDefinition] = (),
    options: CallOptions | None = None,
) -> list[ChatEvent]:
    """Return all events of one completion."""
    async with aclosing(stream(provider, messages, tools, options)) as events:
        return [event async for event in events]


async def outcome(provider: Provider) -> tuple[list[ChatEvent], ProviderError]:
    """Return the events before the error, and the error; fail if there is none."""
    seen: list[ChatEvent] = []
    async with aclosing(stream(provider, tools=TOOLS)) as events:
        try:
            async for event in events:
                seen.append(event)  # noqa: PERF401 - an error must not lose what came before it
        except ProviderError as error:
            return seen, error
    pytest.fail(f"the stream ended normally, with {seen!r}")


def summary(events: Sequence[ChatEvent]) -> tuple[str, list[tuple[str, str, str | None]], list[DoneEvent]]:
    """Return what must not depend on the bytes' timing: the text as one, and calls without ids that were minted."""
    return (
        "".join(event.content for event in events if isinstance(event, TextChunkEvent)),
        [(event.name, repr(event.args), event.error) for event in events if isinstance(event, ToolCallEvent)],
        [event for event in events if isinstance(event, DoneEvent)],
    )


def check_meaning(
    events: Sequence[ChatEvent],
    *,
    text: str,
    calls: Sequence[tuple[str, Mapping[str, Any]]],
    errors: Sequence[str],
    finish: str,
    usage: TokenUsage | None,
) -> None:
    """Fail unless a complete stream gave this text, these calls and one DoneEvent; ``usage=None`` is not looked at."""
    assert "".join(event.content for event in events if isinstance(event, TextChunkEvent)) == text
    seen = [event for event in events if isinstance(event, ToolCallEvent)]
    assert [(call.name, dict(call.args)) for call in seen] == [(name, dict(args)) for name, args in calls]
    assert all(call.id for call in seen)
    for call, beginning in zip(seen, errors or [""] * len(seen), strict=True):
        assert (call.error or "").startswith(beginning)
        assert (call.error is None) == (beginning == "")
    done = events[-1]
    assert isinstance(done, DoneEvent)
    assert sum(isinstance(event, DoneEvent) for event in events) == 1
    assert done.finish_reason == finish
    if usage is not None:
        assert done.usage == usage
