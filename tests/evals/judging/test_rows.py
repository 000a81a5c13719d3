from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.encoding import jsonable
from gm_chat.evals.judging import same_rows
from gm_chat.evals.judging.rows import flat_rows, plain, tables

SOME = uuid.UUID("12345678-1234-5678-1234-567812345678")
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.dates(),
    st.datetimes(timezones=st.just(UTC)),
    st.uuids(),
    st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=9)),
    st.binary(max_size=4),
)


def rows_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    return st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[values] * width), max_size=6))


@pytest.mark.parametrize(
    ("of_a_tool", "of_a_database"),
    [
        ("12.50", Decimal("12.5")),
        ("12.50", 12.5),
        (3, Decimal("3.000")),
        (3, 3.0),
        (True, 1),
        (False, 0),
        ("27.7833333333", 27.783333333333335),
        ("0.3333333333", Decimal(1) / 3),
        ("2025-03-01", date(2025, 3, 1)),
        ("2025-03-01", datetime.fromisoformat("2025-03-01T00:00")),
        ("2025-03-01", datetime(2025, 3, 1, tzinfo=UTC)),
        ("2025-03-01T10:30:00Z", "2025-03-01 10:30:00"),
        ("2025-03-01T12:30:00+02:00", datetime.fromisoformat("2025-03-01T10:30")),
        ("2025-03-01T10:30:00+00:00", datetime(2025, 3, 1, 11, 30, tzinfo=timezone(timedelta(hours=1)))),
        ("10:30:00", time(10, 30)),
        (90.0, timedelta(seconds=90)),
        (str(SOME), SOME),
        (str(SOME), SOME.hex),
        ("base64:AQI=", b"\x01\x02"),
        (None, float("nan")),
    ],
)
def test_what_is_the_same_in_another_encoding(of_a_tool: Any, of_a_database: Any) -> None:
    assert same_rows([(of_a_database,)], [(of_a_tool,)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("007", 7),
        ("12.5 kg", Decimal("12.5")),
        (None, ""),
        (None, 0),
        ("Steel", "steel"),
        (2**63, 2**63 + 1),
        (Decimal("1234567890.25"), Decimal("1234567890.26")),
        (Decimal("0.0000012"), Decimal("0.0000013")),
        ("2025-03-01T10:30:00Z", "2025-03-01T10:30:01Z"),
        ("2025-02-31 10:00", "2025-02-28 10:00"),
    ],
)
def test_what_is_not(one: Any, other: Any) -> None:
    assert not same_rows([(one,)], [(other,)])


@given(rows_of(VALUES), st.data())
def test_the_order_of_rows_and_columns_and_further_columns_do_not_count(
    rows: list[tuple[Any, ...]], data: st.DataObject
) -> None:
    width = len(rows[0]) if rows else 0
    order = data.draw(st.permutations(range(width)))
    more = data.draw(st.lists(VALUES, min_size=len(rows), max_size=len(rows)))
    shown = [(extra, *(jsonable(row[at]) for at in order)) for row, extra in zip(rows, more, strict=True)]
    assert same_rows(rows, data.draw(st.permutations(shown)))


@given(rows_of(st.integers(0, 3)), rows_of(st.integers(0, 3)))
def test_it_is_an_equality_of_multisets_under_some_choice_of_columns(
    reference: list[tuple[int, ...]], rows: list[tuple[int, ...]]
) -> None:
    from collections import Counter
    from itertools import permutations

    width, wanted = (len(reference[0]) if reference else 0), Counter(reference)
    choices = permutations(range(len(rows[0]) if rows else 0), width)
    expected = len(reference) == len(rows) and (
        not rows or any(Counter(tuple(row[at] for at in choice) for row in rows) == wanted for choice in choices)
    )
    assert same_rows(reference, rows) is expected


@given(rows_of(VALUES).filter(bool), st.data())
def test_a_row_more_less_or_other_is_seen(rows: list[tuple[Any, ...]], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(rows) - 1))
    assert not same_rows(rows, [*rows, rows[at]])
    assert not same_rows(rows, rows[:at] + rows[at + 1 :])
    other = ("nowhere to be found", *rows[at][1:])
    assert not same_rows([*rows[:at], other, *rows[at + 1 :]], rows)


def test_rows_go_together() -> None:
    assert not same_rows([("a", 1), ("b", 2)], [("a", 2), ("b", 1)])
    assert not same_rows([(1, 1)], [(1, 2)]), "a column is taken once"


def test_the_order_counts_where_it_is_asked_for() -> None:
    assert same_rows([(1,), (2,)], [("x", "1"), ("y", "2")], ordered=True)
    assert not same_rows([(2,), (1,)], [(1,), (2,)], ordered=True)


def test_many_equal_columns_take_no_time() -> None:
    rows = [tuple([at % 2] * 40) for at in range(100)]
    assert not same_rows([(*row[:19], at) for at, row in enumerate(rows)], rows)


@given(VALUES)
def test_the_plain_form_is_its_own(value: Any) -> None:
    assert plain(jsonable(value)) == plain(value)
    hash(plain(value))


NESTED = {
    "data": [
        {"name": "Alder", "city": {"name": "Ulm"}, "orders": [{"n": 1}, {"n": 3}]},
        {"name": "Birch", "city": None, "orders": []},
    ],
    "total_count": 5,
}


@pytest.mark.parametrize(
    "reference",
    [
        [("Alder", "Ulm"), ("Birch", None)],
        [("Alder", 1), ("Alder", 3)],
        [("Alder", 1), ("Alder", 3), ("Birch", None)],
        [(1,), (3,)],
        [(5,)],
    ],
)
def test_nested_rows_are_read_as_joins_give_them_and_the_count_as_one(reference: list[tuple[Any, ...]]) -> None:
    assert any(same_rows(reference, table) for table in tables(NESTED))


@pytest.mark.parametrize("result", [None, "x", [], {}, {"data": 3}, {"error": {"code": "x"}}])
def test_what_has_no_rows_is_no_table(result: Any) -> None:
    assert list(tables(result)) == []


def test_what_would_be_unrolled_beyond_reason_is_not() -> None:
    wide = {"data": [{name: [{"n": at} for at in range(101)] for name in ("a", "b")}]}
    assert len(list(tables(wide))) == 1


def test_rows_without_all_columns_have_null_there() -> None:
    assert flat_rows([{"a": 1}, {"b": 2}]) == [(1, None), (None, 2)]
