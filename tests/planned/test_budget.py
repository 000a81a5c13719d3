"""Provider calls of a planned turn: who pays, and who is refused."""

import pytest

from gm_chat.errors import planned_public_error, public_chat_error
from gm_chat.planned.budget import BudgetExhaustedError, RoundBudget, RoundBudgetExhausted


def spend(budget: RoundBudget, times: int, root: str | None = None) -> None:
    for _ in range(times):
        budget.consume(root)


@pytest.mark.parametrize(("roots", "limit"), [(0, 5), (1, 18), (2, 31), (3, 44), (4, 57), (5, 70), (6, 80), (9, 80)])
def test_the_limit_grows_with_the_roots(roots: int, limit: int) -> None:
    budget = RoundBudget([f"t{number}" for number in range(roots)])
    assert budget.global_limit == budget.global_remaining == budget.remaining_global == limit
    assert budget.subtree_limit == 15


def test_calls_are_charged_to_the_turn_and_to_their_root() -> None:
    budget = RoundBudget(("a", "b"))
    budget.consume_global()
    budget.consume_subtree("a")
    budget.consume("b")
    budget.consume("b")
    assert budget.global_count == budget.global_used == budget.count() == 4
    assert budget.subtree_counts == budget.subtree_used == {"a": 1, "b": 2}
    assert (budget.count("a"), budget.subtree_count("b")) == (1, 2)
    assert budget.subtree_remaining == {"a": 14, "b": 13}
    assert budget.remaining == {"global": 27, "a": 14, "b": 13}


def test_a_root_has_its_own_limit() -> None:
    budget = RoundBudget(["a", "b"])
    spend(budget, 15, "a")
    before = budget.remaining
    with pytest.raises(RoundBudgetExhausted, match="'a'") as caught:
        budget.consume_subtree("a")
    assert caught.value.root_id == "a"
    assert budget.remaining == before
    budget.consume_subtree("b")


def test_the_turn_s_limit_binds_every_root() -> None:
    budget = RoundBudget(["a"])
    spend(budget, 18)
    for root in (None, "a"):
        with pytest.raises(RoundBudgetExhausted, match="all of its 18 provider calls") as caught:
            budget.consume(root)
        assert caught.value.root_id is None
    assert budget.subtree_counts == {"a": 0}


def test_planning_is_paid_before_there_are_roots() -> None:
    budget = RoundBudget(())
    spend(budget, 3)
    planned = budget.with_roots(["a"])
    assert (planned.global_count, planned.global_remaining, planned.subtree_counts) == (3, 15, {"a": 0})
    assert budget.global_remaining == 2


def test_executors_leave_the_answer_its_calls() -> None:
    budget = RoundBudget(["a", "b"])
    assert budget.executor_remaining("a") == 15
    spend(budget, 3)
    spend(budget, 15, "a")
    assert (budget.executor_remaining("a"), budget.executor_remaining("b")) == (0, 11)
    spend(budget, 11, "b")
    assert (budget.executor_remaining("b"), budget.global_remaining) == (0, 2)
    spend(budget, 1)
    assert budget.executor_remaining("b") == 0


def test_unknown_roots_and_equal_ids_are_mistakes() -> None:
    budget = RoundBudget(["a"])
    for call in (budget.consume_subtree, budget.subtree_count, budget.executor_remaining, budget.count):
        with pytest.raises(KeyError, match="no root 'x'"):
            call("x")
    assert budget.global_count == 0
    with pytest.raises(ValueError, match="must differ"):
        RoundBudget(["a", "a"])


def test_its_counts_cannot_be_changed_from_outside() -> None:
    budget = RoundBudget(["a"])
    budget.subtree_counts["a"] = 15  # type: ignore[index]  # a copy takes it, and nobody minds
    assert budget.subtree_count("a") == 0


def test_the_error_has_a_public_reason() -> None:
    error = RoundBudgetExhausted("internal", root_id="a")
    assert BudgetExhaustedError is RoundBudgetExhausted
    assert (error.usage, error.attempt_usages) == (None, ())
    assert public_chat_error(error) == planned_public_error("budget_exhausted")
