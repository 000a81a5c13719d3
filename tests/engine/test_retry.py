"""Another try before the first event: for which failures, after which wait, within which time, and by whom."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from gm_chat.engine import retry
from gm_chat.engine.ports import ProviderHandle
from gm_chat.engine.provider import Completion, stream_completion
from gm_chat.engine.retry import is_mended_by_another
from gm_chat.providers import base
from gm_chat.providers.base import (
    CallOptions,
    ChatEvent,
    DoneEvent,
    Message,
    ProviderAuthenticationError,
    ProviderContextError,
    ProviderError,
    ProviderFilteredError,
    ProviderIncompleteError,
    ProviderMalformedError,
    ProviderOverloadedError,
    ProviderQuotaError,
    ProviderRefusedError,
    ProviderTimeoutError,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
    ToolDefinition,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

DONE = DoneEvent(TokenUsage(3, 4), "stop")
NOW = 0.0
"""A hint that lets the next attempt follow at once."""


class Service:
    """Plays one attempt after the other; counts them, and what was closed."""

    def __init__(self, *attempts: Sequence[Any]) -> None:
        self.attempts = list(attempts)
        self.asked: list[tuple[list[Message], list[ToolDefinition], CallOptions]] = []
        self.closed = 0

    async def complete(
        self, messages: list[Message], tools: list[ToolDefinition], options: CallOptions
    ) -> AsyncIterator[ChatEvent]:
        self.asked.append((messages, tools, options))
        try:
            for step in self.attempts.pop(0):
                if isinstance(step, BaseException):
                    raise step
                if isinstance(step, float):
                    await asyncio.sleep(step)
                else:
                    yield step
        finally:
            self.closed += 1

    def handle(self, **changes: Any) -> ProviderHandle:
        return ProviderHandle(**{"name": "acme", "complete": self.complete, "max_retries": 2, **changes})


async def collect(handle: ProviderHandle, options: CallOptions | None = None, **arguments: Any) -> list[Any]:
    messages = arguments.pop("messages", [Message("user", "hi")])
    stream = stream_completion(handle, messages, [], options or CallOptions(), **arguments)
    async with aclosing(stream):
        return [item async for item in stream]


@pytest.mark.parametrize(
    "error", [ProviderError("cannot reach it"), ProviderQuotaError("429"), ProviderOverloadedError("503")]
)
async def test_what_passes_is_tried_again(error: ProviderError, caplog: pytest.LogCaptureFixture) -> None:
    error.retry_after = NOW
    service = Service([error], [error], [TextChunkEvent("a"), DONE])
    options = CallOptions(tool_choice="none")
    assert await collect(service.handle(), options) == [
        TextChunkEvent("a"),
        Completion(usage=TokenUsage(3, 4), finish_reason="stop"),
    ]
    assert service.asked == [([Message("user", "hi")], [], options)] * 3
    assert service.closed == 3
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(lines) == 2
    assert "'acme'" in lines[0]
    assert "attempt 2 of 3" in lines[0]
    assert str(error) in lines[0]


@pytest.mark.parametrize("retries", [0, 1, 2])
async def test_the_number_of_retries_is_a_setting(retries: int) -> None:
    errors = [ProviderQuotaError(f"429 no. {number}", retry_after=NOW) for number in range(4)]
    service = Service(*([error] for error in errors))
    with pytest.raises(ProviderQuotaError) as caught:
        await collect(service.handle(max_retries=retries))
    assert caught.value is errors[retries]
    assert len(service.asked) == service.closed == retries + 1


@pytest.mark.parametrize(
    "error",
    [
        ProviderAuthenticationError("401"),
        ProviderContextError("too long"),
        ProviderFilteredError("filtered"),
        ProviderMalformedError("no JSON"),
        ProviderRefusedError("no"),
        ProviderTimeoutError("silence"),
        ProviderError("HTTP 400", retryable=False),
        ProviderQuotaError("no money left", retryable=False),
        ValueError("a bug"),
    ],
)
async def test_what_does_not_pass_is_final(error: Exception) -> None:
    if isinstance(error, ProviderError):
        error.retry_after = NOW
    service = Service([error], [DONE])
    with pytest.raises(type(error)) as caught:
        await collect(service.handle())
    assert caught.value is error
    assert len(service.asked) == service.closed == 1


def test_each_kind_of_error_says_whether_it_passes() -> None:
    kinds = [kind for kind in vars(base).values() if isinstance(kind, type) and issubclass(kind, ProviderError)]
    passing = {"unavailable", "quota", "overloaded", "incomplete"}
    assert {kind.code for kind in kinds if kind("x").retryable} == passing
    assert all(kind("x", retryable=False).retryable is False for kind in kinds)
    mended = {kind.code for kind in kinds if is_mended_by_another(kind("x", retryable=False))}
    assert mended == passing | {"authentication", "timeout"}


async def test_silence_is_not_tried_again() -> None:
    service = Service([60.0, DONE], [DONE])
    with pytest.raises(ProviderTimeoutError, match="no first event"):
        await collect(service.handle(timeout_seconds=0.02))
    assert len(service.asked) == 1


@pytest.mark.parametrize("began", [[], [TextChunkEvent("")], [TextChunkEvent(""), TextChunkEvent("")]])
async def test_a_stream_that_ended_without_a_word_is_tried_once_more(
    began: list[ChatEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "FIRST_DELAY", 0)
    service = Service(began, [*began, DONE])
    (completion,) = await collect(service.handle())
    assert completion.usage == TokenUsage(3, 4, reported=False)  # what the lost attempt cost is unknown
    service = Service(began, [*began, ProviderIncompleteError("gone")], [DONE])
    with pytest.raises(ProviderIncompleteError, match="gone"):
        await collect(service.handle())
    assert len(service.asked) == service.closed == 2
    service = Service(began, [DONE])
    with pytest.raises(ProviderIncompleteError):
        await collect(service.handle(max_retries=0))


async def test_a_lost_attempt_leaves_room_for_other_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_DELAY", 0)
    service = Service([], [ProviderError("gone")], [DONE])
    assert len(await collect(service.handle())) == 1


@pytest.mark.parametrize("event", [TextChunkEvent("a"), ToolCallEvent("c1", "query", {})])
async def test_after_an_event_every_failure_is_final(event: ChatEvent) -> None:
    service = Service([event, ProviderOverloadedError("503", retry_after=NOW)], [DONE])
    with pytest.raises(ProviderOverloadedError):
        await collect(service.handle())
    assert len(service.asked) == 1


async def test_empty_text_is_a_sign_of_life_that_nobody_sees() -> None:
    service = Service([TextChunkEvent(""), 0.01, TextChunkEvent(""), 0.01, TextChunkEvent("a"), DONE])
    handle = service.handle(timeout_seconds=5, stream_timeout_seconds=1)
    assert [item.content for item in (await collect(handle))[:-1]] == ["a"]
    service = Service([TextChunkEvent(""), 60.0, DONE])
    with pytest.raises(ProviderTimeoutError, match="no next event"):
        await collect(service.handle(timeout_seconds=5, stream_timeout_seconds=0.02))


# --- the wait -----------------------------------------------------------------------------------------------------


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Notes each wait instead of waiting; the clock goes on by as much."""
    waited: list[float] = []
    clock = retry.time.monotonic

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    now = SimpleNamespace(monotonic=lambda: clock() + sum(waited))
    monkeypatch.setattr(retry, "time", now)
    monkeypatch.setattr(retry, "asyncio", SimpleNamespace(sleep=sleep))
    return waited


async def test_the_service_s_hint_is_followed(waits: list[float]) -> None:
    service = Service(
        [ProviderQuotaError("429", retry_after=17.5)], [ProviderQuotaError("429", retry_after=0.25)], [DONE]
    )
    await collect(service.handle())
    assert waits == [17.5, 0.25]


async def test_without_a_hint_the_wait_is_random_and_its_bound_doubles(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        bounds.append((low, high))
        return high

    monkeypatch.setattr(retry.random, "uniform", uniform)
    service = Service(*[[ProviderOverloadedError("503")]] * 6, [DONE])
    await collect(service.handle(max_retries=6))
    assert bounds == [(0, bound) for bound in (1, 2, 4, 8, 10, 10)]
    assert waits == [bound for _, bound in bounds]


async def test_a_hint_beyond_the_provider_s_time_ends_the_call_at_once(waits: list[float]) -> None:
    service = Service([ProviderQuotaError("429", retry_after=61)], [DONE])
    with pytest.raises(ProviderQuotaError) as caught:
        await collect(service.handle(timeout_seconds=60))
    assert caught.value.retry_after == 61
    assert waits == []


async def test_the_turn_s_time_counts_where_it_is_limited(waits: list[float]) -> None:
    service = Service([ProviderQuotaError("429", retry_after=61)], [DONE])
    assert await collect(service.handle(timeout_seconds=60), CallOptions(deadline=90))
    first, second = (options.deadline for _, _, options in service.asked)
    assert (first, waits) == (90, [61])
    assert second is not None
    assert 28 < second <= 29
    service = Service([ProviderQuotaError("429", retry_after=20)], [DONE])
    with pytest.raises(ProviderQuotaError):
        await collect(service.handle(timeout_seconds=60), CallOptions(deadline=20))


async def test_all_waits_together_stay_within_the_time(waits: list[float]) -> None:
    service = Service(*[[ProviderQuotaError("429", retry_after=25)]] * 4, [DONE])
    with pytest.raises(ProviderQuotaError):
        await collect(service.handle(timeout_seconds=60, max_retries=9))
    assert waits == [25, 25]


async def test_what_is_left_of_the_time_is_the_next_attempt_s(waits: list[float]) -> None:
    service = Service([ProviderQuotaError("429", retry_after=59.98)], [30.0, DONE])
    with pytest.raises(ProviderTimeoutError, match=r"no first event within 0\.0"):
        await collect(service.handle(timeout_seconds=60))


async def test_cancelling_ends_the_wait() -> None:
    service = Service([ProviderQuotaError("429", retry_after=30)], [DONE])
    task = asyncio.create_task(collect(service.handle()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 1)
    assert service.closed == 1


async def test_cancelling_ends_an_attempt_that_waits_for_its_first_event() -> None:
    service = Service([ProviderQuotaError("429", retry_after=NOW)], [60.0])
    task = asyncio.create_task(collect(service.handle()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 1)
    assert service.closed == 2


# --- another provider ---------------------------------------------------------------------------------------------


async def test_another_provider_takes_over_with_its_own_time_and_retries() -> None:
    first = Service([ProviderQuotaError("429", retry_after=NOW)], [ProviderQuotaError("429", retry_after=NOW)])
    second = Service([ProviderOverloadedError("503", retry_after=NOW)], [TextChunkEvent("a"), DONE])
    failures: list[ProviderError] = []

    async def fall_back(error: ProviderError) -> ProviderHandle:
        failures.append(error)
        return second.handle(name="other")

    items = await collect(first.handle(max_retries=1), fall_back=fall_back)
    assert items[0] == TextChunkEvent("a")
    assert [type(error) for error in failures] == [ProviderQuotaError]
    assert (len(first.asked), len(second.asked)) == (2, 2)
    assert (first.closed, second.closed) == (2, 2)


async def test_without_another_the_failure_stands() -> None:
    async def nobody(error: ProviderError) -> None:
        return None

    with pytest.raises(ProviderError, match="gone"):
        await collect(Service([ProviderError("gone")]).handle(max_retries=0), fall_back=nobody)


async def test_another_provider_sees_nothing_private_to_the_first() -> None:
    def said(provider: str | None) -> Message:
        call = ToolCallEvent("c1", "query", {"a": 1}, metadata={"signature": "x"})
        return Message("assistant", "so", tool_calls=(call,), provider=provider, metadata={"thinking": "y"})

    async def fall_back(error: ProviderError) -> ProviderHandle:
        return second.handle(name="other")

    second = Service([DONE])
    messages = [Message("user", "hi"), said("acme"), said("other"), said(None)]
    await collect(Service([ProviderError("gone")]).handle(max_retries=0), messages=messages, fall_back=fall_back)
    ((seen, _, _),) = second.asked
    assert [message.content for message in seen] == [message.content for message in messages]
    assert [bool(message.metadata) for message in seen] == [False, False, True, True]
    assert [[bool(call.metadata) for call in message.tool_calls] for message in seen] == [[], [False], [True], [True]]
    assert seen[1].tool_calls[0].args == {"a": 1}
