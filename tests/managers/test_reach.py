"""Which managers a plan reads from: what the note about hidden rows depends on."""

from __future__ import annotations

from typing import Any

import pytest
from testproject.desk import whole_view

from gm_chat.managers.aggregate import build_aggregate
from gm_chat.managers.plan import build_plan
from gm_chat.managers.reach import managers_of, managers_of_aggregate

VIEW = whole_view()


def names(*stems: str) -> set[str]:
    return {f"{stem}Manager" for stem in stems}


@pytest.mark.parametrize(
    ("args", "reached"),
    [
        ({}, names("OrderLine")),
        ({"fields": ["part__name", {"order": ["number"]}]}, names("OrderLine", "Part", "Order")),
        ({"filters": {"part__material__name": "x"}}, names("OrderLine", "Part", "Material")),
        ({"filters": {"not": {"or": [{"part__tags__name": "x"}, {"id": 1}]}}}, names("OrderLine", "Part", "Tag")),
        ({"filters": {"quantity": {"field": "part__supplier__rating"}}}, names("OrderLine", "Part", "Supplier")),
        ({"filters": {"part": {"created_at__day": 1, "id": {"outer": "quantity"}}}}, names("OrderLine", "Part")),
        ({"order_by": ["-order__customer"]}, names("OrderLine", "Order")),
        ({"order_by": ["id"], "first_per": ["part__supplier"]}, names("OrderLine", "Part", "Supplier")),
        (
            {"filters": {"first": {"per": ["order"], "order_by": ["part__name"], "where": {"part__tags__name": "x"}}}},
            names("OrderLine", "Order", "Part", "Tag"),
        ),
    ],
)
def test_of_a_query(args: dict[str, Any], reached: set[str]) -> None:
    plan = build_plan({"manager": "OrderLine", "fields": ["id"], **args}, VIEW, max_results=10)
    assert managers_of(plan, VIEW) == reached


@pytest.mark.parametrize(
    ("args", "reached"),
    [
        ({"measures": "count()"}, names("Part")),
        ({"group_by": ["supplier__country"]}, names("Part", "Supplier")),
        ({"group_by": ["supplier"]}, names("Part", "Supplier")),
        ({"measures": "sum(price) / count(distinct material)"}, names("Part", "Material")),
        ({"measures": "avg(max(order_lines__order__ordered_at) - created_at)"}, names("Part", "OrderLine", "Order")),
        ({"measures": "count(order_lines)"}, names("Part", "OrderLine")),
        ({"measures": "count()", "filters": {"tags__name": "x"}}, names("Part", "Tag")),
        ({"measures": {"n": {"formula": "count()", "where": {"documents__title": "x"}}}}, names("Part", "Document")),
        (
            {"measures": {"n": {"formula": "count(order_lines)", "where": {"order_lines__order__status": "open"}}}},
            names("Part", "OrderLine", "Order"),
        ),
        ({"group_by": ["status"], "measures": "share(count(distinct supplier))"}, names("Part", "Supplier")),
    ],
)
def test_of_an_aggregate(args: dict[str, Any], reached: set[str]) -> None:
    plan = build_aggregate({"manager": "Part", **args}, VIEW, max_results=10)
    assert managers_of_aggregate(plan, VIEW) == reached
