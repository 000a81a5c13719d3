"""Permissions decide at every hop: as filters in SQL where GeneralManager says so, else row by row."""

from __future__ import annotations

from typing import Any

import pytest
from asking import desk, fill, gm_source
from desks import Desk, actor_of, run
from django.db import connection
from django.test.utils import CaptureQueriesContext
from general_manager.measurement import Measurement
from general_manager.permission import AdditiveManagerPermission
from general_manager.permission.base_permission import ReadPermissionPlan
from gm_chat_source_general_manager.rights import Gate, _satisfying
from gm_project.shop_managers import managers
from testproject.shop import models

from gm_chat.managers.aggregate import build_aggregate
from gm_chat.plugin import Actor, ToolError


@pytest.fixture
def users(db: None) -> dict[str, Any]:
    return fill()


def refused(desk: Desk, manager: str, fields: list[Any], **args: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        desk.ask(manager, fields, **args)
    return caught.value


def statements(desk: Desk, manager: str, fields: list[Any], **args: Any) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        desk.ask(manager, fields, **args)
    return [query["sql"] for query in captured]


# --- rows -------------------------------------------------------------------------------------------------------


def test_filters_are_sql(users: dict[str, Any]) -> None:
    plain = desk(users["plain"])
    fields = ["number", "supplier__name", {"tags": ["name"]}, {"sites": ["name"]}]
    few, many = statements(plain, "Part", fields, limit=5), statements(plain, "Part", fields, limit=20)
    assert len(few) == len(many) <= 5
    assert any("'draft'" in sql for sql in many)


def test_rows_that_no_filter_describes_are_asked_one_by_one(users: dict[str, Any]) -> None:
    people = models.Employee.objects.order_by("pk")
    even = [person.name for person in people if person.pk % 2 == 0]
    plain, staff = desk(users["plain"]), desk(users["staff"])
    page = plain.ask("Employee", ["name"], order_by=["id"])
    assert [row["name"] for row in page.data] == even
    assert page.total_count == len(even) < staff.ask("Employee", ["name"]).total_count
    page = plain.ask("Employee", ["id", "boss__name", {"reports": ["name"]}])
    bosses = {person.pk: person.boss for person in people}
    for row in page.data:
        boss = bosses[row["id"]]
        assert row["boss"] == ({"name": boss.name} if boss and boss.pk % 2 == 0 else None)
        assert {each["name"] for each in row["reports"]} <= set(even)
    odd = people.filter(reports__isnull=False).exclude(name__in=even)[0]
    assert plain.ask("Employee", ["name"], filters={"boss__name": odd.name}).total_count == 0
    assert plain.view().rows_may_be_hidden("Employee")
    assert not staff.view().rows_may_be_hidden("Employee")


def test_a_bound_on_rows_asked_one_by_one(users: dict[str, Any]) -> None:
    plain = desk(users["plain"], max_rows=3)
    error = refused(plain, "Employee", ["name"])
    assert error.code == "too_large"
    assert "Employee" in error.message
    row = models.Employee.objects.filter(name="employee 5")[0]
    expected = 1 if row.pk % 2 == 0 else 0
    assert plain.ask("Employee", ["name"], filters={"id": row.pk}).total_count == expected
    # Here other rows of the table are needed as well, so that its own condition leaves none out.
    assert refused(plain, "Employee", ["boss__name"], filters={"id": row.pk}).code == "too_large"
    assert refused(plain, "Employee", ["name"], filters={"id": row.pk, "boss": None}).code == "too_large"
    assert desk(users["staff"], max_rows=3).ask("Employee", ["name"]).total_count == 8


def test_large_tables_are_no_matter_of_candidates(users: dict[str, Any]) -> None:
    material = models.Material.objects.all()[0]
    models.Part.objects.bulk_create(
        models.Part(number=f"N-{n}", name="n", material=material, status="released") for n in range(9_100)
    )
    plain = desk(users["plain"])
    row = models.Part.objects.get(number="N-77")
    assert plain.ask("Part", ["number"], filters={"id": row.pk}).data == [{"number": "N-77"}]
    page = plain.ask("Part", ["number"], limit=150, filters={"number__startswith": "N-"}, order_by=["number"])
    assert (len(page.data), page.total_count) == (150, 9_100)
    page = plain.ask("Material", [{"parts": ["number"]}], filters={"id": material.pk})
    assert (len(page.data[0]["parts"]), page.cut_lists) == (100, (("parts",),))


def test_permissions_based_on_others(users: dict[str, Any]) -> None:
    plain = desk(users["plain"])
    own = models.Order.objects.filter(owner=users["plain"])
    assert plain.ask("Order", ["number"]).total_count == own.count() > 0
    lines = models.OrderLine.objects.filter(order__in=own)
    page = plain.ask("OrderLine", ["quantity", "order__number"])
    assert page.total_count == lines.count() < models.OrderLine.objects.count()
    assert all(row["order"] is not None for row in page.data)


def test_a_permission_of_code_hides_rows_of_which_it_hides_anything(users: dict[str, Any]) -> None:
    everyone = models.Project.objects.count()
    assert desk(users["staff"]).ask("Project", ["code"]).total_count == everyone - 1
    assert not desk(users["staff"]).ask("Project", ["name"], filters={"code": "proj-1"}).data


def test_nobody_sees_what_is_public_and_changes_nothing(users: dict[str, Any]) -> None:
    nobody = desk(None)
    view = nobody.view()
    assert {info.name for info in view} == {"Part", "Supplier", "Material", "Tag", "Employee", "Project"}
    assert not any(info.mutations for info in view)
    assert nobody.ask("Part", ["number"]).total_count == models.Part.objects.exclude(status="draft").count()
    assert "sites" not in {relation.name for relation in view.get("Part").relations}  # type: ignore[union-attr]
    users["plain"].is_active = False
    assert {info.name for info in desk(users["plain"]).view()} == {info.name for info in view}


def test_superusers_are_asked_nothing(users: dict[str, Any]) -> None:
    users["plain"].is_superuser = True
    root = desk(users["plain"])
    assert root.ask("Part", ["number"]).total_count == models.Part.objects.count()
    assert "email" in {item.name for item in root.view().get("Supplier").fields}  # type: ignore[union-attr]
    assert not root.view().rows_may_be_hidden("Part")


def test_what_is_not_exposed_does_not_exist(users: dict[str, Any]) -> None:
    staff = desk(users["staff"])
    assert staff.view().get("Payment") is None
    assert refused(staff, "Payment", ["amount"]).code == refused(staff, "Nothing", ["amount"]).code


def test_deleted_rows_are_gone(users: dict[str, Any]) -> None:
    managers.Site.create(creator_id=users["staff"].pk, name="old", part=None).delete(creator_id=users["staff"].pk)
    managers.Site.create(creator_id=users["staff"].pk, name="new")
    assert managers.Site.Interface._model.all_objects.count() == 2
    assert desk(users["staff"]).ask("Site", ["name"]).data == [{"name": "new"}]


# --- fields -----------------------------------------------------------------------------------------------------


def test_a_field_for_some_users_does_not_exist_for_others(users: dict[str, Any]) -> None:
    staff, plain = desk(users["staff"]), desk(users["plain"])
    assert staff.ask("Supplier", ["email"]).total_count
    hidden, unknown = refused(plain, "Supplier", ["email"]), refused(plain, "Supplier", ["emale"])
    assert (hidden.code, hidden.message) == (unknown.code, unknown.message.replace("emale", "email"))
    for arguments in (
        lambda name: {"filters": {name: ""}},
        lambda name: {"order_by": [name]},
        lambda name: {"filters": {f"parts__supplier__{name}__isnull": True}},
    ):
        hidden, unknown = (refused(plain, "Supplier", ["name"], **arguments(name)) for name in ("email", "emale"))
        assert (hidden.code, hidden.message) == (unknown.code, unknown.message.replace("emale", "email"))
    assert "api_token" not in {item.name for item in staff.view().get("Supplier").fields}  # type: ignore[union-attr]


def test_a_field_for_some_rows_is_shown_there_and_finds_nothing(users: dict[str, Any]) -> None:
    staff = desk(users["staff"])
    shown = {row["name"]: row["salary"] for row in staff.ask("Employee", ["name", "salary"]).data}
    assert shown.pop("employee 2") == "2000.00"
    assert set(shown.values()) == {None}
    assert "selected but not filtered by" in refused(staff, "Employee", ["name"], filters={"salary__gt": "1"}).message
    assert "'salary'" in refused(staff, "Employee", ["name"], order_by=["salary"]).message
    plan = {"manager": "Employee", "measures": {"total": "sum(salary)"}}
    with pytest.raises(ToolError):
        build_aggregate(plan, staff.view(), max_results=10)


def test_no_key_of_a_hidden_row(users: dict[str, Any]) -> None:
    view = desk(users["staff"]).view()
    names = {item.name for item in view.get("Part").fields}  # type: ignore[union-attr]
    assert {"supplier_id", "material_id"}.isdisjoint(names)
    assert "owner_id" in {item.name for item in view.get("Order").fields}  # type: ignore[union-attr]


def test_properties_are_computed_fields(users: dict[str, Any]) -> None:
    plain = desk(users["plain"])
    fields = ["number", "name", "label"]
    few, many = statements(plain, "Part", fields, limit=5), statements(plain, "Part", fields, limit=20)
    assert len(few) == len(many) <= 3
    row = plain.ask("Part", fields, limit=1).data[0]
    assert row["label"] == f"{row['number']} {row['name']}"
    info = plain.view().get("Part")
    assert next(item.description for item in info.fields if item.name == "label") == "Number and name."  # type: ignore[union-attr]


def test_measurements(users: dict[str, Any]) -> None:
    managers.Site.create(creator_id=users["staff"].pk, name="yard", area="2 km**2")
    staff = desk(users["staff"])
    (row,) = staff.ask("Site", ["area", "area_value"], filters={"area_value__gt": 1}).data
    assert row["area"] == str(Measurement("2", "km**2"))
    assert float(row["area_value"]) == 2_000_000
    info = staff.view().get("Site")
    assert next(item.description for item in info.fields if item.name == "area_value") == "area in m**2"  # type: ignore[union-attr]


# --- computations, and odd declarations -------------------------------------------------------------------------


def test_aggregates_count_what_the_asker_sees(users: dict[str, Any]) -> None:
    totals = {}
    for name, user in users.items():
        source, actor = gm_source(), actor_of(user)
        asked = {"manager": "Part", "measures": {"n": "count()"}}
        plan = build_aggregate(asked, Desk(source, actor).view(), max_results=10)
        totals[name] = run(source.aggregate(plan, actor, deadline=None)).data[0]["n"]
    assert totals == {"staff": 40, "plain": models.Part.objects.exclude(status="draft").count()}


def test_a_filter_that_the_model_does_not_know(users: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """It says nothing; the permission is asked about each row."""
    for rule in ("matches:nothing:1", "matches:rating:x", "relatedUserField:nobody"):
        monkeypatch.setattr(managers.Supplier.Permission, "__read__", ["unrated", rule])
        gate = Gate.of(managers.Supplier, {"name": "name"})
        try:
            rows = gate.rows(managers.Supplier.Interface._model.objects.all(), users["plain"], 100)
        except AttributeError:
            continue  # GeneralManager's own rule breaks on the row, so nothing is shown
        assert {row.rating for row in rows} == {None}, rule


def test_unknown_names_in_the_settings(users: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"'Prat' is no GeneralManager class .* did you mean 'Part'"):
        gm_source(managers={"Prat": {}}).describe()
    with pytest.raises(ValueError, match=r"\['Part'\]\['fields'\]: 'nmae' is nothing that can be shown"):
        gm_source(managers={"Part": {"fields": ["nmae"]}}).describe()


def test_words_from_the_settings(db: None) -> None:
    chosen = {"Part": {"description": "What we buy.", "aliases": ["item"], "fields": ["number", "supplier"]}}
    info = next(item for item in gm_source(managers=chosen).describe() if item.name == "Part")
    assert (info.description, info.aliases) == ("What we buy.", ("item",))
    assert [item.name for item in (*info.fields, *info.relations)] == ["number", "supplier"]


def test_rights_are_told_apart(users: dict[str, Any]) -> None:
    source = gm_source()
    prints = {run(source.visibility(actor)).fingerprint for actor in (*map(actor_of, users.values()), Actor())}
    assert len(prints) == 3


def test_a_broken_permission_hides_its_manager_alone(
    users: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        managers.Tag, "Permission", type("P", (AdditiveManagerPermission,), {"__read__": ["noSuchRule"]})
    )
    view = desk(users["plain"]).view()
    assert view.get("Tag") is None
    assert "tags" not in {item.name for item in view.get("Part").relations}  # type: ignore[union-attr]
    assert "the read permission of Tag failed" in caplog.text


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        ([{"filter": {"id__in": []}}], set()),
        ([{"filter": {"rating": 3}}, {"filter": {"id__in": []}}], {3}),
        ([{"filter": {"rating": 3}}, {"filter": {"rating": 5}, "exclude": {"name": "nobody"}}], {3, 5}),
        ([{"filter": {"parts__number__startswith": "P"}}, {"exclude": {"rating": 1}}], None),
    ],
)
def test_constraints_are_alternatives(users: dict[str, Any], constraints: list[Any], expected: set[int] | None) -> None:
    model = managers.Supplier.Interface._model
    rows = _satisfying(model.objects.all(), constraints)
    if expected is None:
        expected = set(model.objects.exclude(rating=1).values_list("rating", flat=True))
        expected |= set(model.objects.filter(parts__number__startswith="P").values_list("rating", flat=True))
        assert rows.count() == len(set(rows))
    assert {row.rating for row in rows} == expected


def test_a_plan_that_says_nothing_lets_nobody_in(users: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate.of(managers.Supplier, {"name": "name"})
    monkeypatch.setattr(Gate, "plan", lambda self, user: ReadPermissionPlan([], requires_instance_check=False))
    rows = gate.rows(managers.Supplier.Interface._model.objects.all(), users["plain"], 100)
    assert {row.rating for row in rows} == {None, 2, 3, 5}
