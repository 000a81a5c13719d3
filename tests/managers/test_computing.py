"""Sums over rows in memory are those of the database, under the same rights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone
from testproject.desk import Desk, actor_of
from testproject.shop_rows import fill_shop
from testproject.texts import Text
from testproject.walk import Walk

from gm_chat.managers import registry
from gm_chat.managers.aggregate import build_aggregate
from gm_chat.managers.aggregation import execute_aggregate
from gm_chat.managers.computing import compute
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gm_chat.managers.measures import AggregatePage

PARTS: list[dict[str, Any]] = [
    {"measures": {"n": "count()", "sum": "sum(price)", "mean": "avg(weight)", "middle": "median(price)"}},
    {
        "measures": {"n": "count()", "sum": "sum(price)", "kinds": "count(distinct status)"},
        "filters": {"number": "none"},
    },
    {
        "measures": {
            "first": "min(released_on)",
            "last": "max(created_at)",
            "name": "max(number)",
            "lead": "sum(lead_time)",
        }
    },
    {"measures": {"n": "count()"}, "offset": 3},
    {"group_by": ["status", "supplier__country"]},
    {"group_by": ["status"], "measures": {"left": "sum(price) - 2 * sum(weight)", "none": "sum(price) / (1 - 1)"}},
    {"group_by": ["status"], "measures": {"more": "20 * sum(price) + 1 - 3 * count()", "two": "count() * (3 - 2.5)"}},
    {"group_by": ["supplier__country"], "measures": {"n": "count()"}, "order_by": ["-n"], "limit": 2},
    *(
        {"group_by": [f"created_at__{part}"], "measures": {"n": "count()"}}
        for part in ("year", "quarter", "month", "week")
    ),
    *(
        {"group_by": [f"released_on__{part}"], "measures": {"n": "count()"}}
        for part in ("day", "weekday", "month_of_year")
    ),
    *({"group_by": [f"created_at__{part}"], "measures": {"n": "count()"}} for part in ("hour", "hour_of_day")),
    {"group_by": ["released_on__day_of_month"], "measures": {"age": "avg(created_at - released_on)", "n": "count()"}},
    {
        "group_by": ["status"],
        "measures": {"seconds": "max(created_at - created_at)", "today": "max(today) - max(today)"},
    },
    {
        "group_by": ["material__name"],
        "measures": {"bought": {"formula": "count()", "where": {"purchased": True}}, "rate": "bought / count()"},
        "having": {"rate__lt": 0.9},
        "order_by": ["-rate"],
    },
    {
        "group_by": ["status", "purchased"],
        "measures": {"sum": "sum(price)", "share": "share(sum)", "place": "rank(sum, status)", "more": "2 * share + 1"},
        "order_by": ["place", "-sum"],
    },
    {
        "group_by": ["released_on__month"],
        "measures": {"n": "count()", "sum": "sum(price)", "change": "change(n)", "so_far": "running(n)"},
        "filters": {"released_on__range": ["2024-01-01", "2024-06-30"]},
        "fill": True,
    },
    {"group_by": ["status"], "measures": {"n": "count()"}, "having": {"status__in": ["draft", "released"]}},
    {"group_by": ["number"], "measures": {"name": "min(name)"}, "having": {"or": [{"number": "P-001"}, {"name": "b"}]}},
    {"group_by": ["lead_time"], "measures": {"n": "count()"}},
]
OTHERS: list[dict[str, Any]] = [
    {"manager": "MaterialManager", "group_by": ["name"], "measures": {"sum": "sum(parts__price)", "n": "count(parts)"}},
    {
        "manager": "MaterialManager",
        "measures": {"mean": "avg(max(parts__weight))", "mean_of_all": "avg(parts__weight)"},
    },
    {
        "manager": "SupplierManager",
        "group_by": ["country"],
        "measures": {"dear": {"formula": "count(parts)", "where": {"parts": {"price__gt": {"outer": "rating"}}}}},
    },
]


class Rows:
    """A reader of (row, manager)."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk

    def value(self, row: Any, path: tuple[str, ...]) -> Any:
        value = self.walk.at(row[0], path, row[1])
        return value.text if isinstance(value, Text) else value

    def holds(self, where: Any, row: Any, outer: Any = None) -> bool:
        return self.walk.holds(where, *row, outer)

    def behind(self, row: Any, relation: str) -> list[Any]:
        target = self.walk.bindings[row[1]].relations[relation].target
        return [(item, target) for item in self.walk.related(row[0], relation, row[1])]


@pytest.fixture(autouse=True)
def _utc() -> Iterator[None]:
    with timezone.override("UTC"):  # MariaDB knows no time zones but its own until they are loaded
        yield


@pytest.fixture(params=["staff", "plain"])
def desk(request: pytest.FixtureRequest, db: None) -> Desk:
    users = fill_shop()
    users["plain"].user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    return Desk(registry.bindings(), actor_of(users[request.param]))


def both(desk: Desk, args: dict[str, Any], **options: Any) -> tuple[AggregatePage, AggregatePage]:
    plan = build_aggregate({"manager": "PartManager", **args}, desk.view, max_results=200, **options)
    walk = Walk(desk)
    rows = [(row, plan.manager) for row in walk.visible[plan.manager] if walk.holds(plan.where, row, plan.manager)]
    return compute(plan, rows, Rows(walk)), execute_aggregate(plan, desk.bindings, desk.actor)


def test_as_the_database(desk: Desk) -> None:
    for args in (*PARTS, *OTHERS):
        page, expected = both(desk, args)
        assert equal(list(page.data), list(expected.data)), (args, page.data, expected.data)
        assert page.has_more == expected.has_more, args


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return list(one) == list(other) and all(equal(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    try:
        return math.isclose(float(one), float(other), rel_tol=1e-9, abs_tol=1e-6)
    except (TypeError, ValueError):
        return bool(one == other)


def test_whole_groups_are_dropped_at_the_budget(desk: Desk) -> None:
    page, expected = both(desk, {"group_by": ["number"], "measures": {"n": "count()"}}, max_bytes=150)
    assert page == expected
    assert page.truncated


def test_more_groups_than_python_should_compare(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gm_chat.managers.filling.MAX_FOUND", 3)
    with pytest.raises(ToolError, match="more than 3 groups"):
        both(desk, {"group_by": ["number"], "measures": {"n": "count()"}})


def test_text_that_having_looks_into(desk: Desk) -> None:
    page, _ = both(
        desk, {"group_by": ["status"], "measures": {"n": "count()"}, "having": {"status__icontains": "EASE"}}
    )
    assert [row["status"] for row in page.data] == ["released"]
