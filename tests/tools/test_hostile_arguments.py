"""Whatever a model sends, it gets rows or an error that it can mend its call by; nothing else, on no database."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.utils import timezone
from testproject.calling import answer, call, context_of
from testproject.rights import desk_of
from testproject.shop import models as shop

from gm_chat.tools import aggregate, query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gm_chat.plugin import ToolSpec

HUGE, TINY = "9" * 15, "0.00000000000001"
PRODUCT = " * ".join(["weight"] * 30)
MEASURES: list[Any] = [
    *(
        f"sum(id * {HUGE})",
        f"sum({HUGE} + id)",
        f"max(id) * {HUGE} * {HUGE}",
        f"median(id * {HUGE})",
        f"sum(price * {TINY})",
    ),
    *(f"sum(id) * {'9' * 40}", f"sum(weight * 1{'0' * 300})", f"sum({PRODUCT})", f"sum(lead_time * {HUGE})"),
    *("sum(price) / 0", "avg(price / (weight - weight))", "sum(price) / sum(id - id)", " * ".join(["sum(price)"] * 20)),
    *(
        "1 + 1",
        "today",
        "sum(1)",
        "count(1.5)",
        "max(today)",
        "min(now)",
        "today - max(released_on)",
        "max(now) - max(created_at)",
    ),
    *(
        "sum()",
        "sum(sum(price))",
        "sum(count(placements))",
        "count(distinct placements)",
        "avg(max(placements__quantity))",
    ),
    *(
        "max(lead_time)",
        "min(purchased)",
        "max(attributes)",
        "count(drawing)",
        "count(distinct lead_time)",
        "sum(name)",
    ),
    {"formula": "sum(price) / count()", "where": {"id__in": []}},
    {"formula": "median(price)", "where": {"first": {"per": ["material"], "order_by": ["-price"]}}},
    {"formula": "sum(price)", "where": {"material": {"parts": {"price": {"outer": "price"}}}}},
    *({"formula": text} for text in ("", "(", "))", "a b", "sum(price", "count(" * 30, "\ud800", "é", "sum(price);--")),
    *(None, 7, [], {}, [[]], {"formula": 1}, {"where": {}}),
]
HAVING: list[Any] = [
    *(
        {"n__gt": value}
        for value in (10**30, -(10**30), 2**63, 2**31, 1e308, "1e59", float("nan"), "x", True, None, [1])
    ),
    *({"n__in": value} for value in ([], [1, "2", 3.5], [10**30], "x")),
    *({"n__range": value} for value in ([10**30, 10**31], [1], [2, 1])),
    *({"r__lte": value} for value in (10**30, 3 * 10**9, -1)),
    *({"r__gt": 10**30}, {"not": {"r__lte": 10**30}}, {"or": [{"r__lt": 2**63}, {"n": 1}]}),
    *(
        {"lead_time__gt": 1},
        {"lead_time": {"field": "n"}},
        {"lead_time": "P1D"},
        {"first": {"per": [], "order_by": ["n"]}},
    ),
]
FILTERS: list[Any] = [
    *({"id": value} for value in (2**63, 2**63 - 1, -(2**63), True, "1", 1.5, float("nan"), [], {}, {"outer": "id"})),
    *({"price": value} for value in ("1e59", "NaN", 1e308, 0.1)),
    *({"supplier__rating__gt": value} for value in (-1, 99_999, 2**62)),
    *({"name__icontains": value} for value in ("\ud800", "\x00", "x" * 10_000, "%_\\" * 3_000, "é%\\_", "")),
    *(
        {"created_at__gt": value}
        for value in ("9999-12-31T23:59:59+00:00", "0001-01-01", "last 9999 years", "-9999 months")
    ),
    *({"released_on": value} for value in ("0001-01-01", "9999-12-31", "2024-02-30", "next 9999 days")),
    *(
        {"created_at__gt": {"field": "created_at", "plus": f"{count} {unit}"}}
        for count in (1, 99, 999_999)
        for unit in ("years", "quarters", "days", "hours")
    ),
    *(
        {"created_at__date": "0001-01-01"},
        {"created_at__hour__in": [1, 99]},
        {"created_at__month": {"field": "released_on__month"}},
    ),
    *({"lead_time": value} for value in ("99999999 days", 1e300, -1e14, "P1DT12H")),
    *(
        {"and": {}},
        {"or": []},
        {"not": {}},
        {"not": []},
        {"": 1},
        [],
        "x",
        {"attributes__colour": "red"},
        {"drawing": "x"},
    ),
    {"material": {"parts": {"material": {"parts": {"material": {"parts": {"name": {"outer": "name"}}}}}}}},
    {"or": [{"id__in": []}, {"not": {"id__in": []}}, {"first": {"per": [], "order_by": ["name"]}}]},
]
FIELDS: list[Any] = [
    *(
        [["id"]],
        [None],
        [{}],
        [{"material": []}],
        [{"material": None}],
        {"id": 1},
        "id",
        [],
        ["id"] * 121,
        ["attributes__x"],
    ),
    ["gross", {"material": [{"parts": ["gross", {"placements": ["*"]}]}]}, "specification__tolerance", "tags__*"],
]
ORDERS: list[Any] = [
    ["attributes"],
    ["gross"],
    ["tags__name"],
    ["--id"],
    "-id",
    7,
    [7],
    ["id"] * 7,
    ["supplier", "material__id"],
]


def questions() -> Iterator[tuple[ToolSpec, dict[str, Any]]]:
    of_parts = {"manager": "PartManager"}
    for measure in MEASURES:
        yield aggregate, {**of_parts, "measures": {"m": measure}}
        yield aggregate, {**of_parts, "measures": {"m": measure, "s": "share(m)"}, "group_by": ["status"]}
        yield aggregate, {**of_parts, "measures": measure, "group_by": ["released_on__month"], "fill": True}
    for condition in HAVING:
        measures = {"n": "count()", "r": "rank(n)", "t": "running(n, lead_time)"}
        for groups in (["name", "lead_time"], ["lead_time", "released_on__month"]):
            args = {**of_parts, "group_by": groups, "measures": measures, "having": condition}
            yield aggregate, args
            yield aggregate, {**args, "fill": True}
    for filters in FILTERS:
        yield query, {**of_parts, "fields": ["id"], "filters": filters}
        yield aggregate, {**of_parts, "measures": ["count()", "median(price)"], "filters": filters}
    for order in ORDERS:
        yield query, {**of_parts, "fields": ["id"], "order_by": order, "first_per": ["material", "created_at__month"]}
    yield from ((query, {**of_parts, "fields": fields}) for fields in FIELDS)
    for value in (0, -1, True, "10", 1.5, 10**30, 2**53, None, [], float("inf")):
        yield query, {**of_parts, "fields": ["id"], "limit": value, "offset": 1}
        yield aggregate, {**of_parts, "group_by": ["id"], "limit": 1, "offset": value}


@pytest.mark.parametrize("number", [0, 2])
def test_there_is_an_answer_to_everything(db: None, number: int) -> None:
    desk = desk_of(number)
    material = shop.Material.objects.earliest("pk")
    for weight in (1e308, -1.7e308, 5e-324):
        shop.Part.objects.create(number=f"W{weight}", name="heavy", weight=weight, material=material)
    answers = []
    for tool, args in questions():
        context = context_of(desk, deadline=time.monotonic() + 60)
        with timezone.override("UTC" if connection.vendor == "mysql" else "America/New_York"):
            answers.append(answer(tool, args, context)[0])
    assert not [text for text in answers if "NaN" in text.replace('"NaN"', "").replace("'NaN'", "")]
    assert sum('"error"' not in text for text in answers) > len(answers) // 4


@pytest.mark.parametrize(
    ("measure", "value"), [("sum(price) / 0", None), ("max(lead_time)", 172803.0), ("max(today) - max(today)", 0)]
)
def test_values_that_are_computed(db: None, measure: str, value: Any) -> None:
    args = {"manager": "PartManager", "measures": measure}
    assert call(aggregate, args, context_of(desk_of(0)))["data"] == [{"value": value}]


def test_numbers_beyond_a_double(db: None) -> None:
    """SQLite computes infinity, which JSON has not; the others refuse."""
    context = context_of(desk_of(0), deadline=time.monotonic() + 60)
    shop.Part.objects.update(weight=1.7e308)
    text, _ = answer(aggregate, {"manager": "PartManager", "measures": "max(weight) + max(weight)"}, context)
    assert text == '{"data":[{"value":null}],"has_more":false}' or '"error":"too_large"' in text


def test_durations_are_chosen_among_in_seconds(db: None) -> None:
    context = context_of(desk_of(0))
    args = {"manager": "PartManager", "group_by": ["lead_time"], "measures": {"n": "count()"}}
    every = call(aggregate, args, context)["data"]
    assert {row["lead_time"] for row in every} == {None, 0.0, -1e-06, 172803.0}
    some = call(aggregate, {**args, "having": {"lead_time__gt": -0.5}}, context)["data"]
    assert some == [row for row in every if row["lead_time"] is not None and row["lead_time"] > -0.5]


def test_days_of_plain_dates_need_no_time_zones(db: None) -> None:
    """MariaDB knows time zones only once they are loaded, and a date has none."""
    context = context_of(desk_of(0))
    with timezone.override("America/New_York"):
        args = {"manager": "PartManager", "group_by": ["released_on__month"], "measures": "count()"}
        assert call(aggregate, args, context)["total_count"] == 4
        first = {"manager": "PartManager", "fields": ["id"], "order_by": ["id"], "first_per": ["released_on__year"]}
        assert call(query, first, context)["total_count"] == 3
