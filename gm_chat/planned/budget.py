"""How many provider calls a planned turn may make: one ledger for the turn, one for each root with its children.

Planner and synthesizer are charged to the turn, executors to the turn and to the root they work for. A refused call
is charged to neither. (Specification: "Planned orchestration helpers".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gm_chat.providers.base import TokenUsage

__all__ = [
    "MAX_GLOBAL_ROUNDS",
    "PLANNER_ROUNDS",
    "SUBTREE_ROUNDS",
    "SYNTHESIS_ROUNDS",
    "BudgetExhaustedError",
    "RoundBudget",
    "RoundBudgetExhausted",
]

PLANNER_ROUNDS: Final = 3
"""A plan, its correction, and the fallback's."""

SYNTHESIS_ROUNDS: Final = 2
"""An answer, and the fallback's."""

SUBTREE_ROUNDS: Final = 15
MAX_GLOBAL_ROUNDS: Final = 80
_ROUNDS_PER_ROOT: Final = 13


class RoundBudgetExhausted(RuntimeError):  # noqa: N818 (the specification's name)
    """The call that was about to be made is one too many. ``root_id`` is ``None`` where the turn's ledger is full.

    ``usage`` and ``attempt_usages`` are what was spent before, where the stage that stops knows it.
    """

    public_reason: Final = "budget_exhausted"

    def __init__(self, message: str, *, root_id: str | None = None) -> None:
        super().__init__(message)
        self.root_id = root_id
        self.usage: TokenUsage | None = None
        self.attempt_usages: tuple[TokenUsage, ...] = ()


BudgetExhaustedError = RoundBudgetExhausted


class RoundBudget:
    """Counts provider calls: 15 for each root, ``min(5 + 13 * roots, 80)`` in all.

    Before there is a plan, a budget without roots pays for planning; :meth:`with_roots` then takes its count over.
    """

    subtree_limit: ClassVar[int] = SUBTREE_ROUNDS

    def __init__(self, root_ids: Collection[str]) -> None:
        roots = tuple(root_ids)
        if len(set(roots)) < len(roots):
            raise ValueError(f"the ids of the roots must differ, but they are {', '.join(map(repr, roots))}")
        self.root_ids = roots
        self.global_limit = min(PLANNER_ROUNDS + SYNTHESIS_ROUNDS + _ROUNDS_PER_ROOT * len(roots), MAX_GLOBAL_ROUNDS)
        self._global_count = 0
        self._subtree_counts = dict.fromkeys(roots, 0)

    def with_roots(self, root_ids: Collection[str]) -> RoundBudget:
        """The budget of the plan that this one paid for: what planning took stays charged to the turn."""
        budget = RoundBudget(root_ids)
        budget._global_count = self._global_count
        return budget

    @property
    def global_count(self) -> int:
        """Calls charged so far, everybody's."""
        return self._global_count

    global_used = global_count

    @property
    def global_remaining(self) -> int:
        """Calls that the turn may still make."""
        return self.global_limit - self._global_count

    remaining_global = global_remaining

    @property
    def subtree_counts(self) -> Mapping[str, int]:
        """Calls charged to each root, its children's included."""
        return dict(self._subtree_counts)

    subtree_used = subtree_counts

    @property
    def subtree_remaining(self) -> Mapping[str, int]:
        """Calls that each root may still make, as far as its own ledger goes."""
        return {root: self.subtree_limit - count for root, count in self._subtree_counts.items()}

    @property
    def remaining(self) -> Mapping[str, int]:
        """:attr:`subtree_remaining`, and :attr:`global_remaining` under ``"global"``."""
        return {"global": self.global_remaining, **self.subtree_remaining}

    def subtree_count(self, root_id: str) -> int:
        """Calls charged to one root."""
        return self._subtree_counts[self._known(root_id)]

    def count(self, root_id: str | None = None) -> int:
        """Calls charged to one root, or in all."""
        return self._global_count if root_id is None else self.subtree_count(root_id)

    def executor_remaining(self, root_id: str) -> int:
        """Calls that may still be made for a root without taking those that the answer needs."""
        own = self.subtree_limit - self.subtree_count(root_id)
        return max(0, min(own, self.global_remaining - SYNTHESIS_ROUNDS))

    def consume_global(self) -> None:
        """Charge a call of the planner or the synthesizer."""
        if self.global_remaining <= 0:
            raise RoundBudgetExhausted(f"the turn has made all of its {self.global_limit} provider calls")
        self._global_count += 1

    def consume_subtree(self, root_id: str) -> None:
        """Charge a call of an executor, to its root and to the turn, or to neither."""
        if self.subtree_count(root_id) >= self.subtree_limit:
            raise RoundBudgetExhausted(
                f"the root {root_id!r} has made all of its {self.subtree_limit} provider calls", root_id=root_id
            )
        self.consume_global()
        self._subtree_counts[root_id] += 1

    def consume(self, root_id: str | None = None) -> None:
        """Charge a call to a root and the turn, or to the turn alone."""
        if root_id is None:
            self.consume_global()
        else:
            self.consume_subtree(root_id)

    def _known(self, root_id: str) -> str:
        if root_id not in self._subtree_counts:
            raise KeyError(f"the plan has no root {root_id!r}")
        return root_id
