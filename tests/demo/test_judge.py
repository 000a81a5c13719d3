"""What counts as a right answer in the demo's check."""

from __future__ import annotations

import pytest

from gm_chat.demo.judge import Expected, problem_with


@pytest.mark.parametrize(
    ("answer", "expected", "problem"),
    [
        ("There are 2,400 parts.", Expected(("2400",)), None),
        ("There are 2400 parts", Expected(("2400",)), None),
        ("There are 12400 parts", Expected(("2400",)), "lacks 2400"),
        ("There are 2400.5 parts", Expected(("2400",)), "lacks 2400"),
        ("It is 4.43.", Expected(("4.43",)), None),
        ("P-2025-0011", Expected(("P-2025-001",)), "lacks P-2025-001"),
        ("a b", Expected(("b", "a")), None),
        ("a b", Expected(("b", "a"), in_order=True), "has the rows in another order"),
        ("b, a", Expected(("b", "a"), in_order=True), None),
        ("77 of 90", Expected(("77",), ("90",)), "must not hold 90"),
        ("", Expected(("1", "2", "3", "4")), "lacks 1, 2, 3"),
    ],
)
def test_answers(answer: str, expected: Expected, problem: str | None) -> None:
    assert problem_with(answer, ["query"], expected) == problem


def test_an_answer_about_data_rests_on_a_query() -> None:
    assert problem_with("5", ["search_managers"], Expected(("5",))) == "rests on no query"
    assert problem_with("nothing", [], Expected(queried=False)) is None
