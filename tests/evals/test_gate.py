from __future__ import annotations

import asyncio

from gm_chat.evals.gate import Gate, Pass


class Room:
    """Counts who is inside, and remembers the most."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.inside: set[str] = set()
        self.seen: list[set[str]] = []

    async def visit(self, name: str, *, alone: bool = False, writes: bool = False) -> None:
        async with self.gate.entered(alone=alone) as held:
            await self._stay(name)
            if writes:
                await held.be_alone()
                await self._stay(f"{name} writes", held)

    async def _stay(self, name: str, held: Pass | None = None) -> None:
        assert held is None or held.is_alone
        self.inside.add(name)
        for _ in range(3):
            await asyncio.sleep(0)
            self.seen.append(set(self.inside))
        self.inside.remove(name)


async def test_readers_are_inside_together_and_a_writer_is_alone() -> None:
    room = Room()
    await asyncio.gather(*(room.visit(name, alone=name == "w") for name in ("a", "b", "w", "c")))
    assert {"a", "b"} in room.seen
    assert all(inside == {"w"} for inside in room.seen if "w" in inside)


async def test_those_who_turn_out_to_write_do_not_wait_for_each_other() -> None:
    room = Room()
    await asyncio.gather(*(room.visit(name, writes=name != "c") for name in ("a", "b", "c")))
    assert {"a", "b", "c"} in room.seen
    assert {"a writes"} in room.seen
    assert {"b writes"} in room.seen
    assert all(len(inside) == 1 for inside in room.seen if any("writes" in name for name in inside))


async def test_who_is_cancelled_while_waiting_leaves_the_door_open() -> None:
    gate = Gate()

    async def enter(*, writes: bool) -> None:
        async with gate.entered(alone=not writes) as held:
            await held.be_alone()

    async with gate.entered(alone=False):
        waiting = [asyncio.create_task(enter(writes=writes)) for writes in (True, False)]
        for _ in range(5):
            await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert all(task.cancelled() for task in waiting)
    room = Room()
    room.gate = gate
    async with asyncio.timeout(10):
        await room.visit("a", alone=True)
        await asyncio.gather(room.visit("b"), room.visit("c"))
    assert {"b", "c"} in room.seen
