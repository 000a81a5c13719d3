import json
import uuid
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

import pytest
from django.db.models import TextChoices
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.encoding import MAX_DEPTH, UnencodableError, canonical_json, jsonable, to_json

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=[]))
    | st.decimals(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


class Level(IntEnum):
    HIGH = 3


class Colour(TextChoices):
    RED = "r", "Red"


class Span(NamedTuple):
    first: date
    last: date | None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("12.50"), "12.50"),
        (Decimal("1E+3"), "1000"),
        (Decimal("NaN"), None),
        (float("inf"), None),
        (2**70, 2**70),
        (True, True),
        (Level.HIGH, 3),
        (Colour.RED, "r"),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "2026-01-02T03:04:00+00:00"),
        (timedelta(minutes=1, milliseconds=500), 60.5),
        (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (b"\x00\xff", "base64:AP8="),
        (memoryview(b"a"), "base64:YQ=="),
        ("a\x00b\ud800", "a\ufffdb\ufffd"),
        ({1: {2, 1}}, {"1": [1, 2]}),
        (("x",), ["x"]),
        (gettext_lazy("Yes"), "Yes"),
        (mark_safe("<b>ä\x00</b>"), "<b>ä\ufffd</b>"),
        (mark_safe("<b>"), "<b>"),
        (MappingProxyType({mark_safe("b"): Decimal(1)}), {"b": "1"}),
        (Counter("aab"), {"a": 2, "b": 1}),
        (Span(date(2026, 1, 2), None), ["2026-01-02", None]),
    ],
)
def test_each_type_has_one_form(value: object, expected: object) -> None:
    assert jsonable(value) == expected
    assert type(jsonable(value)) is type(expected)


def test_wire_text_fits_one_line_of_server_sent_events() -> None:
    text = to_json({"a": "x\u2028y\u2029z\r\n😀"})
    assert text.splitlines() == [text]
    assert json.loads(text) == {"a": "x\u2028y\u2029z\r\n😀"}


def test_what_has_no_form_is_named_with_its_place() -> None:
    with pytest.raises(UnencodableError, match=r"\$\.rows\[1\]\.x: a object has no JSON form"):
        jsonable({"rows": [1, {"x": object()}]})
    with pytest.raises(UnencodableError, match="not usable as an object key"):
        jsonable({(1, 2): 3})
    with pytest.raises(UnencodableError, match="not usable as an object key"):
        jsonable({True: 3})
    with pytest.raises(UnencodableError, match=r"^\$\[0\]\.a\[2\]: a type has no JSON form$"):
        jsonable([{"a": ("x", {1}, int)}])
    with pytest.raises(UnencodableError, match=r"^\$: a type has no JSON form$"):
        jsonable(int)


def test_nesting_is_bounded() -> None:
    deep: list[object] = []
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    with pytest.raises(UnencodableError, match="nested deeper"):
        jsonable(deep)


@given(json_values)
def test_whatever_is_encoded_is_json_and_utf_8(value: object) -> None:
    text = to_json(value)
    text.encode()
    assert json.loads(text) == jsonable(value)
    assert "\n" not in text


@given(st.dictionaries(st.text(max_size=5), st.integers(), max_size=6))
def test_equal_values_have_equal_canonical_text(value: dict[str, int]) -> None:
    again = dict(reversed(list(value.items())))
    assert canonical_json(value) == canonical_json(again)
