"""The measurements beside the rates: statements, idle sockets, blocks of the loop, a slow tool, a long history."""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import TYPE_CHECKING, Any, Final

from turnbench.client import checked, connected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnbench.client import Client
    from turnbench.servers import Server

__all__ = ["blocks", "history", "idle_sockets", "slow_tool", "statements"]

GROUPS: Final = ("chat", "login", "transaction", "connection")


async def statements(server: Server, transport: str, kind: str, *, turns: int = 3) -> dict[str, float]:
    """Count SQL statements per turn of a conversation that has begun, by what they are for.

    Five turns in all stay inside the window of 20 messages, before which no summary is thought of.
    """
    (client,) = await connected(transport, server.users(1))
    try:
        for _ in range(2):
            await checked(client, kind)
        await server.probe("trace-on")
        for _ in range(turns):
            await checked(client, kind)
        counted = (await server.probe("trace-off"))["statements"]
    finally:
        await client.close()
    return {group: counted.get(group, 0) / turns for group in GROUPS}


async def idle_sockets(server: Server, number: int) -> dict[str, float]:
    """Open sockets that say nothing; give what each costs, in kibibytes, and what a turn takes among them, in ms."""
    (client,) = await connected("ws", server.users(1))
    alone = await _p50(client, "text", 30)
    before = await server.probe("memory")
    sockets: list[Client] = []
    try:
        for _ in range(0, number, 50):
            sockets += await connected("ws", server.users(min(50, number - len(sockets))))
        held = await server.probe("memory")
        beside = await _p50(client, "text", 30)
    finally:
        await asyncio.gather(client.close(), *(socket.close() for socket in sockets))
    await asyncio.sleep(1)
    after = await server.probe("memory")
    return {
        "open": float(len(sockets)),
        "before_mib": before / 2**20,
        "held_mib": held / 2**20,
        "after_mib": after / 2**20,
        "each_kib": (held - before) / 1024 / number,
        "p50_alone": alone,
        "p50_beside": beside,
    }


async def blocks(server: Server, transport: str, clients: int, *, seconds: float) -> dict[str, Any]:
    """Time every callback of the server's event loop while clients ask for data."""
    asking = await connected(transport, server.users(clients))
    for client in asking:
        await checked(client, "query")
    await server.probe("blocks-on")
    end = time.perf_counter() + seconds

    async def ask(client: Client) -> None:
        while time.perf_counter() < end:
            await checked(client, "query")

    await asyncio.gather(*(ask(client) for client in asking))
    report: dict[str, Any] = await server.probe("blocks-off")
    await asyncio.gather(*(client.close() for client in asking))
    return report


async def slow_tool(server: Server, transport: str, *, others: int = 4) -> tuple[float, float, float]:
    """Let one user's query take two seconds, while others ask theirs; give their slowest turn without and with it.

    The third value is what the slow turn took. All in milliseconds.
    """
    slow, *quick = await connected(transport, server.users(1 + others))
    for client in (slow, *quick):
        await checked(client, "query")
    without = await _slowest(quick, 1.0)
    await server.probe("arm")
    started = time.perf_counter()
    waiting = asyncio.create_task(checked(slow, "slow"))
    await asyncio.sleep(0.3)
    with_it = await _slowest(quick, 1.0)
    await waiting
    took = (time.perf_counter() - started) * 1000
    await asyncio.gather(*(client.close() for client in (slow, *quick)))
    return without, with_it, took


async def history(server: Server, transport: str, *, messages: int, turns: int) -> dict[str, float]:
    """Compare a turn after ``messages`` stored ones with a first turn, the two in turns; count the provider's calls."""
    long = server.users(1)
    (client,) = await connected(transport, long)
    before = await server.probe("calls")
    for _ in range(messages // 2):
        await checked(client, "text")
    calls = await server.probe("calls") - before
    fresh = await connected(transport, server.users(turns))
    begun = await connected(transport, server.users(1))
    for _ in range(12):
        await checked(begun[0], "text")
    times: dict[str, list[float]] = {"long": [], "empty": [], "window": []}
    for other in fresh:
        times["long"].append(await _timed(client, "text"))
        times["empty"].append(await _timed(other, "text"))
        times["window"].append(await _timed(begun[0], "text"))
    await asyncio.gather(*(one.close() for one in (client, *fresh, *begun)))
    extra = calls - messages // 2
    return {**{name: statistics.median(taken) for name, taken in times.items()}, "summaries": extra / messages * 10}


async def _p50(client: Client, kind: str, turns: int) -> float:
    return statistics.median([await _timed(client, kind) for _ in range(turns)])


async def _slowest(clients: Sequence[Client], seconds: float) -> float:
    end = time.perf_counter() + seconds

    async def ask(client: Client) -> float:
        worst = 0.0
        while time.perf_counter() < end:
            worst = max(worst, await _timed(client, "query"))
        return worst

    return max(await asyncio.gather(*(ask(client) for client in clients)))


async def _timed(client: Client, kind: str) -> float:
    started = time.perf_counter()
    await checked(client, kind)
    return (time.perf_counter() - started) * 1000
