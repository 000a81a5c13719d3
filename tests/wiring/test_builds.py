from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth import get_user_model

from gm_chat.engine.ports import ProviderHandle
from gm_chat.wiring import builds as module
from gm_chat.wiring.builds import Builds

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = "here"
THREAD = "thread"


def handle() -> ProviderHandle:
    return ProviderHandle("acme", lambda messages, tools, options: iter(()))  # type: ignore[arg-type,return-value]  # never called


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine not make a quick build slow."""
    monkeypatch.setattr(module, "QUICK_SECONDS", 0.2)


async def where(work: Callable[[], object], times: int = 3) -> list[str]:
    """In which thread each of several builds came to its end."""
    builds, places = Builds(), list[str]()

    def build() -> ProviderHandle:
        work()
        places.append(HERE if threading.current_thread() is threading.main_thread() else THREAD)
        return handle()

    for _ in range(times):
        await builds.run("acme", build)
    return places


async def test_only_the_first_of_quick_builds_needs_a_thread() -> None:
    assert await where(lambda: None) == [THREAD, HERE, HERE]


async def test_a_slow_build_stays_in_a_thread() -> None:
    assert await where(lambda: time.sleep(0.25)) == [THREAD, THREAD, THREAD]


async def test_a_build_goes_back_to_a_thread_after_it_was_slow() -> None:
    durations = iter([0, 0.25, 0, 0])
    assert await where(lambda: time.sleep(next(durations)), times=4) == [THREAD, HERE, THREAD, HERE]


@pytest.mark.django_db(transaction=True)
async def test_a_build_that_uses_the_orm_stays_in_a_thread() -> None:
    assert await where(get_user_model()._default_manager.exists, times=4) == [THREAD] * 4


async def test_each_provider_is_judged_by_itself_and_what_a_build_raises_is_raised() -> None:
    builds = Builds()
    await builds.run("acme", handle)

    def fail() -> ProviderHandle:
        raise ImportError("no SDK")

    for _ in range(2):
        with pytest.raises(ImportError, match="no SDK"):
            await builds.run("broken", fail)
