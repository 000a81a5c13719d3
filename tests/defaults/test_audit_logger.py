import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from django.contrib.auth.models import User

from gm_chat.defaults.audit_logger import LoggerSink
from gm_chat.persistence.threads import POOL_SIZE, run_db

EVENT = {"event_type": "user_message", "content": "hi"}


@pytest.mark.django_db(transaction=True)
async def test_a_plain_callable_runs_in_a_database_thread_and_may_use_the_orm() -> None:
    threads: list[int] = []

    def log(event: Mapping[str, Any]) -> None:
        threads.append(threading.get_ident())
        User.objects.create(username=str(event["content"]))

    await LoggerSink(log).emit(EVENT)
    assert threads != [threading.get_ident()]
    assert await User.objects.filter(username="hi").acount() == 1


async def test_an_async_callable_is_awaited() -> None:
    taken: list[Mapping[str, Any]] = []

    async def log(event: Mapping[str, Any]) -> None:
        taken.append(event)

    class Logger:
        async def __call__(self, event: Mapping[str, Any]) -> None:
            taken.append(event)

    await LoggerSink(log).emit(EVENT)
    await LoggerSink(Logger()).emit(EVENT)
    assert taken == [EVENT, EVENT]


async def test_what_it_raises_is_the_trail_s_business() -> None:
    def log(event: Mapping[str, Any]) -> None:
        raise OSError(event["content"])

    with pytest.raises(OSError, match="hi"):
        await LoggerSink(log).emit(EVENT)


async def test_one_that_blocks_takes_no_thread_away_from_turns() -> None:
    gate = threading.Event()
    sink = LoggerSink(lambda event: gate.wait())
    waiting = [asyncio.create_task(sink.emit(EVENT)) for _ in range(2 * POOL_SIZE)]
    await asyncio.sleep(0.05)
    for task in waiting:
        task.cancel()  # as the trail does after its time
    async with asyncio.timeout(5):
        assert await run_db(len, "turn") == 4
    gate.set()
    await asyncio.wait(waiting)
    await sink.emit(EVENT)
