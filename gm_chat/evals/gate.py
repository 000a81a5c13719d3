"""Who may be at the data at the same time: any number of cases that read, or one that writes."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["Gate", "Pass"]


class Gate:
    """Lets cases in. One that wants to be alone comes before those that arrive later."""

    def __init__(self) -> None:
        """Belongs to the event loop in which it is first used."""
        self._changed = asyncio.Condition()
        self._inside = 0
        self._taken = False
        self._wanting = 0

    @asynccontextmanager
    async def entered(self, *, alone: bool) -> AsyncIterator[Pass]:
        """Stay inside while the block runs."""
        held = Pass(self)
        await (self._take() if alone else self._enter())
        held.is_alone = alone
        try:
            yield held
        finally:
            await self._leave(held)

    async def _enter(self) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: not self._taken and not self._wanting)
            self._inside += 1

    async def _take(self) -> None:
        async with self._changed:
            self._wanting += 1
            try:
                await self._changed.wait_for(lambda: not self._taken and not self._inside)
                self._taken = True
            finally:
                self._wanting -= 1
                self._changed.notify_all()

    async def _leave(self, held: Pass) -> None:
        async with self._changed:
            if held.is_alone:
                self._taken = False
            elif held.is_inside:
                self._inside -= 1
            held.is_inside = held.is_alone = False
            self._changed.notify_all()


class Pass:
    """What a case holds while it is inside."""

    def __init__(self, gate: Gate) -> None:
        """Made by :meth:`Gate.entered`."""
        self._gate = gate
        self.is_inside = True
        self.is_alone = False

    async def be_alone(self) -> None:
        """Wait until nobody else is inside, for a case that turns out to write.

        It steps out meanwhile, so that two of them do not wait for each other.
        """
        if self.is_alone:
            return
        await self._gate._leave(self)
        await self._gate._take()
        self.is_inside = self.is_alone = True
