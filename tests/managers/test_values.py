from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st

from gm_chat.encoding import jsonable
from gm_chat.managers.values import WrongValueError, coerce, plain_date
from gm_chat.plugin import ToolError

TYPES = (
    *("string", "integer", "number", "decimal", "boolean", "date", "datetime", "time", "duration", "uuid"),
    *("json", "binary"),
)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("string", "a\nb \u2028 \U0001f600 שלום", "a\nb \u2028 \U0001f600 שלום"),
        ("integer", 5, 5),
        ("integer", 5.0, 5),
        ("integer", -(2**63), -(2**63)),
        ("number", 5, 5.0),
        ("number", 0.25, 0.25),
        ("decimal", 5, Decimal(5)),
        ("decimal", 0.1, Decimal("0.1")),
        ("decimal", "12.50", Decimal("12.50")),
        ("decimal", " -1e3 ", Decimal(-1000)),
        ("boolean", True, True),
        ("date", "2024-02-29", date(2024, 2, 29)),
        ("datetime", "2024-02-29T10:00:00+02:00", datetime(2024, 2, 29, 8, tzinfo=UTC)),
        ("datetime", "2024-02-29 10:00", datetime(2024, 2, 29, 10, tzinfo=timezone.get_default_timezone())),
        ("time", "10:30", time(10, 30)),
        ("duration", 90, timedelta(seconds=90)),
        ("duration", 1.5, timedelta(seconds=1.5)),
        ("duration", "1 12:00:00", timedelta(days=1, hours=12)),
        ("duration", "P1DT12H", timedelta(days=1, hours=12)),
        ("uuid", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", uuid.UUID("3f2504e0-4f89-11d3-9a0c-0305e82c3301")),
        ("json", {"a": [1, None, True, "x", 2.5]}, {"a": [1, None, True, "x", 2.5]}),
        ("binary", "base64:AP8=", b"\x00\xff"),
    ],
)
def test_accepted(kind: Any, value: Any, expected: Any) -> None:
    found = coerce(value, kind, name="it")
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("string", value) for value in (5, None, True, ["x"], {"x": 1}, "a\x00", "\udc80", "x" * 10_001)),
        *(("integer", value) for value in ("5", True, 5.5, 2**63, float("nan"), float("inf"), 10**4000, None, [5])),
        *(("number", value) for value in ("5", True, float("nan"), float("-inf"), 10**400)),
        *(
            ("decimal", value)
            for value in ("x", "NaN", "Infinity", True, float("nan"), "1e999", 10**100, "1" * 61, "\u0661")
        ),
        *(("boolean", value) for value in ("true", 1, 0, None)),
        *(("date", value) for value in ("2024-02-30", "2024-1-1", "01.02.2024", 20240101, "2024-01-01T00:00:00")),
        *(("datetime", value) for value in ("yesterday", 1704067200, "0001-01-01T00:00:00", "9999-12-31T23:59:59")),
        *(("time", value) for value in ("25:00", 10, "10:00+01:00")),
        *(("duration", value) for value in ("soon", True, 1e300, float("nan"), "9" * 400)),
        *(("uuid", value) for value in ("x", 5, "3f2504e0")),
        *(("json", value) for value in (float("nan"), {1: 2}, {"a": "\x00"}, object(), 2**64)),
        *(("binary", value) for value in ("AP8=", "base64:?", 5)),
    ],
)
def test_refused(kind: Any, value: Any) -> None:
    with pytest.raises(ToolError) as caught:
        coerce(value, kind, name="part.it")
    assert caught.value.code == "invalid_value"
    assert caught.value.message.startswith("part.it: expected ")
    assert len(caught.value.message) < 300
    assert caught.value.details["expected"] == kind


@pytest.mark.parametrize(
    ("kind", "value", "meant"),
    [
        ("integer", " 5", 5),
        ("integer", "5x", None),
        ("integer", "9" * 19, None),
        ("integer", "5.5", None),
        ("number", "-2.5e3", -2500.0),
        ("number", "1e999", None),
        ("number", "\u0661", None),
        ("boolean", "False", False),
        ("boolean", "no", None),
        ("string", 5, "5"),
        ("string", True, None),
        ("string", 10**40, None),
        ("date", "5", None),
    ],
)
def test_what_a_refused_value_was_meant_for(kind: Any, value: Any, meant: Any) -> None:
    with pytest.raises(WrongValueError) as caught:
        coerce(value, kind, name="it")
    assert (caught.value.name, caught.value.value) == ("it", value)
    assert caught.value.meant == meant
    assert type(caught.value.meant) is type(meant)


def test_json_of_any_depth_is_an_error_at_most() -> None:
    deep: Any = 1
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(ToolError, match="levels"):
        coerce(deep, "json", name="it")


def test_choices() -> None:
    choices = ((1, "One"), (2, "Two"), (3, "two"))
    assert coerce(1, "integer", name="it", choices=choices) == 1
    assert coerce("one", "integer", name="it", choices=choices) == 1
    for value in (True, 4, "two", [1], {"value": 1}, None):
        with pytest.raises(ToolError) as caught:
            coerce(value, "integer", name="it", choices=choices)
        assert sorted(caught.value.details["allowed"]) == [1, 2, 3]


def test_texts_may_be_longer_where_they_are_stored() -> None:
    assert len(coerce("x" * 50_000, "string", name="it", max_text=None)) == 50_000


def test_naive_projects_get_naive_moments(settings: Any) -> None:
    settings.USE_TZ = False
    assert coerce("2024-01-01T10:00:00", "datetime", name="it") == datetime(2024, 1, 1, 10)  # noqa: DTZ001 - on purpose
    assert coerce("2024-01-01T10:00:00Z", "datetime", name="it").tzinfo is None


def test_plain_dates() -> None:
    assert plain_date("2024-01-31") == date(2024, 1, 31)
    for value in ("2024-02-31", "2024-01-31T00:00", 20240131, None):
        assert plain_date(value) is None


@settings(max_examples=300, deadline=None)
@given(
    kind=st.sampled_from(TYPES),
    value=st.one_of(
        st.text(st.characters(exclude_categories=()), max_size=12), st.integers(), st.floats(), st.booleans(), st.none()
    ),
)
def test_a_value_is_coerced_or_refused_and_then_stays(kind: Any, value: Any) -> None:
    try:
        found = coerce(value, kind, name="it")
    except ToolError:
        return
    assert coerce(jsonable(found), kind, name="it") == found
