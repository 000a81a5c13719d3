"""Changes through GeneralManager's own methods: its permissions, rules, validation and history hold."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from asking import desk, fill
from django.db import connection
from django.test.utils import CaptureQueriesContext
from general_manager.api import PublicGraphQLError
from gm_project.shop_managers import managers
from gm_project.shop_managers import models as ours
from testproject.shop import models

from gm_chat.managers.api import MutationCall
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from desks import Desk


@pytest.fixture
def users(db: None) -> dict[str, Any]:
    return fill()


def refused(desk: Desk, name: str, /, **values: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        desk.change(name, **values)
    return caught.value


def released() -> models.Part:
    return models.Part.objects.exclude(status="draft").order_by("pk")[0]


def test_values_arrive_as_they_are(users: dict[str, Any]) -> None:
    """Through GeneralManager's GraphQL a moment would lose its time, and JSON would be stored as text."""
    staff, part = desk(users["staff"]), released()
    moment = datetime(2024, 5, 6, 7, 8, tzinfo=UTC)
    values = {"name": "yard", "area": "2 m**2", "opened_at": moment.isoformat(), "facts": {"a": [1]}, "part": part.pk}
    result = staff.change("createSite", **values)
    row = managers.Site.Interface._model.objects.get(pk=result["id"])
    assert (row.opened_at, row.facts, row.part_id, row.area_value) == (moment, {"a": [1]}, part.pk, Decimal(2))
    assert {name: result[name] for name in ("name", "facts", "part")} == {
        "name": "yard",
        "facts": {"a": [1]},
        "part": part.pk,
    }
    assert staff.change("updateSite", id=row.pk, part=None, area="3 m**2") == {
        "id": row.pk,
        "part": None,
        "area": "3 m**2",
    }
    assert [item.area_value for item in row.history.order_by("history_date")] == [2, 3]
    assert staff.change("deleteSite", id=row.pk) == {"id": row.pk}
    assert not managers.Site.Interface._model.all_objects.get(pk=row.pk).is_active


def test_create_with_relations(users: dict[str, Any]) -> None:
    plain = desk(users["plain"])
    material, tags = models.Material.objects.all()[0], list(models.Tag.objects.all()[:2])
    supplier = models.Supplier.objects.get(rating=2)
    result = plain.change(
        "createPart",
        number="X-1",
        name="x",
        status="released",
        price="1.25",
        material=material.pk,
        supplier_id=supplier.pk,
        tags=[tag.pk for tag in tags],
    )
    row = models.Part.objects.get(pk=result["id"])
    assert (row.price, row.material, row.supplier, set(row.tags.all())) == (
        Decimal("1.25"),
        material,
        supplier,
        set(tags),
    )
    assert result["tags"] == [tag.pk for tag in tags]
    assert ours.Part.objects.get(pk=row.pk).history.exists()  # type: ignore[attr-defined]


def test_rules_and_validation(users: dict[str, Any]) -> None:
    plain, staff, part = desk(users["plain"]), desk(users["staff"]), released()
    error = refused(plain, "updatePart", id=part.pk, weight=-1)
    assert error.code == "validation_failed"
    assert error.message
    error = refused(staff, "createSite", name="nowhere")
    assert (error.code, error.details["fields"]) == ("validation_failed", {"name": ["There is no such place."]})
    error = refused(staff, "createSite", name="x" * 41)
    assert list(error.details["fields"]) == ["name"]
    error = refused(staff, "createSite", name="x", area="2 kg")
    assert list(error.details["fields"]) == ["area"]
    error = refused(staff, "createSite", name="x", area="plenty")
    assert (error.code, list(error.details["fields"])) == ("validation_failed", ["area"])
    error = refused(staff, "deleteMaterial", id=part.material_id)
    assert (error.code, "refers to it" in error.message) == ("validation_failed", True)
    assert models.Part.objects.get(pk=part.pk).weight == part.weight
    assert not managers.Site.Interface._model.objects.count()


def test_permissions(users: dict[str, Any]) -> None:
    plain, part = desk(users["plain"]), released()
    for error in (refused(plain, "createSite", name="x"), refused(plain, "deletePart", id=part.pk)):
        assert error.code == "permission_denied"
        assert "attribute" not in error.message
    part = models.Part.objects.create(number="X-0", material=part.material, status="released")
    desk(users["staff"]).change("deletePart", id=part.pk)
    assert not models.Part.objects.filter(pk=part.pk).exists()
    nobody = desk(None)
    assert nobody.view().mutation("createPart") is None
    mutation = plain.view().mutation("createPart")
    assert mutation is not None
    with pytest.raises(ToolError) as caught:
        nobody.source._mutate(MutationCall(mutation, {"number": "n"}), nobody.actor, None)  # type: ignore[attr-defined]
    assert caught.value.code == "permission_denied"


def test_hidden_rows_are_absent(users: dict[str, Any]) -> None:
    plain, part = desk(users["plain"]), released()
    hidden, absent = models.Part.objects.filter(status="draft")[0].pk, 987654
    supplier, nobody = models.Supplier.objects.get(rating=1).pk, 987654
    for name, values, one, other in (
        ("updatePart", {"id": None, "name": "y"}, hidden, absent),
        ("updatePart", {"id": part.pk, "supplier": None}, supplier, nobody),
    ):
        found = []
        for key in (one, other):
            with CaptureQueriesContext(connection) as captured:
                error = refused(plain, name, **{k: key if v is None else v for k, v in values.items()})
            found.append((error.code, error.message.replace(str(key), "#"), len(captured)))
        assert found[0] == found[1]
    assert models.Part.objects.get(pk=part.pk).supplier_id == part.supplier_id


def test_nobody_writes_what_they_could_not_read(users: dict[str, Any]) -> None:
    plain, part = desk(users["plain"]), released()
    error = refused(plain, "updatePart", id=part.pk, status="draft")
    assert error.code == "permission_denied"
    assert models.Part.objects.get(pk=part.pk).status == part.status
    material = models.Material.objects.all()[0]
    error = refused(plain, "createPart", number="X-9", name="x", material=material.pk, status="draft")
    assert error.code == "permission_denied"
    assert not models.Part.objects.filter(number="X-9").exists()


def test_links_to_hidden_rows_stay(users: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    part, (first, second, third) = released(), list(models.Tag.objects.all()[:3])
    part.tags.set([first, second])
    rule = [f"matches:name:{first.name}", f"matches:name:{third.name}"]
    permission = type("Permission", (managers.Part.Permission.__mro__[1],), {"__read__": rule})
    monkeypatch.setattr(managers.Tag, "Permission", permission)
    desk(users["plain"]).change("updatePart", id=part.pk, tags=[third.pk])
    assert set(part.tags.all()) == {second, third}


def test_a_deadline(users: dict[str, Any]) -> None:
    plain = desk(users["plain"])
    plain.deadline = time.monotonic() - 1
    assert refused(plain, "updatePart", id=released().pk, name="late").code == "timeout"
    assert not models.Part.objects.filter(name="late").exists()


def test_which_there_are(users: dict[str, Any]) -> None:
    view = desk(users["staff"]).view()
    assert {item.name for item in view.get("Site").mutations} == {"createSite", "updateSite", "deleteSite"}  # type: ignore[union-attr]
    assert not view.get("Forecast").mutations  # type: ignore[union-attr]
    inputs = {item.name: item for item in view.mutation("createSite").inputs}  # type: ignore[union-attr]
    assert (inputs["area"].required, inputs["area"].nullable) == (False, True)
    assert "2.5 m**2" in inputs["area"].description
    assert "area_value" not in inputs


def test_what_the_project_says_to_clients(users: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(cls: Any, **values: Any) -> None:
        raise PublicGraphQLError("There is no room for another site.", code="FULL")

    monkeypatch.setattr(managers.Site, "create", classmethod(full))
    error = refused(desk(users["staff"]), "createSite", name="x")
    assert (error.code, error.message) == ("validation_failed", "There is no room for another site.")
