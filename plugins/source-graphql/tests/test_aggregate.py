"""The same computations by gm-chat's own source, in SQL, and over three GraphQL schemas, which cannot compute."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from desks import LIBRARIES, Desk, actor_of, alike, django_source, graphql_source
from testproject.shop import models
from testproject.shop_rows import fill_shop

from gm_chat.plugin import ToolError

PLANS = 120

SUMS: list[tuple[str, dict[str, Any]]] = [
    (
        "PartManager",
        {"measures": {"n": "count()", "sum": "sum(price)", "mean": "avg(weight)", "middle": "median(price)"}},
    ),
    ("PartManager", {"measures": {"n": "count()", "least": "min(price)", "most": "max(released_on)"}}),
    ("PartManager", {"measures": {"n": "count()", "sum": "sum(price)"}, "filters": {"number": "P-999"}}),
    ("PartManager", {"group_by": ["status"]}),
    ("PartManager", {"group_by": ["status", "supplier__country"], "measures": {"n": "count()"}}),
    ("PartManager", {"group_by": ["released_on__year"], "measures": {"n": "count()"}, "order_by": ["-n"], "limit": 2}),
    ("PartManager", {"group_by": ["created_at__hour_of_day"], "measures": {"kinds": "count(distinct status)"}}),
    ("PartManager", {"group_by": ["released_on__week"], "measures": {"age": "avg(created_at - released_on)"}}),
    ("PartManager", {"group_by": ["status"], "measures": {"value": "sum(price * weight) / sum(weight)"}}),
    (
        "PartManager",
        {
            "group_by": ["material__name"],
            "measures": {"bought": {"formula": "count()", "where": {"purchased": True}}, "rate": "bought / count()"},
            "having": {"rate__gt": 0},
            "order_by": ["-rate", "material__name"],
        },
    ),
    (
        "PartManager",
        {
            "group_by": ["status"],
            "measures": {"sum": "sum(price)", "share": "share(sum)", "place": "rank(sum)"},
            "filters": {"supplier__rating__gte": 2},
            "order_by": ["place"],
        },
    ),
    (
        "PartManager",
        {
            "group_by": ["released_on__month"],
            "measures": {"n": "count()", "change": "change(n)", "so_far": "running(n)"},
            "filters": {"released_on__range": ["2024-01-01", "2024-06-30"]},
            "fill": True,
        },
    ),
    ("PartManager", {"group_by": ["status"], "measures": {"n": "count()"}, "having": {"status__icontains": "LE"}}),
    (
        "PartManager",
        {"group_by": ["number"], "measures": {"n": "count()"}, "having": {"number__in": ["P-001", "P-002"]}},
    ),
    ("PartManager", {"group_by": ["number"], "measures": {"n": "count()"}, "limit": 3, "offset": 4}),
    ("MaterialManager", {"group_by": ["name"], "measures": {"sum": "sum(parts__price)", "n": "sum(count(parts))"}}),
    ("MaterialManager", {"measures": {"mean": "avg(max(parts__weight))", "n": "count(parts)"}}),
    (
        "SupplierManager",
        {
            "group_by": ["country"],
            "measures": {"drafts": {"formula": "count(parts)", "where": {"parts": {"status": "released"}}}},
        },
    ),
]


@pytest.fixture
def users(db: None) -> dict[str, Any]:
    users = fill_shop()
    users["plain"].is_superuser = True  # every permission of Django's, but no staff: some rows are hidden
    return users


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("user", ["staff", "plain"])
def test_sums(library: str, user: str, users: dict[str, Any]) -> None:
    actor = actor_of(users[user])
    ours, theirs = Desk(django_source(), actor), Desk(graphql_source(library), actor)
    for manager, args in SUMS:
        expected, page = ours.compute(manager, **args), theirs.compute(manager, **args)
        assert equal(alike(page.data), alike(expected.data)), (manager, args, page.data, expected.data)
        assert (page.has_more, page.truncated) == (expected.has_more, expected.truncated), (manager, args)


@pytest.mark.parametrize("library", LIBRARIES)
def test_random_sums(library: str, users: dict[str, Any]) -> None:
    desks = [(Desk(django_source(), who), Desk(graphql_source(library), who)) for who in map(actor_of, users.values())]
    found = 0
    for seed in range(PLANS):
        ours, theirs = desks[seed % len(desks)]
        args = arguments(random.Random(seed))  # noqa: S311 - reproducible
        expected, page = ours.compute(**args), theirs.compute(**args)
        assert equal(alike(page.data), alike(expected.data)), (seed, args, page.data, expected.data)
        assert page.has_more == expected.has_more, (seed, args)
        found += len(page.data) > 1
    assert found > PLANS // 3


def arguments(choose: random.Random) -> dict[str, Any]:
    """Of ``aggregate``, over parts or what has parts."""
    if choose.random() < 0.25:
        inner = choose.choice(["sum", "min", "max", "avg"]) + f"(parts__{choose.choice(['price', 'weight'])})"
        outer = choose.choice([f"avg({inner})", f"max({inner})", inner, "sum(count(parts))"])
        where = {"parts": choose.choice([{"status": "released"}, {"price__gt": "1"}])}
        measure = choose.choice([outer, {"formula": outer, "where": where}])
        manager = choose.choice(["SupplierManager", "MaterialManager", "TagManager"])
        return {"manager": manager, "group_by": choose.choice([[], ["name"]]), "measures": {"m": measure}}
    groups = choose.sample(
        ["status", "purchased", "supplier__country", "material__name", "released_on__quarter", "created_at__weekday"],
        choose.randint(0, 2),
    )
    number = choose.choice(
        ["price", "weight", "price * weight", "weight - 1.5", "supplier__rating", "2 * price + weight"]
    )
    formula = choose.choice(["sum({})", "avg({})", "min({})", "max({})", "median({})", "sum({}) / count()"])
    measures: dict[str, Any] = {"n": "count()", "m": formula.format(number)}
    if choose.random() < 0.4:
        filters = choose.choice([{"purchased": True}, {"supplier__rating__lt": 3}, {"weight__lt": {"field": "price"}}])
        measures["some"] = {"formula": choose.choice(["count()", "sum(price)"]), "where": filters}
    args: dict[str, Any] = {"manager": "PartManager", "group_by": groups, "measures": measures}
    if groups:
        if choose.random() < 0.5:
            measures["across"] = choose.choice(["rank(n)", "share(n)", f"running(n, {groups[0]})", "2 * share(m) + n"])
            if measures["across"].startswith("running") and len(groups) == 1:
                measures["across"] = "running(n)"
        args["order_by"] = [choose.choice(["-n", "m", "-m"])]
        args["limit"] = choose.choice([2, 200])
        if choose.random() < 0.5:
            args["having"] = choose.choice([{"n__gt": 1}, {"m__isnull": False}, {"or": [{"n": 1}, {"m__gte": 2}]}])
    if choose.random() < 0.5:
        args["filters"] = choose.choice(
            [{"price__isnull": False}, {"tags__name": "tag 1"}, {"status__in": ["released", "draft"]}, {"name": "none"}]
        )
    return args


def equal(one: Any, other: Any) -> bool:
    """Whether two results are the same; SQLite computes decimals in binary."""
    if isinstance(one, dict):
        return list(one) == list(other) and all(equal(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    try:
        return math.isclose(float(one), float(other), rel_tol=1e-9, abs_tol=1e-9)
    except (TypeError, ValueError):
        return bool(one == other)


@pytest.mark.parametrize("library", LIBRARIES)
def test_decimals_are_added_up_exactly(library: str, users: dict[str, Any]) -> None:
    models.Part.objects.all().update(price="0.10")
    desk = Desk(graphql_source(library), actor_of(users["staff"]))
    (row,) = desk.compute("PartManager", measures={"sum": "sum(price * price)", "n": "count()"}).data
    assert row["sum"] == f"{row['n'] // 100}.{row['n'] % 100:02}00"


@pytest.mark.parametrize("library", [name for name in LIBRARIES if name != "graphene"])  # its list has no pages
def test_never_a_part_of_the_rows(library: str, users: dict[str, Any]) -> None:
    desk = Desk(graphql_source(library, max_rows=10, page_size=5), actor_of(users["staff"]))
    with pytest.raises(ToolError, match="more than 10 rows of PartManager") as refused:
        desk.compute("PartManager", measures={"n": "count()"})
    assert refused.value.code == "too_large"
    (row,) = desk.compute("PartManager", measures={"n": "count()"}, filters={"name__icontains": "quote"}).data
    assert 0 < row["n"] < 10


def test_nor_of_a_nested_list(users: dict[str, Any]) -> None:
    pytest.importorskip("strawberry_django")
    first = models.Material.objects.order_by("pk")[0]
    for number in range(120):
        models.Part.objects.create(number=f"Q-{number}", name="one of many", material=first)
    desk = Desk(graphql_source("strawberry"), actor_of(users["staff"]))
    with pytest.raises(ToolError, match="aggregate the related manager instead") as refused:
        desk.compute("MaterialManager", measures={"mean": "avg(count(parts))"})
    assert refused.value.code == "unsupported"
    assert len(desk.compute("PartManager", group_by=["material__name"], measures={"n": "count()"}).data) > 1


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_budget_of_bytes(library: str, users: dict[str, Any]) -> None:
    desk = Desk(graphql_source(library), actor_of(users["staff"]))
    page = desk.compute("PartManager", group_by=["number"], measures={"n": "count()"}, max_bytes=200)
    assert page.truncated
    assert page.has_more
    assert 0 < len(page.data) < 10
