from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.fields import GenericRelation
from django.contrib.contenttypes.models import ContentType
from django.db import connection, models
from django.test.utils import CaptureQueriesContext, isolate_apps
from testproject.desk import Desk, actor_of
from testproject.shop import models as shop
from testproject.shop_rows import fill_shop

from gm_chat.managers import expose, registry
from gm_chat.managers.aggregate import build_aggregate
from gm_chat.managers.aggregation import execute_aggregate
from gm_chat.managers.api import And, Condition, QueryPlan, RelationSelection, Selection
from gm_chat.managers.binding import ComputedField
from gm_chat.managers.describe import describe
from gm_chat.managers.executor import execute_plan
from gm_chat.managers.plan import PlanLimits
from gm_chat.plugin import Actor, ToolError

if TYPE_CHECKING:
    from gm_chat.managers.binding import Binding

pytestmark = pytest.mark.django_db


@pytest.fixture
def users() -> dict[str, Any]:
    made = fill_shop()
    made["plain"].user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    return made


@pytest.fixture
def staff(users: dict[str, Any]) -> Desk:
    return Desk(registry.bindings(), actor_of(users["staff"]))


@pytest.fixture
def plain(users: dict[str, Any]) -> Desk:
    return Desk(registry.bindings(), actor_of(users["plain"]))


def changed(desk: Desk, manager: str, **changes: Any) -> Desk:
    binding: Binding = replace(desk.bindings[manager], **changes)
    return Desk({**desk.bindings, manager: binding}, desk.actor)


# --- statements -------------------------------------------------------------------------------------------------

DEEP: list[Any] = ["name", {"parts": ["name", "supplier__name", {"order_lines": ["quantity", "order__customer"]}]}]


def test_statements_do_not_grow_with_rows(staff: Desk) -> None:
    """Depth 3: materials, their parts, their order lines, with to-one relations at each level."""
    args: dict[str, Any] = {"order_by": ["name"], "filters": {"parts__isnull": False}}
    few = staff.statements("MaterialManager", DEEP, limit=1, **args)
    many = staff.statements("MaterialManager", DEEP, limit=200, **args)
    assert few == 4  # one for each of three levels, and the count that one row of many cannot prove
    assert many == 3
    material = shop.Material.objects.create(name="again", density=1)
    for number in range(150):
        part = shop.Part.objects.create(number=f"X-{number}", name="x", material=material)
        order = shop.Order.objects.first()
        assert order is not None
        shop.OrderLine.objects.bulk_create(
            [shop.OrderLine(order=order, part=part, quantity=1, unit_price=1) for _ in range(3)]
        )
    assert staff.statements("MaterialManager", DEEP, limit=200, **args) == many


def test_every_kind_of_relation_costs_one_statement_or_none(staff: Desk) -> None:
    single = ["material__name", "supplier__name", "specification__text"]
    assert staff.statements("PartManager", ["name", *single]) == 1
    lists = [{name: ["*"]} for name in ("tags", "order_lines", "documents", "remarks", "projects")]
    assert staff.statements("PartManager", ["name", *single, *lists]) == 1 + len(lists)


def test_computed_fields_cost_one_statement_for_each_manager(staff: Desk) -> None:
    assert staff.statements("PartManager", ["gross"]) == 2
    assert staff.statements("MaterialManager", ["name", {"parts": ["gross"]}]) == 3
    assert staff.statements("OrderLineManager", ["part__gross"]) == 2


def test_a_page_that_proves_the_total_is_not_counted(staff: Desk) -> None:
    assert staff.statements("PartManager", ["id"], limit=40) == 1
    assert staff.statements("PartManager", ["id"], limit=39) == 2
    assert staff.statements("PartManager", ["id"], limit=10, offset=35) == 1
    assert staff.statements("PartManager", ["id"], limit=10, offset=40) == 2


def test_masks_cost_no_statement(plain: Desk) -> None:
    hiding = changed(plain, "MaterialManager", visible_to=lambda rows, actor: rows.filter(name="material 1"))
    assert hiding.statements("PartManager", ["name", "material__name"], order_by=["material__name"]) == 1


# --- pages ------------------------------------------------------------------------------------------------------


def test_an_offset_past_the_end_is_an_empty_page_with_the_true_total(staff: Desk) -> None:
    page = staff.ask("PartManager", ["name"], offset=1_000)
    assert (page.data, page.total_count, page.has_more) == ([], 40, False)
    page = staff.ask("PartManager", ["name"], filters={"name": "no such part"}, offset=5)
    assert (page.data, page.total_count, page.has_more) == ([], 0, False)


def test_pages_join_without_gap_or_overlap(staff: Desk) -> None:
    whole = [row["id"] for row in staff.ask("PartManager", ["id"], order_by=["-status"]).data]
    pages = [
        row["id"]
        for offset in range(0, 40, 7)
        for row in staff.ask("PartManager", ["id"], order_by=["-status"], limit=7, offset=offset).data
    ]
    assert pages == whole
    assert sorted(whole) == sorted(shop.Part.objects.values_list("pk", flat=True))


def test_nulls_come_last_both_ways(staff: Desk) -> None:
    for order in ("price", "-price", "supplier__rating", "-supplier__rating"):
        rows = staff.ask("PartManager", ["price", "supplier__rating"], order_by=[order]).data
        keys = [(row["supplier"] or {}).get("rating") if "__" in order else row["price"] for row in rows]
        known = [key for key in keys if key is not None]
        assert keys == known + [None] * (len(keys) - len(known))


def test_whole_rows_are_dropped_at_the_byte_budget(staff: Desk) -> None:
    material = shop.Material.objects.create(name="heavy", density=1)
    for number in range(200):
        shop.Part.objects.create(number=f"H-{number}", name="h", description="x" * 5_000, material=material)
    heavy: dict[str, Any] = {"filters": {"name": "h"}, "limit": 100_000}
    page = staff.ask("PartManager", ["number", "description"], max_bytes=50_000, **heavy)
    assert page.truncated
    assert page.has_more
    assert page.total_count == 200
    assert [row["number"] for row in page.data] == [f"H-{number}" for number in range(9)]
    assert all(len(row["description"]) == 5_000 for row in page.data)
    following = staff.ask("PartManager", ["number"], offset=len(page.data), **heavy)
    assert following.data[0]["number"] == "H-9"
    nothing = staff.ask("PartManager", ["description"], max_bytes=100, **heavy)
    assert (nothing.data, nothing.truncated, nothing.has_more) == ([], True, True)


def test_nested_lists_are_cut_in_sql_and_named(staff: Desk) -> None:
    limits = PlanLimits(list_rows=3)
    page = staff.ask("MaterialManager", ["id", {"parts": ["id", {"tags": ["id"]}]}], limits=limits)
    for row in page.data:
        own = shop.Part.objects.filter(material_id=row["id"]).order_by("pk").values_list("pk", flat=True)
        assert [part["id"] for part in row["parts"]] == list(own[:3])
    assert page.cut_lists == (("parts",),)
    assert staff.ask("MaterialManager", ["id", {"parts": ["id"]}]).cut_lists == ()


def test_many_parents_share_the_row_budget(staff: Desk) -> None:
    fields = ["id", {"parts": ["id", {"tags": ["id"]}]}]
    page = staff.ask("MaterialManager", fields, limits=PlanLimits(nested_rows=10))
    assert [len(row["parts"]) for row in page.data] == [2] * 5  # 5 parents; then 10 parents with a tag each
    assert all(len(part["tags"]) <= 1 for row in page.data for part in row["parts"])
    assert page.cut_lists == (("parts",), ("parts", "tags"))
    assert staff.statements("MaterialManager", fields, limits=PlanLimits(nested_rows=10)) == 3


def test_a_row_joined_twice_is_listed_once(staff: Desk) -> None:
    project, part = shop.Project.objects.create(code="twice", name="t"), shop.Part.objects.first()
    assert part is not None
    for position in range(5):
        shop.BomLine.objects.create(project=project, part=part, position=position)
    shop.BomLine.objects.create(project=project, part=shop.Part.objects.get(number="P-039"), position=9)
    for limit in (100, 1):
        page = staff.ask(
            "ProjectManager", [{"parts": ["id"]}], filters={"code": "twice"}, limits=PlanLimits(list_rows=limit)
        )
        assert len(page.data[0]["parts"]) == min(limit, 2)
        assert bool(page.cut_lists) == (limit == 1)


# --- values -----------------------------------------------------------------------------------------------------


def test_values_are_json_by_the_encoder_s_rules(staff: Desk) -> None:
    part = shop.Part.objects.create(
        number="V",
        name="a\u2028b",
        material=shop.Material.objects.get(name="material 0"),
        price=Decimal("1234567.80"),
        weight=1.5,
        drawing=b"\x00\xff",
        attributes={"a": [1, None]},
    )
    fields = ["name", "status", "price", "weight", "drawing", "attributes", "created_at", "lead_time", "gross"]
    (row,) = staff.ask("PartManager", fields, filters={"number": "V"}).data
    assert row == {
        "name": "a\u2028b",
        "status": "draft",
        "price": "1234567.80",
        "weight": 1.5,
        "drawing": "base64:AP8=",
        "attributes": {"a": [1, None]},
        "created_at": part.created_at.isoformat(),
        "lead_time": None,
        "gross": "1469135.68",
    }


def test_decimals_are_compared_exactly(staff: Desk) -> None:
    def numbers(**filters: Any) -> int:
        return staff.ask("PartManager", ["id"], filters=filters).total_count

    assert numbers(price="1.00") > 0
    assert numbers(price="0.995") == 0
    assert numbers(price__gt="0.99", price__lt="0.995") == 0
    assert numbers(price__gte="0.9901") == numbers(price__in=["1.00", "12.5"])
    assert numbers(price__lt="1e40") == shop.Part.objects.exclude(price=None).count()


def test_columns_by_any_name(staff: Desk) -> None:
    assert set(staff.ask("ProjectManager", ["*"]).data[0]) == {"code", "name", "budget"}
    row = staff.ask("PlacementManager", ["*", "part__number"]).data[0]
    assert set(row) == {"shelf", "quantity", "part"}


# --- who sees what ----------------------------------------------------------------------------------------------


def test_hidden_rows_are_absent_at_every_hop(plain: Desk, users: dict[str, Any]) -> None:
    own = set(shop.Order.objects.filter(owner=users["plain"]).values_list("number", flat=True))
    assert own
    assert {row["number"] for row in plain.ask("OrderManager", ["number"]).data} == own
    nested = plain.ask("PartManager", [{"order_lines": ["order__number"]}]).data
    assert {line["order"]["number"] for row in nested for line in row["order_lines"]} <= own
    foreign = shop.OrderLine.objects.exclude(order__owner=users["plain"]).values_list("order__customer", flat=True)
    assert foreign
    hidden = shop.Order.objects.exclude(owner=users["plain"]).filter(lines__isnull=False).first()
    assert hidden is not None
    assert plain.ask("PartManager", ["id"], filters={"order_lines__order__number": hidden.number}).total_count == 0


def test_a_hidden_row_behind_a_single_relation_is_null_and_orders_nothing(staff: Desk) -> None:
    hiding = changed(staff, "MaterialManager", visible_to=lambda rows, actor: rows.exclude(name="material 0"))
    rows = hiding.ask("PartManager", ["material__name"], order_by=["material__name"]).data
    names = [row["material"] and row["material"]["name"] for row in rows]
    assert names.count(None) == shop.Part.objects.filter(material__name="material 0").count() > 0
    assert names == sorted(filter(None, names)) + [None] * names.count(None)
    assert hiding.ask("PartManager", ["id"], filters={"material": None}).total_count == names.count(None)
    assert hiding.ask("PartManager", ["id"], filters={"material__name": "material 0"}).total_count == 0
    inside = hiding.ask("PartManager", [{"material": [{"parts": ["id"]}]}]).data
    assert [row["material"] for row in inside].count(None) == names.count(None)


def test_a_rule_that_joins_does_not_double_rows(staff: Desk) -> None:
    hiding = changed(staff, "PartManager", visible_to=lambda rows, actor: rows.filter(tags__name__startswith="tag"))
    page = hiding.ask("PartManager", ["id"])
    assert page.total_count == len(page.data) == shop.Part.objects.filter(tags__isnull=False).distinct().count()


def test_a_rule_that_returns_something_else_is_named(staff: Desk) -> None:
    wrong = changed(staff, "PartManager", visible_to=lambda rows, actor: list(rows))
    with pytest.raises(TypeError, match=r"PartManager\.visible_to returned a list"):
        wrong.ask("PartManager", ["id"])


def test_computed_fields_see_the_actor_and_what_they_need(staff: Desk) -> None:
    def computed(function: Any, *needs: str) -> Desk:
        return changed(
            staff, "PartManager", computed={"gross": ComputedField(compute=function, type="json", needs=needs)}
        )

    part = shop.Part.objects.select_related("material").get(number="P-001")
    tags = sorted(tag.name for tag in part.tags.all())
    wanted = {"filters": {"number": "P-001"}}
    desks = {
        (2, part.material.name): computed(lambda row, actor: row.material.name, "material"),
        (3, tuple(tags)): computed(lambda row, actor: sorted(tag.name for tag in row.tags.all()), "tags"),
        (2, staff.actor.user_id): computed(lambda row, actor: actor.user_id),
        (2, part.pk): computed(lambda row, actor: row.pk, "id"),
    }
    for (statements, value), desk in desks.items():
        expected = list(value) if isinstance(value, tuple) else value
        assert desk.ask("PartManager", ["gross"], **wanted).data == [{"gross": expected}]
        assert desk.statements("PartManager", ["gross"], **wanted) == statements


# --- plans from elsewhere ---------------------------------------------------------------------------------------


def test_conditions_may_hold_whole_paths(staff: Desk) -> None:
    where = And((Condition(("order_lines", "order", "customer"), "exact", "Acme"),))
    plan = QueryPlan("PartManager", Selection(("id",), (RelationSelection("tags", Selection(("id",))),)), where)
    page = execute_plan(plan, staff.bindings, staff.actor)
    assert page.total_count == shop.Part.objects.filter(order_lines__order__customer="Acme").distinct().count() > 0


def test_nobody_may_ask_what_is_public(users: dict[str, Any]) -> None:
    desk = Desk(registry.bindings(), Actor())
    assert desk.ask("AnnouncementManager", ["title"]).total_count == 40
    with pytest.raises(ToolError, match="no manager"):
        desk.ask("PartManager", ["name"])


def test_columns_that_stand_twice_keep_their_places_in_cut_lists(staff: Desk) -> None:
    """``part__id``, ``part__pk`` and the parent's key are one column, which Django would fetch once."""
    part = shop.Part.objects.get(number="P-001")
    for title in ("a", "b", "c"):
        shop.Document.objects.create(title=title, part=part)
    fields = ["number", {"documents": [{"part": ["id", "name", "number"]}, "title"]}]
    page = staff.ask("PartManager", fields, filters={"number": "P-001"}, limits=PlanLimits(list_rows=1))
    (document,) = page.data[0]["documents"]
    assert document["part"] == {"id": part.pk, "name": part.name, "number": "P-001"}
    assert document["title"] in {item.title for item in part.documents.all()}
    assert page.cut_lists == (("documents",),)


def test_a_hidden_joining_row_joins_nothing(staff: Desk) -> None:
    project, part = shop.Project.objects.earliest("pk"), shop.Part.objects.get(number="P-001")
    shop.BomLine.objects.all().delete()
    line = shop.BomLine.objects.create(project=project, part=part, position=1, quantity=7)
    blind = changed(staff, "BomLineManager", visible_to=lambda rows, actor: rows.exclude(quantity=7))
    for desk, expected in ((staff, [{"number": "P-001"}]), (blind, [])):
        page = desk.ask("ProjectManager", [{"parts": ["number"]}], filters={"code": project.code})
        assert page.data == [{"parts": expected}]
        assert desk.ask("PartManager", ["id"], filters={"projects__code": project.code}).total_count == len(expected)
        assert desk.ask("PartManager", ["id"], filters={"projects": None}).total_count == 40 - len(expected)
    line.quantity = 8
    line.save()
    assert blind.ask("ProjectManager", ["code"], filters={"parts__number": "P-001"}).total_count == 1


def test_only_managers_that_the_actor_sees_join(users: dict[str, Any]) -> None:
    """Two managers show the lines of a bill of material: one to some, all of them, and one to everybody, a few."""
    known = registry.bindings()
    lines = known["BomLineManager"]
    public = replace(
        lines, info=replace(lines.info, name="PublicLineManager", public=True), visible_to=lambda rows, _: rows.none()
    )
    project = known["ProjectManager"]
    parts = replace(project.relations["parts"], through=("BomLineManager", "PublicLineManager"))
    bindings = {
        **known,
        "PublicLineManager": public,
        "ProjectManager": replace(project, relations={**project.relations, "parts": parts}),
    }
    codes = ["view_project", "view_part"]
    for more, joined in (([], False), (["view_bomline"], True)):
        users["plain"].user_permissions.set(Permission.objects.filter(codename__in=[*codes, *more]))
        asking = get_user_model().objects.get(username="plain")  # which remembers no permissions
        desk = Desk(bindings, actor_of(asking))
        page = desk.ask("ProjectManager", ["code", {"parts": ["number"]}])
        assert any(row["parts"] for row in page.data) is joined
        assert bool(desk.ask("ProjectManager", ["code"], filters={"parts__isnull": False}).total_count) is joined


def test_a_filter_through_rows_with_a_key_of_two_columns(staff: Desk) -> None:
    part = shop.Part.objects.get(number="P-001")
    shop.Placement.objects.all().delete()
    shop.Placement.objects.create(shelf="S9", part=part, quantity=3)
    assert staff.ask("PartManager", ["number"], filters={"placements__quantity": 3}).data == [{"number": "P-001"}]
    assert staff.ask("PartManager", ["number"], filters={"placements": None}).total_count == 39


def test_a_rule_that_slices_a_key_of_two_columns_is_kept(staff: Desk) -> None:
    desk = changed(staff, "PlacementManager", visible_to=lambda rows, actor: rows.order_by("-pk")[:2])
    shown = [placement.pk for placement in shop.Placement.objects.order_by("-pk")[:2]]
    page = desk.ask("PlacementManager", ["shelf", "part__id"])
    assert {(row["shelf"], row["part"]["id"]) for row in page.data} == set(shown)
    assert page.total_count == 2


def test_lists_of_rows_with_a_key_of_two_columns_are_cut_in_sql(staff: Desk) -> None:
    part = shop.Part.objects.get(number="P-001")
    shop.Placement.objects.all().delete()
    for number in range(9):
        shop.Placement.objects.create(shelf=f"S{number}", part=part)
    plan = staff.plan(
        "PartManager", [{"placements": ["shelf"]}], filters={"id": part.pk}, limits=PlanLimits(list_rows=2)
    )
    with CaptureQueriesContext(connection) as statements:
        page = execute_plan(plan, staff.bindings, staff.actor)
    assert page.data == [{"placements": [{"shelf": "S0"}, {"shelf": "S1"}]}]
    with connection.cursor() as cursor:
        cursor.execute(next(item["sql"] for item in statements if "gm_chat_ranked" in item["sql"]))
        assert len(cursor.fetchall()) == 3, "one more than are shown"


def test_what_is_computed_behind_rows_that_are_all_hidden_keeps_its_type(staff: Desk) -> None:
    """PostgreSQL has no sum of a null without a type."""
    desk = changed(staff, "MaterialManager", visible_to=lambda rows, actor: rows.none())
    plan = build_aggregate({"manager": "PartManager", "measures": "sum(material__density)"}, desk.view, max_results=1)
    assert execute_aggregate(plan, desk.bindings, desk.actor).data == [{"value": None}]
    args = {"manager": "MaterialManager", "measures": ["avg(count(parts))", "sum(sum(parts__price))"]}
    desk = changed(staff, "PartManager", visible_to=lambda rows, actor: rows.filter(pk__in=[]))
    plan = build_aggregate(args, desk.view, max_results=1)
    assert execute_aggregate(plan, desk.bindings, desk.actor).data == [
        {"avg_count_parts": 0.0, "sum_sum_parts_price": None}
    ]
    desk = changed(staff, "MaterialManager", visible_to=lambda rows, actor: rows.none())
    first = shop.Part.objects.earliest("pk").pk
    assert desk.ask("PartManager", ["id"], order_by=["-material__name"], limit=1).data == [{"id": first}]


@pytest.mark.django_db(transaction=True)
def test_keys_of_other_kinds_in_a_generic_relation() -> None:
    """The table of labels holds the keys of its subjects as text: numbers of some, words of others."""
    with isolate_apps("testproject.shop"):

        class Label(models.Model):
            text = models.CharField(max_length=40)
            content_type = models.ForeignKey(ContentType, models.CASCADE)
            object_id = models.CharField(max_length=40)

            class Meta:
                app_label = "shop"

        class Thing(models.Model):
            name = models.CharField(max_length=40)
            labels = GenericRelation(Label)

            class Meta:
                app_label = "shop"

        with connection.schema_editor() as editor:
            editor.create_model(Label)
            editor.create_model(Thing)
        try:
            _check_labels(Thing, Label)
        finally:
            connection.close()
            with connection.schema_editor() as editor:
                editor.delete_model(Thing)
                editor.delete_model(Label)


def _check_labels(thing: Any, label: Any) -> None:
    described = describe([expose(thing, name="ThingManager"), expose(label, name="LabelManager")])
    desk = Desk(described.bindings, actor_of(fill_shop(parts=1)["staff"]))
    kinds = ContentType.objects
    mine, other = kinds.get_or_create(app_label="shop", model="thing")[0], kinds.get_for_model(shop.Project)
    for name in ("one", "two"):
        made = thing.objects.create(name=name)
        label.objects.create(text=f"of {name}", content_type=mine, object_id=str(made.pk))
    for key in ("proj-1", str(made.pk), "9" * 40):
        label.objects.create(text="of a project", content_type=other, object_id=key)
    if connection.vendor == "postgresql":  # so that it reads the table before it knows which rows are whose
        with connection.cursor() as cursor:
            cursor.execute("SET enable_nestloop = off; SET enable_indexscan = off; SET enable_bitmapscan = off")
    page = desk.ask("ThingManager", ["name", {"labels": ["text"]}])
    assert page.data == [{"name": name, "labels": [{"text": f"of {name}"}]} for name in ("one", "two")]
    assert desk.ask("ThingManager", ["name"], filters={"labels__text": "of two"}).data == [{"name": "two"}]
    assert desk.ask("ThingManager", ["name"], filters={"labels__text": "of a project"}).data == []
    sums = build_aggregate({"manager": "ThingManager", "measures": "sum(count(labels))"}, desk.view, max_results=1)
    assert execute_aggregate(sums, desk.bindings, desk.actor).data == [{"value": 2}]
