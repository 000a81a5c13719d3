"""Pages that are made of kept frames are those that Django composes whole."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connections, models
from django.db.models.sql.compiler import SQLCompiler
from testproject.desk import Desk, actor_of
from testproject.shop import models as shop
from testproject.shop_rows import fill_shop

from gm_chat.managers import registry, statements
from gm_chat.managers.executor import execute_plan
from gm_chat.managers.plan import build_plan
from gm_chat.managers.statements import Matching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.django_db


class Composed:
    """How many statements Django composed."""

    count = 0


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch) -> Composed:
    counter, whole = Composed(), SQLCompiler.as_sql

    def as_sql(self: Any, *args: Any, **kwargs: Any) -> Any:
        counter.count += 1
        return whole(self, *args, **kwargs)

    monkeypatch.setattr(SQLCompiler, "as_sql", as_sql)
    return counter


@pytest.fixture(autouse=True)
def no_frames() -> Iterator[None]:
    vars(connections["default"]).pop("gm_chat_frames", None)
    yield
    vars(connections["default"]).pop("gm_chat_frames", None)


@pytest.fixture
def users() -> dict[str, Any]:
    made = fill_shop()
    made["plain"].user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    return made


@pytest.fixture
def staff(users: dict[str, Any]) -> Desk:
    return Desk(registry.bindings(), actor_of(users["staff"]))


def changed(desk: Desk, manager: str, visible_to: Callable[..., Any]) -> Desk:
    return Desk({**desk.bindings, manager: replace(desk.bindings[manager], visible_to=visible_to)}, desk.actor)


def test_a_page_of_the_same_frame_is_not_composed_again(staff: Desk, composed: Composed) -> None:
    fields = ["number", "price", "created_at", "material__name", "supplier__name"]
    args: dict[str, Any] = {"order_by": ["-supplier__rating", "name"], "limit": 5}
    first = staff.ask("PartManager", fields, filters={"price__gte": "3.00"}, **args)
    assert composed.count == 1  # the page; the count needs none
    composed.count = 0
    second = staff.ask(
        "PartManager", fields, filters={"number__in": ["P-001", "P-002"], "name__icontains": "p"}, **args
    )
    assert composed.count == 0
    assert {row["number"] for row in second.data} <= {"P-001", "P-002"}
    assert first.total_count > 5 == len(first.data)
    staff.ask("PartManager", fields, **args)
    assert composed.count == 1  # no WHERE is another frame than any


FILTERS: list[dict[str, Any] | None] = [
    None,
    {},
    {"name__icontains": "%"},
    {"name__contains": "%s"},
    {"price__gt": "12.345"},
    {"price": None},
    {"number__in": []},
    {"not": {"number__in": []}},
    {"number__in": ["P-001", "P-003"]},
    {"released_on__year": 2024},
    {"created_at__date": "2024-01-01"},
    {"created_at__gte": "2001-01-01"},
    {"material": {"name__icontains": "1"}, "supplier": None},
    {"material__name": "material 1", "or": [{"supplier__rating__gte": 2}, {"tags__name": "tag 1"}]},
    {"not": {"order_lines__quantity__gt": 2}},
]


def test_frames_change_nothing(staff: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page is asked for with frames of the pages before it, and without any."""
    selections: list[list[Any]] = [
        ["*"],
        ["id", "price", "material__density"],
        ["supplier__*", "number"],
        ["gross"],
    ]
    orders: list[list[str]] = [[], ["price"], ["-supplier__name", "-id"], ["material__name"]]
    view = staff.view
    plans = [
        build_plan(
            {
                "manager": "PartManager",
                "fields": fields,
                "filters": where,
                "order_by": order,
                "limit": 4,
                "offset": offset,
            },
            view,
            max_results=200,
        )
        for fields in selections
        for order in orders
        for where in FILTERS
        for offset in (0, 3)
    ]
    framed = [execute_plan(plan, staff.bindings, staff.actor) for plan in plans]
    assert len(vars(connections["default"])["gm_chat_frames"]) == 2 * len(selections) * len(orders) * 2
    monkeypatch.setattr(statements, "_is_bare", lambda rows: False)
    assert framed == [execute_plan(plan, staff.bindings, staff.actor) for plan in plans]
    assert len({page.total_count for page in framed}) > 5


def test_rights_stand_in_no_frame(users: dict[str, Any], composed: Composed) -> None:
    shop.Order.objects.filter(number__endswith="1").update(owner=users["plain"])
    known = registry.bindings()
    seen = {}
    for name in ("staff", "plain"):
        page = Desk(known, actor_of(users[name])).ask("OrderManager", ["number"], limit=100)
        seen[name] = {row["number"] for row in page.data}
    assert seen["plain"] == set(users["plain"].order_set.values_list("number", flat=True))
    assert 0 < len(seen["plain"]) < len(seen["staff"])
    shop.Order.objects.update(owner=None)
    composed.count = 0
    assert Desk(known, actor_of(users["plain"])).ask("OrderManager", ["number"], limit=100).data == []
    assert composed.count == 0  # the frame is there, and says nothing of whose rows they are


def test_hidden_targets_are_masked_after_open_ones(staff: Desk) -> None:
    args: dict[str, Any] = {"fields": ["number", "material__name"], "order_by": ["material__name"], "limit": 100}
    opened = staff.ask("PartManager", **args)
    hiding = changed(staff, "MaterialManager", lambda rows, actor: rows.filter(name="material 1"))
    masked = hiding.ask("PartManager", **args)
    assert {(row["material"] or {}).get("name") for row in masked.data} == {"material 1", None}
    assert [row["number"] for row in masked.data] != [row["number"] for row in opened.data]
    assert staff.ask("PartManager", **args) == opened


class Backwards(models.QuerySet[Any]):
    """A project's own kind of queryset."""

    def order_by(self, *names: Any) -> Any:
        return super().order_by(*(f"-{name}" for name in names))


def test_querysets_of_other_kinds_keep_their_ways(staff: Desk) -> None:
    """A rule may return any queryset of its model; what a frame would not say of it is composed by Django."""
    expected = [row["number"] for row in staff.ask("PartManager", ["number"]).data]
    rules: list[Callable[..., Any]] = [
        lambda rows, actor: rows.reverse(),
        lambda rows, actor: Backwards(rows.model),
    ]
    for rule in rules:
        other = changed(staff, "PartManager", rule)
        assert [row["number"] for row in other.ask("PartManager", ["number"]).data] == expected[::-1]
    assert [row["number"] for row in staff.ask("PartManager", ["number"]).data] == expected


def test_a_frame_is_of_one_model_and_one_window(staff: Desk) -> None:
    for manager in ("TagManager", "MaterialManager", "SupplierManager"):
        for limit, offset in ((2, 0), (2, 2), (3, 2), (200, 0)):
            rows = staff.bindings[manager].model._default_manager.order_by("pk").values_list("name", flat=True)
            page = staff.ask(manager, ["name"], limit=limit, offset=offset)
            assert [row["name"] for row in page.data] == list(rows[offset : offset + limit])
            assert page.total_count == rows.count()


def test_conditions_over_a_join_are_composed_whole(staff: Desk) -> None:
    rows = shop.Order.objects.filter(owner__username="staff").order_by()
    whole = rows.order_by("pk").values_list("pk")
    found = Matching(rows)
    assert found.count() == rows.count() > 0
    assert found.page("frame", lambda: whole) == list(whole)
    assert "gm_chat_frames" not in vars(connections["default"])


def test_a_frame_that_turns_out_to_hold_values_is_none(staff: Desk) -> None:
    rows = shop.Part.objects.filter(price__gt=Decimal("0.99")).order_by()
    for dear in (Decimal(1), Decimal(100)):
        whole = rows.order_by("pk").annotate(dear=models.Q(price__gt=dear)).values_list("pk", "dear")
        assert Matching(rows).page("frame", lambda whole=whole: whole) == list(whole)


def test_a_connection_keeps_a_bounded_number(staff: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "_KEPT", 3)
    for limit in range(1, 9):
        assert len(staff.ask("TagManager", ["name"], limit=limit).data) == min(limit, shop.Tag.objects.count())
        assert len(vars(connections["default"])["gm_chat_frames"]) <= 3
