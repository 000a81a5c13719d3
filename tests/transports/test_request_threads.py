from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from asgiref.sync import ThreadSensitiveContext, sync_to_async

from gm_chat.transports import request_threads
from gm_chat.transports.request_threads import RequestThreads


async def nobody(*_: Any) -> None:
    raise AssertionError("not used")


def here() -> threading.Thread:
    return threading.current_thread()


class Serving:
    """An application whose requests run a function in their thread, twice, and record where."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.application = RequestThreads(self.serve)
        self.meanwhile = asyncio.Event()
        self.meanwhile.set()

    async def serve(self, *_: Any) -> None:
        first = await sync_to_async(here)()
        await self.meanwhile.wait()
        assert await sync_to_async(here)() is first
        self.threads.append(first)

    async def request(self) -> None:
        await self.application({"type": "http"}, nobody, nobody)


async def test_requests_after_each_other_share_a_thread() -> None:
    serving = Serving()
    for _ in range(3):
        await serving.request()
    assert len(set(serving.threads)) == 1
    assert serving.threads[0] is not threading.current_thread()


async def test_requests_beside_each_other_do_not() -> None:
    serving = Serving()
    serving.meanwhile.clear()
    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(serving.request())
        await asyncio.sleep(0)
        serving.meanwhile.set()
    assert len(set(serving.threads)) == 5


async def test_few_threads_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_threads, "MOST_IDLE", 2)
    serving = Serving()
    serving.meanwhile.clear()
    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(serving.request())
        await asyncio.sleep(0)
        serving.meanwhile.set()
    ended = serving.threads[2:]
    for thread in ended:
        await asyncio.to_thread(thread.join, 5)
    assert [thread.is_alive() for thread in serving.threads] == [True, True, False, False]


async def test_a_failing_request_gives_its_thread_back() -> None:
    threads = []

    async def fail(*_: Any) -> None:
        threads.append(await sync_to_async(here)())
        raise LookupError("nothing there")

    application = RequestThreads(fail)
    for _ in range(2):
        with pytest.raises(LookupError):
            await application({"type": "http"}, nobody, nobody)
    assert threads[0] is threads[1]


async def test_a_thread_that_is_still_at_work_is_lent_to_nobody() -> None:
    threads, began, end = [], asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow() -> None:
        threads.append(here())
        loop.call_soon_threadsafe(began.set)
        end.wait(5)

    async def leave(*_: Any) -> None:
        left.append(asyncio.create_task(sync_to_async(slow)()))
        await began.wait()

    async def ask(*_: Any) -> None:
        threads.append(await sync_to_async(here)())

    left: list[asyncio.Task[None]] = []
    visits = iter((leave, ask))

    async def serve(*_: Any) -> None:
        await next(visits)()

    application = RequestThreads(serve)
    await application({"type": "http"}, nobody, nobody)
    await application({"type": "http"}, nobody, nobody)
    end.set()
    await left[0]
    assert threads[0] is not threads[1]


async def test_a_task_that_outlives_its_request_may_go_on() -> None:
    threads = []

    async def go_on() -> None:
        await later.wait()
        threads.append(await sync_to_async(here)())

    async def leave(*_: Any) -> None:
        threads.append(await sync_to_async(here)())
        left.append(asyncio.create_task(go_on()))

    left: list[asyncio.Task[None]] = []
    later = asyncio.Event()
    await RequestThreads(leave)({"type": "http"}, nobody, nobody)
    later.set()
    await left[0]
    assert threads[0] is not threads[1]


async def test_the_thread_of_an_outer_context_is_used() -> None:
    serving = Serving()
    async with ThreadSensitiveContext():
        outer = await sync_to_async(here)()
        await serving.request()
    assert serving.threads == [outer]
