from __future__ import annotations

import pytest

from gm_chat.managers.spelling import match_name, nearest, shown


def test_a_name_is_itself_before_it_is_another_spelling() -> None:
    assert match_name("unit_price", ["unitPrice", "unit_price"]) == "unit_price"
    assert match_name("UnitPrice", ["name", "unit_price"]) == "unit_price"
    assert match_name("unitprice", ["unitPrice", "unit_price"]) is None  # which of them?
    assert match_name("unitprice", iter(["unit_price"])) == "unit_price"
    assert match_name("price", ["unit_price"]) is None


def test_the_nearest_come_first_and_are_few() -> None:
    names = [f"field_{number}" for number in range(100)]
    found = nearest("field7", names)
    assert found[0] == "field_7"
    assert len(found) == 20
    assert nearest("x" * 10_000, ["b", "a"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("abc", "'abc'"),
        ("x" * 200, repr("x" * 80 + "...")),
        ("\x00\ud800", "'\\x00\\ud800'"),
        (None, "null"),
        (True, "true"),
        (5, "5"),
        (0.5, "0.5"),
        (10**4000, f"an integer of {(10**4000).bit_length()} bits"),
        ([[]], "a list"),
        ({"a": 1}, "an object"),
        (object(), "a object"),
    ],
)
def test_values_are_shown_shortly(value: object, text: str) -> None:
    assert shown(value) == text
