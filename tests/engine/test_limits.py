from __future__ import annotations

from typing import Any

import pytest

from gm_chat.engine.limits import Next, Outcome, TurnLimits, is_failed_round, next_step, refusal
from gm_chat.settings import ChatSettings

FRESH, REPEATED, FAILED, UNREADABLE = Outcome.FRESH, Outcome.REPEATED, Outcome.FAILED, Outcome.UNREADABLE


@pytest.mark.parametrize(
    ("changes", "rounds"),
    [
        ({}, 13),
        ({"max_retries_per_message": 0, "max_mutations_per_message": 0}, 2),
        ({"max_retries_per_message": 5}, 15),
        ({"max_total_rounds_per_message": 1}, 1),
        ({"max_total_rounds_per_message": 40}, 40),
    ],
)
def test_the_cap_of_rounds(changes: dict[str, Any], rounds: int) -> None:
    assert TurnLimits.from_settings(ChatSettings(**changes)).rounds == rounds


def test_the_other_limits_are_the_settings() -> None:
    limits = TurnLimits.from_settings(ChatSettings(max_retries_per_message=2, max_mutations_per_message=5))
    assert (limits.failed_rounds, limits.mutations) == (2, 5)


@pytest.mark.parametrize(
    ("calls", "writes", "mutations", "code"),
    [
        (3, 0, 0, None),
        (3, 0, 8, None),
        (1, 1, 0, None),
        (1, 1, 7, None),
        (1, 1, 8, "mutation_limit"),
        (2, 1, 0, "mutation_batch_unsupported"),
        (2, 2, 0, "mutation_batch_unsupported"),
        (2, 1, 8, "mutation_batch_unsupported"),
    ],
)
def test_which_calls_must_not_run(calls: int, writes: int, mutations: int, code: str | None) -> None:
    limits = TurnLimits(rounds=13, failed_rounds=3, mutations=8)
    assert refusal(limits, calls=calls, writes=writes, mutations=mutations) == code


def test_zero_mutations_forbid_the_first_one() -> None:
    assert refusal(TurnLimits(rounds=9, failed_rounds=3, mutations=0), calls=1, writes=1, mutations=0)


@pytest.mark.parametrize(
    ("outcomes", "failed", "step"),
    [
        ([FRESH], False, Next.TOOLS),
        ([FAILED], True, Next.TOOLS),
        ([UNREADABLE], True, Next.TOOLS),
        ([FRESH, FAILED], False, Next.TOOLS),
        ([FRESH, UNREADABLE], True, Next.TOOLS),
        ([REPEATED], False, Next.ANSWER),
        ([REPEATED, REPEATED], False, Next.ANSWER),
        ([REPEATED, FRESH], False, Next.TOOLS),
        ([REPEATED, FAILED], True, Next.TOOLS),
    ],
)
def test_what_a_round_amounts_to(outcomes: list[Outcome], failed: bool, step: Next) -> None:
    assert is_failed_round(outcomes) is failed
    assert next_step(outcomes) is step
