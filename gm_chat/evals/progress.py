"""How far a run is: one line on a terminal's standard error, and nothing anywhere else."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final, Self, TextIO

if TYPE_CHECKING:
    from types import TracebackType

    from gm_chat.evals.record import Outcome

__all__ = ["Progress"]

WIDTH: Final = 24
_ERASE: Final = "\r\x1b[K"


class Progress:
    """A bar that grows by each run of a case."""

    def __init__(self, total: int, out: TextIO) -> None:
        """Show ``total`` runs on ``out``, if that is a terminal."""
        self._total = total
        self._out = out if out.isatty() else None
        self._counts: Counter[str] = Counter()
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        self._show("")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._out is not None:
            self._out.write(_ERASE)
            self._out.flush()

    def advance(self, outcome: Outcome) -> None:
        """Count a run."""
        self._counts[outcome.status] += 1
        self._show(outcome.observed.case)

    def _show(self, name: str) -> None:
        if self._out is None:
            return
        done = self._counts.total()
        bar = "#" * (WIDTH * done // max(1, self._total))
        counts = ", ".join(f"{self._counts[status]} {status}" for status in ("pass", "fail", "error"))
        seconds = time.monotonic() - self._began
        self._out.write(f"{_ERASE}[{bar:.<{WIDTH}}] {done}/{self._total}  {counts}  {seconds:.0f} s  {name[:40]}")
        self._out.flush()
