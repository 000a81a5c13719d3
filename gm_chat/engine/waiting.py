"""A time limit that costs nothing where there is nothing to wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Generator
from typing import Any, TypeVar

__all__ = ["within"]

T = TypeVar("T")


async def within(seconds: float, awaitable: Awaitable[T]) -> T:
    """Await under :func:`asyncio.timeout`, which is set up only if the result does not come at once.

    Most events of a stream are there when they are asked for, and most checks know their answer; a timer for each
    costs more than they do. Raises ``TimeoutError`` when the time is over, after ``awaitable`` was cancelled.
    """
    until = asyncio.get_running_loop().time() + seconds
    work = _awaited(awaitable)
    try:
        first = work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    async with asyncio.timeout_at(until):
        return await _Begun(work, first)


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


class _Begun(Awaitable[T], Generator[Any, None, T]):
    """A coroutine that has run up to its first wait, which the event loop has not heard of yet."""

    def __init__(self, work: Coroutine[Any, Any, T], first: Any) -> None:
        self._work = work
        self._first = [first]

    def __await__(self) -> Generator[Any, None, T]:
        return self

    def send(self, value: Any) -> Any:
        return self._first.pop() if self._first else self._work.send(value)

    def throw(self, *error: Any) -> Any:
        self._first.clear()
        return self._work.throw(*error)
