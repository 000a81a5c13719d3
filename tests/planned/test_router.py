"""Which questions are worth a plan: by their words and the managers they name alone."""

import pytest

from gm_chat.planned.resolver import ManagerCandidate
from gm_chat.planned.router import is_worth_a_plan


def named(*names: str) -> list[ManagerCandidate]:
    return [ManagerCandidate(name, (), exact=False, named=True) for name in names]


FAR = [ManagerCandidate("Part", ("schema fields",), exact=False)]


@pytest.mark.parametrize(
    ("question", "candidates", "has_history", "expected"),
    [
        ("Hello!", [], False, False),
        ("Compare apples with pears and also how many there are?", [], False, False),
        ("Which parts are there?", named("Part"), False, False),
        ("What is the difference between the prices?", FAR, False, False),
        ("What is the difference between the prices of parts and materials?", named("Part", "Material"), False, True),
        ("How many parts have we, and how many materials?", named("Part", "Material"), False, True),
        ("How many parts have we? How many materials?", named("Part", "Material"), False, True),
        ("Which customers buy parts and which suppliers deliver them?", named("Customer", "Supplier"), False, True),
        ("Parts, materials and orders of Acme", named("Part", "Material", "Order"), False, True),
        ("Wie viel Prozent der Teile sind aus Stahl, und wie viele Lieferanten gibt es?", named("Part"), False, True),
        ("In percent? And which?", named("Part"), True, False),
        ("Compare parts and materials", named("Part", "Material"), True, True),
        ("In percent? And which?", named("Part"), False, True),
    ],
)
def test_what_is_worth_a_plan(
    question: str, candidates: list[ManagerCandidate], has_history: bool, expected: bool
) -> None:
    assert is_worth_a_plan(question, candidates, has_history=has_history) is expected
