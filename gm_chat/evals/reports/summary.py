"""Sums over runs, and how figures are written in every report."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Self

from gm_chat.evals.statistics import by_case, pass_at_1, pass_hat_k, wilson

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gm_chat.evals.record import Outcome

__all__ = ["Summary", "by_dataset", "by_tag", "by_variant", "mean", "percent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Some runs: how many passed, failed and broke, and what they took."""

    passed: int
    failed: int
    errors: int
    cases: int
    """Those with a run that could be judged."""
    rate: float | None
    """The mean of the cases' shares of passed runs (pass@1)."""
    interval: tuple[float, float]
    repeats: int
    """The least that a case was judged."""
    steadiness: float | None
    """pass^k for so many repeats."""
    tokens: tuple[int, int] | None
    """Sent and received; ``None`` if a provider did not report them for each run."""
    cost: Decimal | None
    """``None`` without prices for each run."""
    seconds: float
    rounds: int

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Self:
        """Sum up runs."""
        statuses = Counter(outcome.status for outcome in outcomes)
        scores = list(by_case(outcomes).values())
        rate = pass_at_1(scores)
        repeats = min((score.judged for score in scores), default=0)
        runs = [outcome.observed for outcome in outcomes]
        inputs, outputs = (
            _total(run.input_tokens for run in runs),
            _total(run.output_tokens for run in runs),
        )
        costs = [run.cost for run in runs if run.cost is not None]
        return cls(
            passed=statuses["pass"],
            failed=statuses["fail"],
            errors=statuses["error"],
            cases=len(scores),
            rate=rate,
            interval=wilson(rate or 0.0, len(scores)),
            repeats=repeats,
            steadiness=pass_hat_k(scores, repeats) if repeats else None,
            tokens=None if inputs is None or outputs is None else (inputs, outputs),
            cost=sum(costs, Decimal(0)) if costs and len(costs) == len(runs) else None,
            seconds=math.fsum(run.seconds for run in runs),
            rounds=sum(run.rounds for run in runs),
        )

    @property
    def runs(self) -> int:
        """All of them."""
        return self.passed + self.failed + self.errors

    @property
    def shown_rate(self) -> str:
        """The rate and its interval, ``75 % (60-86)``; a dash where nothing could be judged."""
        if self.rate is None:
            return "-"
        low, high = self.interval
        return f"{percent(self.rate)} % ({percent(low)}-{percent(high)})"

    @property
    def shown_tokens(self) -> str:
        """Sent and received tokens of a run, on average."""
        return "-" if self.tokens is None else " + ".join(f"{mean(count, self.runs):,.0f}" for count in self.tokens)

    @property
    def shown_cost(self) -> str:
        """Of all runs together."""
        return "-" if self.cost is None else f"{self.cost:.4f}"

    @property
    def shown_seconds(self) -> str:
        """Of a run, on average."""
        return f"{mean(self.seconds, self.runs):.1f}"

    @property
    def shown_rounds(self) -> str:
        """Of a run, on average."""
        return f"{mean(self.rounds, self.runs):.1f}"


def by_variant(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """Group runs by their variant, in order."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.observed.variant, []).append(outcome)
    return groups


def by_dataset(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """Group runs by their dataset, in order."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.observed.dataset, []).append(outcome)
    return groups


def by_tag(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """Group runs by each of their tags, in alphabetical order."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        for tag in outcome.observed.tags:
            groups.setdefault(tag, []).append(outcome)
    return dict(sorted(groups.items()))


def mean(total: float, count: int) -> float:
    """``total`` by ``count``, 0 of nothing."""
    return total / count if count else 0.0


def percent(rate: float) -> str:
    """In whole percents; what is not quite all or nothing is not written so."""
    return str(min(max(round(rate * 100), 0 if rate <= 0 else 1), 100 if rate >= 1 else 99))


def _total(counts: Iterable[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total
