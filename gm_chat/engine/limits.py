"""How long a turn may go on: pure decisions over counts. (Contract: "Mend", first two items, and "Keep", rounds.)

A *round* is one call of the provider. A round *fails* when none of its tool calls gave a result, or when one of them
could not be read; the model may then mend its calls, ``max_retries_per_message`` times. A round *brings nothing new*
when it only repeats reads whose results the model has already; the next one then asks for the answer, without tools.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Next", "Outcome", "TurnLimits", "is_failed_round", "next_step", "refusal"]


class Outcome(Enum):
    """What one tool call brought."""

    FRESH = "fresh"
    REPEATED = "repeated"
    FAILED = "failed"
    UNREADABLE = "unreadable"


class Next(Enum):
    """What follows a round with tool calls."""

    TOOLS = "tools"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLimits:
    """Bounds of one turn: provider rounds, failed rounds, executed mutations."""

    rounds: int
    failed_rounds: int
    mutations: int

    @classmethod
    def from_settings(cls, settings: Any) -> Self:
        """Read the three ``max_…_per_message`` settings. Without a total, the cap leaves room for all the others."""
        retries, mutations = settings.max_retries_per_message, settings.max_mutations_per_message
        total = settings.max_total_rounds_per_message
        return cls(
            rounds=retries + mutations + 2 if total is None else total, failed_rounds=retries, mutations=mutations
        )


def refusal(limits: TurnLimits, *, calls: int, writes: int, mutations: int) -> str | None:
    """Say why a completion's ``calls`` must not run at all, as an error code, or ``None``.

    ``writes`` of them call write tools; ``mutations`` have been executed in this turn before.
    """
    if writes and calls > 1:
        return "mutation_batch_unsupported"
    if writes and mutations >= limits.mutations:
        return "mutation_limit"
    return None


def is_failed_round(outcomes: Sequence[Outcome]) -> bool:
    """Whether a round counts against ``max_retries_per_message``."""
    if Outcome.UNREADABLE in outcomes:
        return True
    return Outcome.FAILED in outcomes and Outcome.FRESH not in outcomes


def next_step(outcomes: Sequence[Outcome]) -> Next:
    """Decide what follows a round whose calls had these outcomes, as far as the limits allow more."""
    return Next.ANSWER if all(outcome is Outcome.REPEATED for outcome in outcomes) else Next.TOOLS
