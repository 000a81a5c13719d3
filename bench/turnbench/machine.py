"""How much of the machine other programs used meanwhile: a figure measured beside them says so."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnbench.servers import Server

__all__ = ["Machine"]


class Machine:
    """Counts processor time from its making on."""

    def __init__(self, servers: Sequence[Server]) -> None:
        """Count what is neither of ``servers`` nor of this process as others'."""
        self._servers = servers
        self._began = time.monotonic()
        self._busy, self._own = _busy_seconds(), self._own_seconds()

    def __str__(self) -> str:
        seconds = time.monotonic() - self._began
        own = (self._own_seconds() - self._own) / seconds
        others = max(0.0, (_busy_seconds() - self._busy) / seconds - own)
        return (
            f"other programs used {others:.1f} of the {os.cpu_count()} processors meanwhile, the measurement {own:.1f}"
        )

    def _own_seconds(self) -> float:
        return time.process_time() + sum(server.cpu_seconds() for server in self._servers)


def _busy_seconds() -> float:
    user, nice, system, _idle, _wait, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
