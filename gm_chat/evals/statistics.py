"""How sure a result is: pass@1 and pass^k over repeats, an interval for a rate, and whether two variants differ.

* pass@1 of a case that passed ``c`` of ``n`` times is ``c / n``, the ``k = 1`` of the unbiased pass@k (Chen et al.,
  "Evaluating Large Language Models Trained on Code", 2021).
* pass^k, that all of ``k`` repeats pass, is ``C(c, k) / C(n, k)`` (Yao et al., "tau-bench", 2024): no bias, as
  ``(c / n) ** k`` would have.
* The interval is Wilson's (1927), with the *cases* as its sample: repeats of a case are no further questions.
* Two variants are compared case by case. The exact McNemar test looks at the cases in which they differ: were they
  equal, each would be the better one in half of these. With repeats a case counts for the variant that passed it more
  often, which makes it the sign test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from gm_chat.evals.record import Outcome

__all__ = ["Paired", "Score", "by_case", "compared", "pass_at_1", "pass_hat_k", "wilson"]

_Case = TypeVar("_Case", bound="Hashable")

LEVEL: Final = 0.95
"""Of confidence. What is below ``1 - LEVEL`` counts as more than noise."""


@dataclass(frozen=True, slots=True)
class Score:
    """How often a case passed, of the repeats that could be judged."""

    passed: int
    judged: int

    @property
    def rate(self) -> float:
        """Passed by judged."""
        return self.passed / self.judged


def by_case(outcomes: Iterable[Outcome]) -> dict[tuple[str, str], Score]:
    """Add up the repeats of each case, by dataset and name. Errors are left out, and cases that have nothing else."""
    counts: dict[tuple[str, str], list[int]] = {}
    for outcome in outcomes:
        if outcome.status != "error":
            count = counts.setdefault((outcome.observed.dataset, outcome.observed.case), [0, 0])
            count[0] += outcome.status == "pass"
            count[1] += 1
    return {key: Score(passed, judged) for key, (passed, judged) in counts.items()}


def pass_at_1(scores: Sequence[Score]) -> float | None:
    """The mean of the cases' rates; ``None`` without a case."""
    return fmean(score.rate for score in scores) if scores else None


def pass_hat_k(scores: Iterable[Score], k: int) -> float | None:
    """The chance that a case passes ``k`` times of ``k``, over the cases with as many repeats; ``None`` without one.

    Raises ``ValueError`` for a ``k`` below 1.
    """
    if k < 1:
        raise ValueError(f"k must be 1 or more, not {k!r}")
    each = [math.comb(score.passed, k) / math.comb(score.judged, k) for score in scores if score.judged >= k]
    return fmean(each) if each else None


def wilson(rate: float, count: int, *, level: float = LEVEL) -> tuple[float, float]:
    """Return Wilson's interval for a rate that was seen in ``count`` cases; all that there is, 0 to 1, in none."""
    if count == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    weight = z * z / count
    middle = (rate + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(rate * (1 - rate) / count + weight / (4 * count))
    # The rate lies within; at 0 and 1 it is the end, which rounding would miss.
    return max(0.0, min(rate, middle - half)), min(1.0, max(rate, middle + half))


@dataclass(frozen=True, slots=True)
class Paired:
    """Two variants on the cases that both have a result for."""

    better: int
    """Cases that the second passed more often than the first."""
    worse: int
    equal: int
    p_value: float
    """How likely a difference as great or greater is if the variants are equally good (two-sided)."""

    def sentence(self, first: str, second: str) -> str:
        """Say whether the difference is more than noise."""
        cases = self.better + self.worse + self.equal
        if not cases:
            return f"{first} and {second} have no case in common that both have a result for."
        if not self.better + self.worse:
            return (
                f"{second} and {first} do equally well in {'the one case' if cases == 1 else f'each of {cases} cases'}."
            )
        seen = f"{second} does better than {first} in {self.better} and worse in {self.worse} of {cases} cases"
        measured = f"p = {self.p_value:.2g}, exact McNemar"
        if self.p_value >= 1 - LEVEL:
            return f"{seen}: the difference may be noise ({measured})."
        return f"{seen}: {second if self.better > self.worse else first} is better, beyond noise ({measured})."


def compared(first: Mapping[_Case, Score], second: Mapping[_Case, Score]) -> Paired:
    """Compare two variants by the cases of both."""
    shared = first.keys() & second.keys()
    better = sum(second[case].rate > first[case].rate for case in shared)
    worse = sum(second[case].rate < first[case].rate for case in shared)
    return Paired(better, worse, len(shared) - better - worse, _two_sided(better, worse))


def _two_sided(better: int, worse: int) -> float:
    """The exact binomial test of two counts that are equally likely."""
    count = better + worse
    tail = sum(math.comb(count, k) for k in range(min(better, worse) + 1))
    return min(1.0, 2 * tail / (1 << count))
