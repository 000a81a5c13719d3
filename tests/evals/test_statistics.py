from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.evals.record import Observed, Outcome, Verdict
from gm_chat.evals.statistics import Paired, Score, by_case, compared, pass_at_1, pass_hat_k, wilson

SCORES = st.integers(1, 8).flatmap(lambda judged: st.builds(Score, st.integers(0, judged), st.just(judged)))


def outcome(case: str, *, passed: bool | None) -> Outcome:
    """``None`` is an error."""
    seen = Observed(dataset="d", case=case, error="rate_limited" if passed is None else "")
    return Outcome(observed=seen, verdicts=() if passed is None else (Verdict(judge="j", passed=passed, why=""),))


def test_repeats_add_up_and_errors_are_left_out() -> None:
    runs = [outcome("a", passed=True), outcome("a", passed=None), outcome("a", passed=False), outcome("b", passed=None)]
    assert by_case(runs) == {("d", "a"): Score(1, 2)}


@given(SCORES, st.integers(1, 8))
def test_pass_hat_k_is_the_share_of_all_choices_of_k_repeats_that_passed(score: Score, k: int) -> None:
    repeats = [at < score.passed for at in range(score.judged)]
    choices = [all(chosen) for chosen in combinations(repeats, k)]
    expected = sum(choices) / len(choices) if choices else None
    assert pass_hat_k([score], k) == (None if expected is None else pytest.approx(expected))


@given(st.lists(SCORES, min_size=1))
def test_pass_at_1_is_pass_hat_1(scores: list[Score]) -> None:
    assert pass_hat_k(scores, 1) == pytest.approx(pass_at_1(scores))


def test_of_nothing_there_is_no_rate() -> None:
    assert pass_at_1([]) is None
    assert pass_hat_k([Score(1, 1)], 2) is None
    with pytest.raises(ValueError, match="k must be 1 or more, not 0"):
        pass_hat_k([], 0)


@pytest.mark.parametrize(
    ("passed", "count", "low", "high"),
    # Newcombe, "Two-sided confidence intervals for the single proportion", 1998, table I, method 3
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_gives_published_intervals(passed: int, count: int, low: float, high: float) -> None:
    assert wilson(passed / count, count) == pytest.approx((low, high), abs=5e-5)


@given(st.floats(0, 1), st.integers(1, 10_000))
def test_an_interval_holds_its_rate_and_shrinks_with_more_cases(rate: float, count: int) -> None:
    low, high = wilson(rate, count)
    assert 0 <= low <= rate <= high <= 1
    wider_low, wider_high = wilson(rate, max(1, count // 2))
    assert wider_high - wider_low >= high - low - 1e-12
    assert wilson(rate, 0) == (0, 1)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 5))
def test_mcnemar_is_the_exact_sign_test(better: int, worse: int, equal: int) -> None:
    pairs = [(0, 1)] * better + [(1, 0)] * worse + [(1, 1)] * equal
    first = {at: Score(pair[0], 1) for at, pair in enumerate(pairs)}
    second = {at: Score(pair[1], 1) for at, pair in enumerate(pairs)}
    paired = compared(first, second)
    assert (paired.better, paired.worse, paired.equal) == (better, worse, equal)
    count = better + worse
    chances = [math.comb(count, k) / 2**count for k in range(count + 1)]
    least = chances[better]
    assert paired.p_value == pytest.approx(min(1.0, sum(each for each in chances if each <= least * (1 + 1e-9))))
    assert compared(second, first).p_value == paired.p_value


def test_a_thousand_cases_are_no_overflow() -> None:
    first = {at: Score(0, 1) for at in range(3000)}
    assert compared(first, {at: Score(at % 2, 1) for at in first}).p_value == 0.0


def test_repeats_make_a_case_one_vote_and_only_shared_cases_count() -> None:
    first = {"a": Score(1, 4), "b": Score(2, 2), "c": Score(1, 1)}
    second = {"a": Score(3, 4), "b": Score(1, 1), "d": Score(0, 1)}
    assert compared(first, second) == Paired(better=1, worse=0, equal=1, p_value=1.0)


@pytest.mark.parametrize(
    ("paired", "sentence"),
    [
        (Paired(0, 0, 0, 1.0), "old and new have no case in common that both have a result for."),
        (Paired(0, 0, 7, 1.0), "new and old do equally well in each of 7 cases."),
        (
            Paired(3, 1, 6, 0.625),
            (
                "new does better than old in 3 and worse in 1 of 10 cases: the difference may be noise "
                "(p = 0.62, exact McNemar)."
            ),
        ),
        (
            Paired(0, 8, 2, 0.0078125),
            (
                "new does better than old in 0 and worse in 8 of 10 cases: old is better, beyond noise "
                "(p = 0.0078, exact McNemar)."
            ),
        ),
    ],
)
def test_one_sentence_says_whether_it_is_more_than_noise(paired: Paired, sentence: str) -> None:
    assert paired.sentence("old", "new") == sentence
