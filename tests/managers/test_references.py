from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone
from testproject.desk import Desk, actor_of, whole_view
from testproject.shop import models as shop
from testproject.shop_rows import fill_shop

from gm_chat.managers import registry
from gm_chat.managers.api import And, Condition, FieldReference
from gm_chat.managers.filters import FilterLimits, parse_filters
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

VIEW = whole_view()


@pytest.fixture
def desk(db: None) -> Iterator[Desk]:
    users = fill_shop()
    with timezone.override("UTC"):
        yield Desk(registry.bindings(), actor_of(users["staff"]))


def parse(filters: Any, manager: str = "OrderManager") -> And:
    info = VIEW.get(manager)
    assert info is not None
    return parse_filters(filters, info, VIEW, FilterLimits())


def test_what_is_read() -> None:
    assert parse({"due_on__lt": {"field": "orderedAt", "plus": "2 weeks"}}) == And(
        (Condition(("due_on",), "lt", FieldReference(("ordered_at",), "datetime", None, (14, "day"))),)
    )
    assert parse({"quantity": {"field": "part__material__id"}}, "OrderLineManager") == And(
        (Condition(("quantity",), "exact", FieldReference(("part", "material", "id"), "integer")),)
    )
    assert parse({"due_on__month": {"field": "ordered_at__month", "plus": "-1 quarter"}}) == And(
        (Condition(("due_on",), "month", FieldReference(("ordered_at",), "datetime", "month", (-3, "month"))),)
    )


@pytest.mark.parametrize(
    ("manager", "filters", "said"),
    [
        ("OrderManager", {"due_on__icontains": {"field": "number"}}, "no lookup"),
        ("OrderManager", {"number__icontains": {"field": "customer"}}, "cannot be asked of two fields"),
        ("OrderManager", {"due_on": {"field": 3}}, 'expected {"field": "name"}'),
        ("OrderManager", {"due_on": {"field": "nothing"}}, "no field 'nothing'"),
        ("OrderManager", {"due_on": {"field": "number"}}, "a date cannot be compared with the string"),
        ("OrderManager", {"due_on": {"field": "lines__quantity"}}, "holds many rows"),
        ("OrderManager", {"due_on__month": {"field": "ordered_at"}}, "month compares with a month"),
        ("OrderManager", {"due_on": {"field": "ordered_at", "plus": "a while"}}, "plus takes a time"),
        ("OrderManager", {"number": {"field": "customer", "plus": "1 day"}}, "plus takes a time"),
        ("PartManager", {"created_at": {"field": "released_on", "plus": "1 hour"}}, "not hours"),
    ],
)
def test_mistakes(manager: str, filters: dict[str, Any], said: str) -> None:
    with pytest.raises(ToolError) as caught:
        parse(filters, manager)
    assert said in str(caught.value)


def matching(desk: Desk, manager: str, **filters: Any) -> set[Any]:
    return {row["id"] for row in desk.ask(manager, ["id"], filters=filters).data}


def test_fields_compare_in_the_database(desk: Desk) -> None:
    expected = {line.pk for line in shop.OrderLine.objects.all() if line.quantity > line.unit_price}
    assert expected
    assert matching(desk, "OrderLineManager", quantity__gt={"field": "unit_price"}) == expected


def test_null_compares_with_nothing_and_its_negation_holds(desk: Desk) -> None:
    shop.Order.objects.update(due_on=None)
    reference = {"due_on__gte": {"field": "ordered_at"}}
    assert matching(desk, "OrderManager", **reference) == set()
    assert len(matching(desk, "OrderManager", **{"not": reference})) == shop.Order.objects.count()
    other_way = {"ordered_at__gte": {"field": "due_on"}}
    assert len(matching(desk, "OrderManager", **{"not": other_way})) == shop.Order.objects.count()


@pytest.mark.parametrize(
    ("ordered", "plus", "due"),
    [
        ("2024-01-31T10:00:00.5+00:00", "1 month", "2024-02-29"),
        ("2024-02-29T10:00:00+00:00", "1 year", "2025-02-28"),
        ("2024-03-31T00:00:00+00:00", "-1 month", "2024-02-29"),
        ("2024-01-31T23:00:00+00:00", "2 hours", "2024-02-01"),
        ("2024-01-31T23:00:00+00:00", "-31 days", "2023-12-31"),
    ],
)
def test_times_are_added(desk: Desk, ordered: str, plus: str, due: str) -> None:
    order = shop.Order.objects.order_by("pk").first()
    assert order is not None
    shop.Order.objects.exclude(pk=order.pk).update(due_on=None)
    shop.Order.objects.filter(pk=order.pk).update(ordered_at=ordered, due_on=due)
    assert matching(desk, "OrderManager", due_on={"field": "ordered_at", "plus": plus}) == {order.pk}
    earlier = {"field": "ordered_at", "plus": f"{plus}"}
    assert matching(desk, "OrderManager", due_on__gt=earlier) == set()


def test_moments_keep_their_fractions(desk: Desk) -> None:
    part = shop.Part.objects.order_by("pk").first()
    assert part is not None
    shop.Part.objects.filter(pk=part.pk).update(created_at="2024-01-31T10:00:00.123456Z")
    same = {"field": "created_at", "plus": "0 days"}
    assert part.pk in matching(desk, "PartManager", created_at=same)
    assert part.pk in matching(desk, "PartManager", created_at__lt={"field": "created_at", "plus": "1 second"})


@pytest.mark.parametrize(
    ("filters", "takes_days"),
    [
        ({"due_on__lt": {"field": "ordered_at"}}, True),
        ({"ordered_at__lt": {"field": "due_on"}}, True),
        ({"due_on__month": {"field": "ordered_at__month"}}, True),
        ({"ordered_at__month": {"field": "due_on__month"}}, True),
        ({"ordered_at__lt": {"field": "ordered_at"}}, False),
        ({"due_on__lt": {"field": "due_on", "plus": "1 day"}}, False),
    ],
)
def test_the_day_of_a_moment_needs_the_database_to_know_time_zones(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, filters: dict[str, Any], takes_days: bool
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("gm_chat.managers.rows.require_time_zones", lambda connection: asked.append(connection.alias))
    matching(desk, "OrderManager", **filters)
    assert bool(asked) is takes_days
