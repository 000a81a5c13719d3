from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gm_chat.managers.formula import MAX_DEPTH, Binary, Call, Name, Node, Number, parse_formula
from gm_chat.plugin import ToolError


def parsed(text: str) -> Node:
    return parse_formula(text, "measure 'x'")


def test_precedence_and_association() -> None:
    assert parsed("a - b - c * 2") == Binary(
        "-", Binary("-", Name("a"), Name("b")), Binary("*", Name("c"), Number(Decimal(2)))
    )
    assert parsed("(a + 1.5) / b") == Binary("/", Binary("+", Name("a"), Number(Decimal("1.5"))), Name("b"))
    assert parsed("--a") == Name("a")
    assert parsed("-a") == Binary("-", Number(Decimal(0)), Name("a"))


def test_calls() -> None:
    assert parsed("COUNT()") == parsed("count(*)") == Call("count", ())
    assert parsed("count(DISTINCT customer.id)") == Call("count", (Name("customer.id"),), distinct=True)
    assert parsed("count(distinct(x))") == Call("count", (Name("x"),), distinct=True)
    assert parsed("sum(distinct)") == Call("sum", (Name("distinct"),))
    assert parsed("round(a, 2)") == Call("round", (Name("a"), Number(Decimal(2))))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it ends where"),
        ("sum(", "it ends where"),
        ("sum(price", "')' is missing at the end"),
        ("sum(price))", "')' is not expected there"),
        ("sum(price) profit", "'profit' is not expected there"),
        ("a + * b", "'*' stands where"),
        ("a; drop table x", "'; drop table x' cannot be read"),
        ("count(*, a)", "')' is missing before ','"),
        ("price > 3", "'> 3' cannot be read"),
    ],
)
def test_mistakes_say_what_and_where(text: str, said: str) -> None:
    with pytest.raises(ToolError) as caught:
        parsed(text)
    assert caught.value.code == "invalid_formula"
    assert str(caught.value).startswith("measure 'x': ")
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["(" * (MAX_DEPTH + 2), "a+" * 100 + "a", "a" * 1000, "sum(" * 50])
def test_size_is_bounded(text: str) -> None:
    with pytest.raises(ToolError) as caught:
        parsed(text)
    assert caught.value.code == "too_large"


@given(st.one_of(st.text(max_size=200), st.text("abs(),+-*/ .1\u0663distinct_", max_size=60)))
@example("1.2.3")
@example("\u0661 + \u00b2")
@example("a" + "-" * 110 + "b")
def test_any_text_is_a_formula_or_a_tool_error(text: str) -> None:
    code = None
    try:
        parsed(text)
    except ToolError as error:
        code = error.code
    assert code in (None, "invalid_formula", "too_large")
