"""Tables of what was measured, and the targets it is held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from turnbench.rates import Cell, Sample

__all__ = ["Target", "print_rates", "print_table", "print_targets", "rate_targets"]

LEAST_RATIO: Final = {
    "query": {"http": 4.0, "sse": 4.0, "ws": 2.5},
    "planned": {"http": 4.0, "sse": 4.0, "ws": 4.0},
}
"""At 8 and more clients, with one query (the reference's turns per second are 1)."""


@dataclass(frozen=True, slots=True)
class Target:
    """One figure and its bound."""

    name: str
    value: float
    bound: float
    at_least: bool = False

    @property
    def is_met(self) -> bool:
        """Whether the figure is on the right side."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound


def print_table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print columns as wide as their widest cell: text to the left, numbers to the right."""
    lines = [list(head), *([cell if isinstance(cell, str) else f"{cell:.1f}" for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    print(f"\n{title}")
    for line in lines:
        cells = (
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  " + "  ".join(cells).rstrip())


def print_rates(samples: Mapping[tuple[Cell, str], Sample]) -> None:
    """One row per cell; the ratio is ours to the reference's, "+-" the distance of the repeats."""
    columns = ("turns/s", "+-", "p50 ms", "cpu ms", "err")
    head = ("turn, transport, clients", *columns, *(f"ref {name}" for name in columns), "ratio")
    rows = []
    for cell in dict.fromkeys(cell for cell, _ in samples):
        ours, reference = samples.get((cell, "ours")), samples.get((cell, "reference"))
        row = [f"{cell.kind:7} {cell.transport:4} {cell.clients:3}", *_columns(ours), *_columns(reference)]
        both = ours and reference and reference.rate
        rows.append([*row, f"{ours.rate / reference.rate:.1f} x" if both and ours and reference else "-"])
    print_table("Turns per second, each client asking as fast as it is answered", head, rows)
    for (cell, kind), sample in samples.items():
        for text, times in sample.errors.most_common(2):
            print(f"  {kind}, {cell.kind} {cell.transport} {cell.clients}: {times} x {text[:160]}")


def _columns(sample: Sample | None) -> tuple[object, ...]:
    if sample is None:
        return ("-",) * 5
    return (sample.rate, f"{sample.spread:.0%}", sample.p50, sample.cpu, str(sample.failed))


def rate_targets(samples: Mapping[tuple[Cell, str], Sample]) -> list[Target]:
    """What the rates are held against."""
    targets = [
        Target("failed turns, ours", sum(sample.failed for (_, kind), sample in samples.items() if kind == "ours"), 0)
    ]
    for (cell, kind), sample in samples.items():
        other = samples.get((cell, "reference"))
        if kind == "ours" and other is not None and cell.kind in LEAST_RATIO and cell.clients >= 8 and other.rate:
            name = f"turns/s to the reference's, {cell.kind} {cell.transport} {cell.clients}"
            targets.append(
                Target(name, sample.rate / other.rate, LEAST_RATIO[cell.kind][cell.transport], at_least=True)
            )
    return targets


def print_targets(targets: Sequence[Target]) -> bool:
    """Print each target and whether it is met; return whether all are."""
    rows = [
        (
            t.name,
            f"{t.value:.2f}",
            f"{'at least' if t.at_least else 'at most'} {t.bound:g}",
            "ok" if t.is_met else "MISSED",
        )
        for t in targets
    ]
    print_table("Targets", ("", "measured", "wanted", ""), rows)
    return all(target.is_met for target in targets)
