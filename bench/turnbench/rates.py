"""Turns per second and how long one takes, by transport, kind of turn and number of clients."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from turnbench.client import TurnFailedError, checked, connected

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from turnbench.client import Client
    from turnbench.servers import Server

__all__ = ["Cell", "Sample", "measure"]

WARM_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Cell:
    """What is measured: so many clients that ask one kind of question over one transport, each as fast as it can."""

    transport: str
    kind: str
    clients: int


@dataclass(slots=True)
class Sample:
    """The repeats of one cell on one server."""

    rates: list[float] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    turns: int = 0
    cpu_seconds: float = 0.0

    @property
    def rate(self) -> float:
        """The median of the repeats, in turns per second."""
        return statistics.median(self.rates)

    @property
    def p50(self) -> float:
        """The median duration of all turns, in milliseconds; infinite if none succeeded."""
        return statistics.median(self.milliseconds or [float("inf")])

    @property
    def spread(self) -> float:
        """How far the repeats lie apart, as a part of their median."""
        return (max(self.rates) - min(self.rates)) / self.rate if self.rate else 0.0

    @property
    def cpu(self) -> float:
        """The server's processor time per turn, in milliseconds: what a busy machine distorts least."""
        return self.cpu_seconds / max(1, self.turns) * 1000

    @property
    def failed(self) -> int:
        """How many turns had an error or a wrong answer."""
        return self.errors.total()


async def measure(
    servers: Sequence[Server], cells: Iterable[Cell], *, seconds: float, repeats: int
) -> dict[tuple[Cell, str], Sample]:
    """Measure every cell on every server, the servers in turns, so that the machine's other work meets them alike."""
    samples: dict[tuple[Cell, str], Sample] = {}
    for cell in cells:
        for _ in range(repeats):
            for server in servers:
                sample = samples.setdefault((cell, server.kind), Sample())
                await _once(server, cell, seconds, sample)
    return samples


async def _once(server: Server, cell: Cell, seconds: float, sample: Sample) -> None:
    clients = await connected(cell.transport, server.users(cell.clients))
    begin = time.perf_counter() + WARM_SECONDS
    end = begin + seconds
    ended: list[float] = []

    async def ask(client: Client) -> None:
        started = time.perf_counter()
        while started < end:
            try:
                await checked(client, cell.kind)
            except TurnFailedError as error:
                sample.errors[str(error)] += 1
                sample.turns += 1
                await asyncio.sleep(0.01)
            else:
                sample.turns += 1
                # Only what ends inside the window counts, so that neither the start nor the end of the run does.
                if begin <= (now := time.perf_counter()) < end:
                    ended.append(now)
                    sample.milliseconds.append((now - started) * 1000)
            started = time.perf_counter()

    used = server.cpu_seconds()
    try:
        await asyncio.gather(*(ask(client) for client in clients))
        sample.cpu_seconds += server.cpu_seconds() - used
    finally:
        await asyncio.gather(*(client.close() for client in clients))
    sample.rates.append(len(ended) / seconds)
