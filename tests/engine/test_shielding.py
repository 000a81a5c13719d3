from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gm_chat.engine.shielding import to_the_end


async def test_returns_and_raises_what_the_work_does() -> None:
    async def work(fails: bool) -> int:
        if fails:
            raise LookupError
        return 1

    assert await to_the_end(work(False)) == 1
    with pytest.raises(LookupError):
        await to_the_end(work(True))


async def cancelled(work: Any, *, patience: float | None = None) -> None:
    task = asyncio.create_task(to_the_end(work, patience=patience))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 1)


@pytest.mark.parametrize("fails", [False, True])
async def test_a_cancellation_comes_after_the_work(fails: bool, caplog: pytest.LogCaptureFixture) -> None:
    done: list[str] = []

    async def work() -> None:
        await asyncio.sleep(0.03)
        done.append("work")
        if fails:
            raise LookupError

    await cancelled(work())
    assert done == ["work"]
    assert caplog.text == ""


async def test_patience_has_an_end() -> None:
    stopped: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.append("work")
            raise

    await cancelled(work(), patience=0.02)
    assert stopped == ["work"]
