from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Self

import pytest

from gm_chat.engine import streams
from gm_chat.engine.ports import ProviderHandle
from gm_chat.engine.provider import Completion, stream_completion
from gm_chat.providers.base import (
    CallOptions,
    ChatEvent,
    DoneEvent,
    Message,
    ProviderIncompleteError,
    ProviderQuotaError,
    ProviderTimeoutError,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
    ToolDefinition,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

CALL = ToolCallEvent("c1", "query", {"manager": "PartManager"})


class Source:
    """A provider whose stream tells whether it was closed."""

    def __init__(self, *steps: Any) -> None:
        self.steps = steps
        self.closed = False
        self.got: tuple[Any, ...] = ()
        self.after_done = False

    async def complete(
        self, messages: list[Message], tools: list[ToolDefinition], options: CallOptions
    ) -> AsyncIterator[ChatEvent]:
        self.got = (messages, tools, options)
        try:
            for step in self.steps:
                match step:
                    case float():
                        await asyncio.sleep(step)
                    case BaseException():
                        raise step
                    case _:
                        yield step
            self.after_done = True
        finally:
            self.closed = True


async def collect(complete: Callable[..., AsyncIterator[ChatEvent]], **timeouts: float) -> list[Any]:
    handle = ProviderHandle("acme", complete, **timeouts)
    async with aclosing(stream_completion(handle, [Message("user", "hi")], [], CallOptions())) as stream:
        return [item async for item in stream]


async def test_text_comes_as_it_is_and_then_the_completion() -> None:
    done = DoneEvent(TokenUsage(3, 4), "tool_calls", metadata={"thought": "x"})
    source = Source(TextChunkEvent("a"), TextChunkEvent(""), CALL, TextChunkEvent("b"), done)
    assert await collect(source.complete) == [
        TextChunkEvent("a"),
        TextChunkEvent("b"),
        Completion(calls=(CALL,), usage=TokenUsage(3, 4), finish_reason="tool_calls", metadata={"thought": "x"}),
    ]
    assert source.got == ([Message("user", "hi")], [], CallOptions())


async def test_what_follows_done_is_not_read_and_the_stream_is_closed() -> None:
    source = Source(DoneEvent(), TextChunkEvent("late"), CALL)
    (completion,) = await collect(source.complete)
    assert completion.calls == ()
    assert source.closed
    assert not source.after_done


async def test_a_stream_without_done_is_incomplete() -> None:
    source = Source(TextChunkEvent("a"), CALL)
    with pytest.raises(ProviderIncompleteError, match="provider 'acme' ended without a DoneEvent"):
        await collect(source.complete)
    assert source.closed


async def test_the_first_event_must_come_in_time() -> None:
    source = Source(5.0, DoneEvent())
    with pytest.raises(ProviderTimeoutError, match=r"'acme' sent no first event within 0\.02 s"):
        await collect(source.complete, timeout_seconds=0.02)
    assert source.closed


async def test_later_events_have_their_own_limit() -> None:
    source = Source(0.05, TextChunkEvent("a"), 5.0, DoneEvent())
    with pytest.raises(ProviderTimeoutError, match=r"no next event within 0\.02 s"):
        await collect(source.complete, timeout_seconds=5, stream_timeout_seconds=0.02)
    assert source.closed


async def test_the_reader_may_be_slow() -> None:
    """The limits are on the provider, not on the one who reads its text."""
    handle = ProviderHandle("acme", Source(TextChunkEvent("a"), DoneEvent()).complete, 0.02, 0.02)
    async with aclosing(stream_completion(handle, [], [], CallOptions())) as stream:
        await anext(stream)
        await asyncio.sleep(0.05)
        assert isinstance(await anext(stream), Completion)


async def test_errors_of_the_provider_pass_and_the_stream_is_closed() -> None:
    source = Source(TextChunkEvent("a"), ProviderQuotaError("429 from acme", retry_after=7))
    with pytest.raises(ProviderQuotaError, match="429 from acme"):
        await collect(source.complete)
    assert source.closed


async def test_a_timeout_of_the_sdk_is_a_provider_timeout() -> None:
    with pytest.raises(ProviderTimeoutError) as caught:
        await collect(Source(TimeoutError("read")).complete)
    assert isinstance(caught.value.__cause__, TimeoutError)
    with pytest.raises(ProviderTimeoutError, match="by the vendor"):
        await collect(Source(ProviderTimeoutError("by the vendor")).complete)


async def test_leaving_early_closes_the_stream() -> None:
    source = Source(TextChunkEvent("a"), 60.0, DoneEvent())
    handle = ProviderHandle("acme", source.complete)
    async with aclosing(stream_completion(handle, [], [], CallOptions())) as stream:
        await anext(stream)
    assert source.closed


async def test_cancellation_reaches_the_stream_at_once() -> None:
    source = Source(TextChunkEvent("a"), 60.0, DoneEvent())
    task = asyncio.create_task(collect(source.complete))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 1)
    assert source.closed


async def test_an_iterator_without_aclose_will_do() -> None:
    class Plain:
        def __init__(self) -> None:
            self.events: list[ChatEvent] = [TextChunkEvent("a"), DoneEvent()]

        def __aiter__(self) -> Self:
            return self

        async def __anext__(self) -> ChatEvent:
            return self.events.pop(0)

    assert len(await collect(lambda *_: Plain())) == 2


class BadlyClosed:
    """A stream whose clean-up fails, or never ends."""

    def __init__(self, *, hangs: bool) -> None:
        self.hangs = hangs

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ChatEvent:
        return DoneEvent()

    async def aclose(self) -> None:
        if self.hangs:
            await asyncio.sleep(60)
        raise OSError("socket is gone")


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_failure_to_close_does_not_replace_the_answer(
    hangs: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(streams, "CLOSE_SECONDS", 0.01)
    (completion,) = await collect(lambda *_: BadlyClosed(hangs=hangs))
    assert isinstance(completion, Completion)
    assert "stream of provider 'acme' could not be closed" in caplog.text


async def test_an_event_of_no_known_kind_is_a_bug_that_is_named() -> None:
    source = Source("not an event", DoneEvent())
    with pytest.raises(AssertionError, match="not an event"):
        await collect(source.complete)
    assert source.closed
