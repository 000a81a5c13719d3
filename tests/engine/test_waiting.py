from __future__ import annotations

import asyncio
import time
import types
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from gm_chat.engine.waiting import within

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

LONG = 5.0
SHORT = 0.02


async def at_once() -> int:
    return 1


async def after_a_wait() -> int:
    await asyncio.sleep(0.001)
    return 1


async def after_two_steps() -> int:
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return 1


@types.coroutine
def by_a_generator() -> Generator[None, None, int]:
    yield
    return 1


async def next_of_a_stream() -> int:
    return await anext(stream(at_once, after_a_wait))


async def after_its_own_limit() -> int:
    try:
        async with asyncio.timeout(SHORT):
            await asyncio.sleep(LONG)
    except TimeoutError:
        await asyncio.sleep(0)
    return 1


async def stream(*steps: Callable[[], Awaitable[int]]) -> AsyncGenerator[int, None]:
    for step in steps:
        yield await step()


@pytest.mark.parametrize(
    "work",
    [at_once, after_a_wait, after_two_steps, by_a_generator, next_of_a_stream, after_its_own_limit],
)
async def test_returns_the_result(work: Callable[[], Awaitable[int]]) -> None:
    assert await within(LONG, work()) == 1
    assert await within(LONG, within(LONG, work())) == 1


@pytest.mark.parametrize("pauses", [0, 1, 3])
async def test_raises_what_is_raised(pauses: int) -> None:
    async def fail() -> None:
        for _ in range(pauses):
            await asyncio.sleep(0)
        raise TimeoutError("of its own")

    with pytest.raises(TimeoutError, match="of its own"):
        await within(LONG, fail())


async def test_futures_and_tasks_are_awaited_and_what_cannot_be_is_refused() -> None:
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_result, 1)
    assert await within(LONG, future) == 1
    assert await within(LONG, asyncio.create_task(after_a_wait())) == 1
    with pytest.raises(TypeError, match="await"):
        await within(LONG, 1)  # type: ignore[arg-type]  # what a plugin may hand out


async def test_when_the_time_is_over_the_work_is_cancelled_and_cleans_up_first() -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            seen.append("cancelled")
            await asyncio.sleep(0)
            seen.append("clean")
            raise

    with pytest.raises(TimeoutError):
        await within(SHORT, work())
    assert seen == ["cancelled", "clean"]
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_work_that_ignores_its_cancellation_keeps_its_result() -> None:
    async def stubborn() -> int:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(LONG)
        return 1

    assert await within(SHORT, stubborn()) == 1


async def test_time_spent_before_the_first_wait_counts() -> None:
    async def work() -> None:
        time.sleep(3 * SHORT)  # noqa: ASYNC251 - the point of the test
        await asyncio.sleep(SHORT)

    with pytest.raises(TimeoutError):
        await within(2 * SHORT, work())


async def test_a_stream_goes_on_after_each_event() -> None:
    events = stream(at_once, after_a_wait, at_once)
    assert [await within(LONG, anext(events)) for _ in range(3)] == [1, 1, 1]
    with pytest.raises(StopAsyncIteration):
        await within(LONG, anext(events))


@pytest.mark.parametrize("pauses", [0, 2])
async def test_a_cancellation_from_outside_stays_one(pauses: int) -> None:
    seen: list[str] = []

    async def work() -> None:
        for _ in range(pauses):
            await asyncio.sleep(0)
        try:
            await asyncio.sleep(LONG)
        finally:
            seen.append("over")

    task = asyncio.create_task(within(LONG, work()))
    for _ in range(pauses + 2):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["over"]


async def test_both_limits_at_once_are_one_timeout() -> None:
    async def work() -> None:
        async with asyncio.timeout(SHORT):
            await asyncio.sleep(LONG)

    with pytest.raises(TimeoutError):
        await within(SHORT, work())


async def test_no_timer_is_set_for_what_comes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("a timer")

    monkeypatch.setattr(asyncio.get_running_loop(), "call_at", refuse)
    assert await within(LONG, at_once()) == 1
    with pytest.raises(AssertionError, match="a timer"):
        await within(LONG, after_two_steps())
