import threading
from collections.abc import Mapping
from typing import Any

import pytest
from django.contrib.auth.models import User

from gm_chat.defaults.audit_logger import LoggerSink

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
