from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from testproject.desk import Desk, actor_of, whole_view
from testproject.shop import models as shop
from testproject.shop_rows import fill_shop

from gm_chat.managers import registry
from gm_chat.managers.api import MutationCall, MutationInfo
from gm_chat.managers.calls import build_call
from gm_chat.managers.mutations import execute_mutation
from gm_chat.plugin import ToolError

pytestmark = pytest.mark.django_db
VIEW = whole_view()


@pytest.fixture
def users() -> dict[str, Any]:
    return fill_shop(parts=10)


@pytest.fixture
def desk(users: dict[str, Any]) -> Desk:
    return Desk(registry.bindings(), actor_of(users["staff"]))


def run(desk: Desk, name: str, /, **values: Any) -> dict[str, Any]:
    return execute_mutation(build_call(name, values, VIEW), desk.bindings, desk.actor)


def refusal(desk: Desk, name: str, /, **values: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        run(desk, name, **values)
    return caught.value


def hiding(desk: Desk, manager: str, rule: Any) -> Desk:
    binding = replace(desk.bindings[manager], visible_to=rule)
    return Desk({**desk.bindings, manager: binding}, desk.actor)


def test_create_writes_and_tells_what(desk: Desk) -> None:
    material, tag = shop.Material.objects.get(name="material 1"), shop.Tag.objects.get(name="tag 1")
    values = {"number": "N-1", "name": "new", "price": "9.9", "material": material.pk, "tags": [tag.pk, tag.pk]}
    data = run(desk, "createPart", **values)
    part = shop.Part.objects.get(number="N-1")
    assert data == {
        "id": part.pk,
        "number": "N-1",
        "name": "new",
        "price": "9.9",
        "material": material.pk,
        "tags": [tag.pk, tag.pk],
    }
    assert (part.material, list(part.tags.all())) == (material, [tag])


def test_create_with_an_own_key(desk: Desk) -> None:
    assert run(desk, "createProject", code="own", name="x")["id"] == "own"
    taken = refusal(desk, "createProject", code="own", name="y")
    assert taken.code == "validation_failed"
    assert list(taken.details["fields"]) == ["code"]
    assert shop.Project.objects.get(pk="own").name == "x"


def test_update_changes_what_is_given(desk: Desk) -> None:
    part = shop.Part.objects.get(number="P-001")
    data = run(desk, "updatePart", id=part.pk, name="renamed", supplier=None)
    assert data == {"id": part.pk, "name": "renamed", "supplier": None}
    after = shop.Part.objects.get(pk=part.pk)
    assert (after.name, after.supplier, after.number) == ("renamed", None, "P-001")


def test_delete_removes_the_row(desk: Desk) -> None:
    part = shop.Part.objects.create(number="D", name="d", material=shop.Material.objects.get(name="material 1"))
    assert run(desk, "deletePart", id=part.pk) == {"id": part.pk}
    assert not shop.Part.objects.filter(pk=part.pk).exists()


def test_what_is_referred_to_cannot_be_deleted(desk: Desk) -> None:
    part = shop.Part.objects.filter(material__isnull=False).first()
    assert part is not None
    error = refusal(desk, "deleteMaterial", id=part.material_id)
    assert error.code == "validation_failed"
    assert shop.Material.objects.filter(pk=part.material_id).exists()


def test_errors_are_told_by_input(desk: Desk) -> None:
    part = shop.Part.objects.get(number="P-001")
    error = refusal(desk, "updatePart", id=part.pk, number="P-002", price="123456789.999", name="")
    assert error.code == "validation_failed"
    assert set(error.details["fields"]) == {"number", "price", "name"}
    assert "number: " in error.message
    assert shop.Part.objects.get(pk=part.pk).name == part.name


def test_a_hidden_row_is_not_found(desk: Desk) -> None:
    part = shop.Part.objects.get(number="P-001")
    blind = hiding(desk, "PartManager", lambda rows, actor: rows.exclude(number="P-001"))
    for name, values in (("updatePart", {"name": "x"}), ("deletePart", {})):
        answers = []
        for key in (part.pk, 999):
            with CaptureQueriesContext(connection) as statements:
                answers.append((refusal(blind, name, id=key, **values), len(statements)))
        (hidden, statements_for_hidden), (missing, statements_for_missing) = answers
        assert hidden.code == missing.code == "not_found"
        assert statements_for_hidden == statements_for_missing
        assert hidden.message.replace(str(part.pk), "?") == missing.message.replace("999", "?")
    assert shop.Part.objects.get(pk=part.pk).name == part.name


def test_an_id_is_told_shortened(desk: Desk) -> None:
    assert len(refusal(desk, "deleteProject", id="x" * 100_000).message) < 200


def test_a_hidden_row_cannot_be_referred_to(desk: Desk) -> None:
    material = shop.Material.objects.get(name="material 1")
    blind = hiding(desk, "MaterialManager", lambda rows, actor: rows.exclude(pk=material.pk))
    hidden = refusal(blind, "createPart", number="N", name="n", material=material.pk)
    missing = refusal(blind, "createPart", number="N", name="n", material=999)
    assert hidden.code == missing.code == "validation_failed"
    assert list(hidden.details["fields"]) == list(missing.details["fields"]) == ["material"]
    assert hidden.message.replace(str(material.pk), "?") == missing.message.replace("999", "?")
    assert refusal(desk, "updatePart", id=shop.Part.objects.earliest("pk").pk, tags=[999]).code == "validation_failed"


def test_links_to_hidden_rows_stay(desk: Desk) -> None:
    part = shop.Part.objects.get(number="P-001")
    shown, new, hidden = shop.Tag.objects.order_by("pk")[:3]
    part.tags.set([shown, hidden])
    blind = hiding(desk, "TagManager", lambda rows, actor: rows.exclude(pk=hidden.pk))
    assert run(blind, "updatePart", id=part.pk, tags=[new.pk]) == {"id": part.pk, "tags": [new.pk]}
    assert set(part.tags.all()) == {new, hidden}


@pytest.mark.parametrize("code", ["unique", "unique_together"])
def test_values_that_are_taken_do_not_name_hidden_columns(
    code: str, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.core.exceptions import ValidationError

    def fault(field: str) -> ValidationError:
        return ValidationError(f"taken: {field}", code=code, params={"unique_check": ("name", field)})

    def clean(self: Any) -> None:
        raise ValidationError(
            {"created_at" if code == "unique" else "__all__": fault("created_at"), "name": fault("number")}
        )

    monkeypatch.setattr(shop.Part, "clean", clean)
    error = refusal(desk, "updatePart", id=shop.Part.objects.get(number="P-001").pk, name="x")
    assert "created_at" not in error.message
    assert "Another row has these values already." in error.message
    assert error.details["fields"] == {"name": ["taken: number"]}


def test_a_row_must_stay_visible(desk: Desk) -> None:
    blind = hiding(desk, "PartManager", lambda rows, actor: rows.exclude(name="secret"))
    material = shop.Material.objects.get(name="material 1")
    error = refusal(blind, "createPart", number="N", name="secret", material=material.pk)
    assert error.code == "permission_denied"
    assert not shop.Part.objects.filter(number="N").exists()
    part = shop.Part.objects.get(number="P-001")
    assert refusal(blind, "updatePart", id=part.pk, name="secret").code == "permission_denied"
    assert shop.Part.objects.get(pk=part.pk).name == part.name


def test_what_only_the_database_refuses(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shop.Part, "full_clean", lambda self: None)
    part = shop.Part.objects.get(number="P-001")
    error = refusal(desk, "updatePart", id=part.pk, number="P-002")
    assert error.code == "validation_failed"
    assert "database" in error.message
    assert shop.Part.objects.get(pk=part.pk).number == "P-001"


def test_a_model_s_own_rule_is_told_whole(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.core.exceptions import ValidationError

    def clean(self: Any) -> None:
        raise ValidationError({"drawing": ["needs a drawing"], "__all__": ["too odd"]})

    monkeypatch.setattr(shop.Part, "clean", clean)
    error = refusal(desk, "updatePart", id=shop.Part.objects.get(number="P-001").pk, name="x")
    assert error.details["fields"] == {}
    assert error.message == "needs a drawing too odd"

    def save(self: Any, **options: Any) -> None:
        raise ValidationError("not today")

    monkeypatch.undo()
    monkeypatch.setattr(shop.Part, "save", save)
    assert refusal(desk, "updatePart", id=shop.Part.objects.get(number="P-001").pk, name="x").message == "not today"


def test_a_mutation_without_a_function_is_refused(desk: Desk) -> None:
    call = MutationCall(MutationInfo(name="shipOrder", manager="OrderManager", kind="custom"), {})
    with pytest.raises(TypeError, match="OrderManager has no function for the mutation 'shipOrder'"):
        execute_mutation(call, desk.bindings, desk.actor)
