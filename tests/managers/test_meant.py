from __future__ import annotations

from typing import Any

import pytest
from testproject.desk import Desk, actor_of
from testproject.shop_rows import fill_shop

from gm_chat.managers import meant as module
from gm_chat.managers import registry
from gm_chat.managers.aggregate import build_aggregate
from gm_chat.managers.api import FieldInfo, ManagerInfo, ManagerVisibility, RelationInfo, Visibility
from gm_chat.managers.index import MaskedView, SchemaIndex
from gm_chat.managers.plan import build_plan
from gm_chat.plugin import ToolError


@pytest.fixture
def desk(db: None) -> Desk:
    return Desk(registry.bindings(), actor_of(fill_shop(parts=3)["staff"]))


def refused(desk: Desk, build: Any = build_plan, **arguments: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        build(arguments, desk.view, max_results=10)
    return caught.value


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ({"fields": ["part__name"]}, '"name"'),
        ({"fields": ["PartManager__material__name"]}, '"material__name"'),
        ({"fields": ["name__icontains"]}, '"name"'),
        ({"fields": ["density"]}, '"material__density"'),
        ({"fields": [{"supplier": ["density"]}]}, None),
        ({"fields": ["name"], "filters": {"density__gt": 2}}, '"material__density__gt"'),
        ({"fields": ["name"], "filters": {"or": [{"density": 2}]}}, '"material__density"'),
        ({"fields": ["name"], "order_by": ["-density"]}, '"material__density"'),
        ({"fields": ["nonsense"]}, None),
        ({"fields": ["nonsense__name"]}, None),
    ],
)
def test_where_a_name_lies_is_proposed(desk: Desk, arguments: dict[str, Any], meant: str | None) -> None:
    error = refused(desk, manager="PartManager", **arguments)
    assert error.code.startswith("unknown_")
    assert error.message.endswith(f"; did you mean {meant}?") if meant else "mean" not in error.message
    assert error.details["allowed"]


@pytest.mark.parametrize(
    ("manager", "meant"),
    [
        ("SupplierPartManager", "PartManager"),
        ("supplier_parts", "PartManager"),
        ("components", "PartManager"),
        ("all purchased components", "PartManager"),
        ("PartSupplyManager", None),
        ("", None),
        ("Manager", None),
        ("part" * 10_000, None),
    ],
)
def test_a_manager_is_known_by_the_end_of_its_name(desk: Desk, manager: str, meant: str | None) -> None:
    error = refused(desk, manager=manager, fields=["number"])
    assert error.code == "unknown_manager"
    assert error.message.endswith(f'; did you mean "{meant}"?') if meant else "mean" not in error.message
    corrected = {"manager": meant, "fields": ["number"]} if meant else None
    assert (error.details.get("corrected"), bool(error.details["allowed"])) == (corrected, True)


def test_a_manager_and_a_field_can_be_wrong_together(desk: Desk) -> None:
    error = refused(desk, manager="SupplierPartManager", fields=["density"])
    assert error.details["corrected"] == {"manager": "PartManager", "fields": ["material__density"]}


def test_of_two_managers_of_a_name_neither_is_proposed() -> None:
    managers = [
        ManagerInfo(name=f"{name}Manager", description="", aliases=("thing",), fields=()) for name in ("Part", "Tool")
    ]
    seen = {manager.name: ManagerVisibility(frozenset(), frozenset(), frozenset()) for manager in managers}
    view = MaskedView(SchemaIndex.build(managers), Visibility("all", seen))
    assert module.manager_meant("SomeThing", view) is None
    assert module.manager_meant("SomeTool", view) == "ToolManager"


@pytest.mark.parametrize(
    ("filters", "meant"),
    [
        ({"status": "Running"}, None),
        ({"status__in": ["Running"]}, None),
        ({"status": "Released"}, '"parts__status"'),
        ({"status": "relased"}, '"parts__status"'),
        ({"price__gt": "dear"}, '"parts__price__gt"'),
        ({"price__gt": "5"}, '"parts__price__gt"'),
        ({"price__gt": 5, "name__icontains": 7}, '"parts__price__gt"'),
        ({"price__gt": 5, "density__gt": "light"}, '"parts__price__gt"'),
    ],
)
def test_a_field_that_cannot_have_the_value_is_not_proposed(
    desk: Desk, filters: dict[str, Any], meant: str | None
) -> None:
    error = refused(desk, manager="MaterialManager", fields=["name"], filters=filters)
    assert error.message.endswith(f"; did you mean {meant}?") if meant else "mean" not in error.message


def test_what_is_proposed_can_be_typed(desk: Desk) -> None:
    proposed = refused(desk, manager="PartManager", fields=["density"]).message.split('"')[1]
    assert build_plan({"manager": "PartManager", "fields": [proposed]}, desk.view, max_results=10).manager


@pytest.mark.parametrize("arguments", [{"measures": "avg(density)"}, {"measures": "count()", "group_by": ["density"]}])
def test_for_aggregates_too(desk: Desk, arguments: dict[str, Any]) -> None:
    error = refused(desk, build_aggregate, manager="PartManager", **arguments)
    assert error.message.endswith('; did you mean "material__density"?')


@pytest.mark.parametrize(
    ("arguments", "corrected"),
    [
        ({"fields": ["name", "density"]}, {"fields": ["name", "material__density"]}),
        (
            {"fields": ["density", "part__name", "material__id"]},
            {"fields": ["material__density", "name", "material__id"]},
        ),
        ({"fields": ["density", "nonsense"]}, {"fields": ["material__density"]}),
        ({"fields": ["nonsense"], "filters": {"name": "nonsense"}}, {"fields": ["*"], "filters": {"name": "nonsense"}}),
        ({"fields": ["material__nonsense", "name"]}, {"fields": ["name"]}),
        ({"fields": ["nonsense", "name"], "filters": {"nonsense": 1}}, None),
        ({"fields": ["nonsense", "name"], "order_by": ["-nonsense"]}, None),
        ({"fields": ["nonsense", {"supplier": ["name"]}]}, None),
        ({"fields": ["density"], "limit": 0}, {"fields": ["material__density"], "limit": 10}),
        (
            {"fields": ["name"], "filters": {"or": [{"density__gt": 2}, {"name": "density"}]}},
            {"fields": ["name"], "filters": {"or": [{"material__density__gt": 2}, {"name": "density"}]}},
        ),
        ({"fields": ["name"], "order_by": ["-density"]}, {"fields": ["name"], "order_by": ["-material__density"]}),
        ({"fields": ["name"], "order_by": ["weight__desc"]}, {"fields": ["name"], "order_by": ["-weight"]}),
        ({"fields": ["name"], "order_by": ["weight DESC"]}, {"fields": ["name"], "order_by": ["-weight"]}),
        ({"fields": ["name"], "order_by": "weight asc"}, {"fields": ["name"], "order_by": "weight"}),
        ({"fields": ["name"], "order_by": ["density__desc"]}, {"fields": ["name"], "order_by": ["-material__density"]}),
        ({"fields": ["name"], "order_by": ["-weight__desc"]}, None),
        ({"fields": ["name"], "filters": {"weight__gt": "5"}}, {"fields": ["name"], "filters": {"weight__gt": 5}}),
        ({"fields": ["name"], "filters": {"name": 5}}, {"fields": ["name"], "filters": {"name": "5"}}),
        (
            {"fields": ["name"], "filters": {"material__density__in": ["2.7", 3]}, "limit": "5"},
            {"fields": ["name"], "filters": {"material__density__in": [2.7, 3]}, "limit": 5},
        ),
        (
            {"fields": ["name"], "filters": {"created_at__icontains": "2024-05", "weight__iexact": "2"}},
            {"fields": ["name"], "filters": {"created_at": "2024-05", "weight": 2}},
        ),
        ({"fields": ["name"], "filters": {"weight__icontains": 2}}, None),
        ({"fields": ["name"], "order_by": ["density"], "filters": {"name__in": ["x" * 600] * 2}}, None),
    ],
)
def test_the_call_is_shown_as_it_would_be_right(
    desk: Desk, arguments: dict[str, Any], corrected: dict[str, Any] | None
) -> None:
    shown = refused(desk, manager="PartManager", **arguments).details.get("corrected")
    assert shown == (corrected and {"manager": "PartManager", **corrected})
    if shown is not None:
        assert build_plan(shown, desk.view, max_results=10).manager == "PartManager"


def test_an_aggregate_is_shown_as_it_would_be_right(desk: Desk) -> None:
    wrong = {"measures": {"density": "avg(density * price)", "n": {"formula": "count()", "where": {"density__gt": 1}}}}
    error = refused(desk, build_aggregate, manager="PartManager", **wrong)
    assert error.details["corrected"]["measures"] == {
        "density": "avg(material__density * price)",
        "n": {"formula": "count()", "where": {"material__density__gt": 1}},
    }
    assert build_aggregate(error.details["corrected"], desk.view, max_results=10).manager == "PartManager"


def test_a_lookup_is_taken_off_a_group_but_not_off_a_filter(desk: Desk) -> None:
    arguments = {
        "manager": "PartManager",
        "measures": {"n": "count()"},
        "filters": {"weight__lt": 100},
        "group_by": ["weight__lt"],
    }
    corrected = refused(desk, build_aggregate, **arguments).details["corrected"]
    assert corrected == arguments | {"group_by": ["weight"]}


@pytest.mark.parametrize(
    ("filters", "meant"),
    [
        ({"price__gt": "weight"}, {"price__gt": {"field": "weight"}}),
        ({"price__gt": {"PartManager": "Weight"}}, {"price__gt": {"field": "weight"}}),
        ({"price__gt": "material__density"}, {"price__gt": {"field": "material__density"}}),
        ({"price__gt": {"material__density": 2.7}}, {"price__gt": {"field": "material__density"}}),
        ({"price__gt": {"weight": None}}, {"price__gt": {"field": "weight"}}),
        ({"price__gt": {"status": None}}, None),
        ({"price__gt": "status"}, None),
        ({"price__gt": {"a": "weight", "b": "price"}}, None),
        ({"price__gt": {"a": 1}}, None),
    ],
)
def test_a_field_as_a_value_is_shown_as_a_reference(
    desk: Desk, filters: dict[str, Any], meant: dict[str, Any] | None
) -> None:
    error = refused(desk, manager="PartManager", fields=["name"], filters=filters)
    corrected = {"manager": "PartManager", "fields": ["name"], "filters": meant} if meant else None
    assert (error.details.get("corrected"), "write {" in error.message) == (corrected, bool(meant))


def test_dates_are_found_by_what_they_are(desk: Desk) -> None:
    error = refused(desk, manager="AnnouncementManager", fields=["id"], filters={"DATE__gte": "2025-05"})
    assert error.details["corrected"]["filters"] == {"published_on__gte": "2025-05"}
    args = {"measures": "count()", "group_by": ["announcements__announcement__month"]}
    error = refused(desk, build_aggregate, manager="AnnouncementManager", **args)
    assert error.details["corrected"]["group_by"] == ["published_on__month"]


def test_of_two_dates_neither_is_chosen_for_the_asker(desk: Desk) -> None:
    error = refused(desk, manager="OrderManager", fields=["id"], filters={"DATE__gte": "2025-05"})
    assert error.message.endswith('; did you mean "ordered_at__gte" or "due_on__gte"?')
    assert "corrected" not in error.details


def test_a_field_that_lies_near_comes_before_a_part_of_a_date() -> None:
    car = ManagerInfo(name="CarManager", description="", fields=(FieldInfo(name="year", type="integer"),))
    sale = ManagerInfo(
        name="SaleManager",
        description="",
        fields=(FieldInfo(name="sold_on", type="date"),),
        relations=(RelationInfo(name="car", target="CarManager", many=False),),
    )
    seen = {
        "CarManager": ManagerVisibility(frozenset({"year"}), frozenset(), frozenset()),
        "SaleManager": ManagerVisibility(frozenset({"sold_on"}), frozenset({"car"}), frozenset()),
    }
    view = MaskedView(SchemaIndex.build([car, sale]), Visibility("all", seen))
    with pytest.raises(ToolError, match=r'did you mean "car__year" or "sold_on__year"\?') as caught:
        build_plan({"manager": "SaleManager", "fields": ["year"]}, view, max_results=10)
    assert caught.value.details["corrected"]["fields"] == ["car__year", "sold_on"]
    with pytest.raises(ToolError) as caught:
        build_plan({"manager": "SaleManager", "fields": ["sold_on"], "filters": {"year": 2024}}, view, max_results=10)
    assert "corrected" not in caught.value.details


def test_there_are_only_so_many_proposals(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 1)
    crowded = 0
    for info in desk.view:
        targets = [target for relation in info.relations if (target := desk.view.get(relation.target)) is not None]
        own = {item.name for item in (*info.fields, *info.relations)}
        for name in {field.name for target in targets for field in target.fields} - own - {"id"}:
            places = sum(name in {field.name for field in target.fields} for target in targets)
            message = refused(desk, manager=info.name, fields=[name]).message
            assert message.count('"') == 2
            crowded += places > 1
    assert crowded, "no field lies behind so many relations that proposals are left out"


def test_many_rows_are_sent_to_aggregate(desk: Desk) -> None:
    relation = next(
        item.name for item in desk.bindings["MaterialManager"].info.relations if item.target == "PartManager"
    )
    error = refused(desk, manager="MaterialManager", fields=["name"], order_by=[f"-{relation}__price"])
    assert error.message.endswith(f"aggregate computes one of them, such as max({relation}__price)")
