"""What every provider adapter must do, as tests to inherit.

An adapter's author records a few streams of the real service, byte for byte, and says what they mean::

    class TestAcme(ProviderContract):
        path = "/v1/stream"
        terminal = b'"finished":true'
        text = Recording(read("text.sse"), text="Hello", usage=TokenUsage(5, 1))
        tool_call = Recording(read("tool_call.sse"), calls=[("query", {"manager": "Part"})])
        parallel_calls = Recording(read("parallel.sse"), calls=[("query", {"manager": "Part"}), ("query", {})])

        def build(self, url, **config):
            return AcmeProvider.from_config({"base_url": url, "api_key": "test", **config})

        def check_request(self, body):
            acme.types.ChatRequest.model_validate(body)

The adapter then talks, with its real SDK, to a :class:`~gm_chat.testing.replay.ReplayServer`, which replays the
recordings whole, cut, stalled and broken. The tests need pytest and pytest-asyncio.
"""
# ruff: noqa: S101 - these are tests, although they ship: assert is how pytest explains a failure

from __future__ import annotations

import asyncio
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
    ProviderAuthenticationError,
    ProviderError,
    ProviderIncompleteError,
    ProviderOverloadedError,
    ProviderQuotaError,
    ProviderTimeoutError,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
    ToolDefinition,
)
from gm_chat.testing.histories import HISTORIES, QUESTION, TOOLS
from gm_chat.testing.replay import ReplayServer, Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

__all__ = ["HISTORIES", "QUESTION", "TOOLS", "ProviderContract", "Recording", "collect", "outcome"]


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


class ProviderContract:
    """Inherit from it in a class ``Test...`` and set what is declared here without a value."""

    path: ClassVar[str]
    """The path that the adapter posts to, below the address that ``build`` gets."""
    terminal: ClassVar[bytes]
    """What the line of the stream that ends a completion is known by, e.g. ``b'"done":true'``."""
    content_type: ClassVar[str] = "text/event-stream"
    error_body: ClassVar[bytes] = b'{"error": {"message": "not today", "type": "test", "code": null}}'

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

    # --- helpers ------------------------------------------------------------------------------------------------

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

    # --- what a stream gives ------------------------------------------------------------------------------------

    @pytest.mark.asyncio
    @pytest.mark.parametrize("name", ["text", "tool_call", "parallel_calls", "cut_off"])
    async def test_a_recording_gives_its_meaning(self, name: str) -> None:
        """Text, calls in order with decoded arguments and ids, then one DoneEvent with the usage."""
        recording: Recording | None = getattr(self, name)
        if recording is None:
            pytest.skip(f"no recording {name!r}")
        async with self.serving(self.replying(recording)) as (_, provider):
            events = await collect(provider, tools=TOOLS)
        assert "".join(event.content for event in events if isinstance(event, TextChunkEvent)) == recording.text
        calls = [event for event in events if isinstance(event, ToolCallEvent)]
        assert [(call.name, dict(call.args)) for call in calls] == [
            (name, dict(args)) for name, args in recording.calls
        ]
        assert all(call.id for call in calls)
        assert len({call.id for call in calls}) == len(calls)
        for call, beginning in zip(calls, recording.errors or [""] * len(calls), strict=True):
            assert (call.error or "").startswith(beginning)
            assert (call.error is None) == (beginning == "")
        done = events[-1]
        assert isinstance(done, DoneEvent)
        assert sum(isinstance(event, DoneEvent) for event in events) == 1
        assert done.finish_reason == ("length" if recording.errors else "tool_calls" if calls else "stop")
        if recording.usage is None:
            assert not done.usage.reported
        else:
            assert done.usage == recording.usage

    @pytest.mark.asyncio
    @pytest.mark.parametrize("name", ["text", "parallel_calls"])
    async def test_bytes_may_be_cut_anywhere(self, name: str) -> None:
        """The events do not depend on how the network cuts the bytes, not even inside a character."""
        recording: Recording = getattr(self, name)
        expected = None
        for cuts in ((), *((cut,) for cut in sample_cuts(recording.body)), range(1, len(recording.body), 97)):
            async with self.serving(self.replying(recording, cuts=cuts)) as (_, provider):
                seen = summary(await collect(provider, tools=TOOLS))
            expected = expected or seen
            assert seen == expected, f"cut at {cuts}"

    @pytest.mark.asyncio
    @pytest.mark.parametrize("name", ["text", "tool_call"])
    async def test_a_stream_without_its_end_is_incomplete(self, name: str) -> None:
        """Whatever the server leaves out at the end, no call comes out and the error says so."""
        recording: Recording = getattr(self, name)
        end = self.end_of(recording)
        for length in [*range(0, end, max(1, end // 10)), end]:
            async with self.serving(self.replying(Recording(recording.body[:length]))) as (_, provider):
                events, error = await outcome(provider)
            assert isinstance(error, ProviderIncompleteError), f"cut after {length} bytes: {error!r}"
            assert all(isinstance(event, TextChunkEvent) for event in events)

    @pytest.mark.asyncio
    async def test_a_broken_connection_is_incomplete(self) -> None:
        """So is a stream whose connection breaks."""
        reply = self.replying(self.tool_call, drop_at=self.end_of(self.tool_call))
        async with self.serving(reply) as (_, provider):
            events, error = await outcome(provider)
        assert isinstance(error, ProviderIncompleteError)
        assert not events

    @pytest.mark.asyncio
    async def test_a_page_is_incomplete(self) -> None:
        """A login page or a proxy's notice with status 200 is not taken for an empty answer."""
        page = Reply(b"<!doctype html>\n<html><body>Please log in</body></html>\n", content_type="text/html")
        async with self.serving(page) as (_, provider):
            events, error = await outcome(provider)
        assert isinstance(error, ProviderIncompleteError)
        assert not events

    # --- errors -------------------------------------------------------------------------------------------------

    @pytest.mark.asyncio
    @pytest.mark.parametrize(
        ("status", "kind"),
        [
            (400, ProviderError),
            (401, ProviderAuthenticationError),
            (403, ProviderAuthenticationError),
            (404, ProviderError),
            (429, ProviderQuotaError),
            (500, ProviderError),
            (503, ProviderOverloadedError),
        ],
    )
    async def test_an_error_status_has_its_error(self, status: int, kind: type[ProviderError]) -> None:
        """One request, one error of the right kind: retrying is the host's business."""
        reply = Reply(self.error_body, status=status, content_type="application/json", headers={"retry-after": "17"})
        async with self.serving(reply) as (server, provider):
            _, error = await outcome(provider)
        assert type(error) is kind
        assert error.retry_after == 17.0
        assert len(server.requests) == 1

    @pytest.mark.asyncio
    async def test_an_error_page_is_an_error(self) -> None:
        """A proxy's error page is shortened, not parsed."""
        reply = Reply(b"<html>" + b"x" * 100_000, status=502, content_type="text/html")
        async with self.serving(reply) as (_, provider):
            _, error = await outcome(provider)
        assert type(error) is ProviderError
        assert len(str(error)) < 1000

    @pytest.mark.asyncio
    async def test_no_server_is_an_error(self) -> None:
        """An address that nothing listens on gives a ProviderError, not the SDK's own."""
        async with self.serving() as (_, provider):
            pass
        _, error = await outcome(provider)
        assert type(error) is ProviderError

    @pytest.mark.asyncio
    @pytest.mark.parametrize("where", ["at the start", "in the middle"])
    async def test_a_silent_server_times_out(self, where: str) -> None:
        """``timeout_seconds`` reaches the SDK."""
        stall_at = 0 if where == "at the start" else self.end_of(self.text)
        async with self.serving(self.replying(self.text, stall_at=stall_at), timeout_seconds=0.2) as (_, provider):
            _, error = await outcome(provider)
        assert isinstance(error, ProviderTimeoutError)

    # --- leaving ------------------------------------------------------------------------------------------------

    @pytest.mark.asyncio
    async def test_leaving_closes_the_connection(self) -> None:
        """Whoever leaves the iterator stops the provider, and the bill, at once."""
        reply = self.replying(self.text, stall_at=self.end_of(self.text))
        async with self.serving(reply) as (server, provider):
            async with aclosing(stream(provider)) as events:
                async for event in events:
                    assert isinstance(event, TextChunkEvent)
                    break
            assert await server.requests[0].closed_by_client(within=1.0) < 1.0

    @pytest.mark.asyncio
    @pytest.mark.parametrize("where", ["before the first byte", "in the middle"])
    async def test_cancelling_closes_the_connection(self, where: str) -> None:
        """So does cancelling the task that waits for the next event."""
        stall_at = 0 if where == "before the first byte" else self.end_of(self.text)
        async with self.serving(self.replying(self.text, stall_at=stall_at)) as (server, provider):
            task = asyncio.create_task(collect(provider))
            await server.wait_for_request(within=5.0)
            await asyncio.sleep(0.05)  # lets the adapter read what comes before the silence
            task.cancel()
            assert await server.requests[0].closed_by_client(within=1.0) < 1.0
            with pytest.raises(asyncio.CancelledError):
                await task

    @pytest.mark.asyncio
    async def test_connections_are_reused(self) -> None:
        """Two complete calls, by two instances, share a connection."""
        async with self.serving(self.replying(self.text)) as (server, provider):
            await collect(provider)
            await collect(self.build(server.url))
        assert [request.connection for request in server.requests] == [1, 1]

    @pytest.mark.asyncio
    async def test_a_server_that_hangs_up_is_asked_once(self) -> None:
        """On a connection opened for the request the end is the server's answer."""
        async with self.serving(Reply(hang_up=True)) as (server, provider):
            _, error = await outcome(provider)
        assert type(error) is ProviderError
        assert len(server.requests) == 1

    # --- requests -----------------------------------------------------------------------------------------------

    @pytest.mark.asyncio
    @pytest.mark.parametrize("name", HISTORIES)
    async def test_a_history_becomes_a_valid_request(self, name: str) -> None:
        """Each prefix of each history that holds a question converts to what the SDK's types allow."""
        history = HISTORIES[name]
        async with self.serving(self.replying(self.text)) as (server, provider):
            for length in range(1, len(history) + 1):
                if any(message.role == "user" for message in history[:length]):
                    await collect(provider, history[:length], TOOLS)
        assert server.requests
        for request in server.requests:
            self.check_request(request.json())

    @pytest.mark.asyncio
    async def test_without_tools_there_is_no_tools_key(self) -> None:
        """An empty list of tools is refused by some services."""
        async with self.serving(self.replying(self.text)) as (server, provider):
            await collect(provider)
            await collect(provider, tools=TOOLS)
        without, with_tools = (request.json() for request in server.requests)
        assert "tools" not in without
        assert "tools" in with_tools


# --- helpers ----------------------------------------------------------------------------------------------------


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


def sample_cuts(body: bytes, *, count: int = 12) -> Iterator[int]:
    """Yield positions to cut ``body`` at: spread evenly, at line ends, and inside characters of several bytes."""
    yield from range(1, len(body), max(1, len(body) // count))
    inside = [position for position in range(1, len(body)) if body[position] & 0xC0 == 0x80]
    yield from inside[:4]
    first_line = body.find(b"\n")
    yield from (position for position in (first_line, first_line + 1, first_line + 2) if 0 < position < len(body))
