from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.db import Error, connection

from gm_chat.persistence import threads
from gm_chat.persistence.threads import POOL_SIZE, inline_database, run_db, run_db_apart

flavour: contextvars.ContextVar[str] = contextvars.ContextVar("flavour")


async def test_it_returns_raises_and_carries_context() -> None:
    flavour.set("sour")

    def work(first: int, *, second: int) -> tuple[int, int, str]:
        return first, second, flavour.get()

    assert await run_db(work, 1, second=2) == (1, 2, "sour")
    with pytest.raises(ZeroDivisionError):
        await run_db(lambda: 1 / 0)
    assert (await run_db(threading.current_thread)).name.startswith("gm-chat-db-")


async def test_work_that_raises_what_no_future_takes_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        async with asyncio.timeout(5):
            await run_db(next, iter(()))
    assert caplog.records == []


async def test_work_whose_loop_is_gone_meanwhile_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_pool", threads._Pool(1))
    gate = threading.Event()

    async def leave() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await run_db(gate.wait, 10)

    await asyncio.to_thread(asyncio.run, leave())
    gate.set()
    async with asyncio.timeout(5):
        assert await run_db(int, "7") == 7


async def test_a_connection_that_cannot_even_be_closed_costs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = threading.Event()

    def broken(*, idle: bool = False) -> None:
        if idle:
            tried.set()
            raise ValueError("the driver is confused")

    monkeypatch.setattr(threads, "_pool", threads._Pool(1))
    monkeypatch.setattr(threads, "_tend_connections", broken)
    monkeypatch.setattr(threads, "IDLE_SECONDS", 0.01)
    await run_db(int)
    assert await asyncio.to_thread(tried.wait, 5)
    async with asyncio.timeout(5):
        assert await run_db(int, "1") == 1


async def test_hops_in_a_row_keep_to_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_pool", threads._Pool(POOL_SIZE))
    assert len({await run_db(threading.get_ident) for _ in range(50)}) == 1


async def test_slow_work_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_pool", threads._Pool(3))
    gates = [threading.Event() for _ in range(2)]
    blocked = [asyncio.create_task(run_db(gate.wait, 10)) for gate in gates]
    try:
        async with asyncio.timeout(5):
            assert await asyncio.gather(*(run_db(int, str(number)) for number in range(50))) == list(range(50))
    finally:
        for gate in gates:
            gate.set()
    assert await asyncio.gather(*blocked) == [True, True]


async def test_work_is_done_side_by_side_in_a_bounded_number_of_threads() -> None:
    running, most = 0, 0
    lock = threading.Lock()

    def work() -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.1)
        with lock:
            running -= 1
        return threading.current_thread().name

    names = await asyncio.gather(*(run_db(work) for _ in range(POOL_SIZE * 3)))
    assert most == POOL_SIZE
    assert len(set(names)) == POOL_SIZE


async def test_quick_work_apart_does_not_wait_for_slow_work() -> None:
    gate = threading.Event()
    blocked = [asyncio.create_task(run_db(gate.wait, 10)) for _ in range(POOL_SIZE)]
    try:
        async with asyncio.timeout(5):
            names = [(await run_db_apart(threading.current_thread)).name for _ in range(2)]
    finally:
        gate.set()
        await asyncio.gather(*blocked)
    assert len(set(names)) == 1


async def test_work_that_nobody_waits_for_any_more_is_not_begun() -> None:
    gate = threading.Event()
    begun: list[int] = []
    blocked = [asyncio.create_task(run_db(gate.wait, 10)) for _ in range(POOL_SIZE)]
    waiting = asyncio.create_task(run_db(begun.append, 1))
    await asyncio.sleep(0.02)
    waiting.cancel()
    await asyncio.sleep(0.02)  # let the event loop pass it on
    gate.set()
    await asyncio.gather(*blocked)
    await asyncio.gather(waiting, return_exceptions=True)
    await asyncio.gather(*(run_db(time.sleep, 0.01) for _ in range(POOL_SIZE)))
    assert waiting.cancelled()
    assert begun == []


@pytest.mark.django_db(transaction=True)
class TestConnections:
    @pytest.fixture(autouse=True)
    def alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A pool of one thread, whose connection every hop therefore uses, and which is soon idle."""
        monkeypatch.setattr(threads, "_pool", threads._Pool(1))
        monkeypatch.setattr(threads, "IDLE_SECONDS", 0.05)

    def here(self) -> Any:
        get_user_model()._default_manager.exists()
        return connection.connection

    async def test_hops_in_a_row_share_one_that_is_closed_when_they_are_over(self) -> None:
        first, second = await run_db(self.here), await run_db(self.here)
        assert first is second
        await asyncio.sleep(0.2)
        assert await run_db(lambda: connection.connection) is None

    async def test_one_that_is_meant_to_last_lasts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", 60)
        first = await run_db(self.here)
        await asyncio.sleep(0.2)
        assert await run_db(lambda: connection.connection) is first
        await run_db(lambda: connection.close())  # noqa: PLW0108 - the thread's connection, not this one's

    async def test_one_that_broke_is_replaced(self) -> None:
        first = await run_db(self.here)

        def break_it() -> None:
            connection.connection.close()
            get_user_model()._default_manager.exists()

        with pytest.raises(Error):
            await run_db(break_it)
        assert await run_db(self.here) is not first


@pytest.mark.django_db
def test_inline_work_sees_an_open_transaction() -> None:
    users = get_user_model()._default_manager
    users.create(username="ada")
    assert async_to_sync(run_db)(users.count) == 0
    with inline_database():
        assert async_to_sync(run_db)(users.count) == 1
