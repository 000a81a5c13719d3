"""Mutations of three libraries: inputs, results, refusals, and nothing half written."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from desks import Desk, actor_of, graphql_source, needs_graphene
from testproject.shop import models
from testproject.shop_rows import fill_shop

from gm_chat.plugin import Actor, ToolError


@pytest.fixture
def users(db: None) -> dict[str, Any]:
    return fill_shop(parts=6)


def inputs(desk: Desk, name: str) -> dict[str, tuple[str, bool, str | None]]:
    mutation = desk.view().mutation(name)
    assert mutation is not None
    return {item.name: (item.type, item.required, item.relation) for item in mutation.inputs}


def test_strawberry(users: dict[str, Any]) -> None:
    desk = Desk(graphql_source("strawberry", mutations="*"), actor_of(users["staff"]))
    assert inputs(desk, "createPart") == {
        "number": ("string", True, None),
        "name": ("string", True, None),
        "price": ("decimal", False, None),
        "material": ("string", True, "MaterialManager"),
        "tags": ("string", False, "TagManager"),
    }
    material, tag = models.Material.objects.first(), models.Tag.objects.first()
    assert material is not None
    assert tag is not None
    written = desk.change(
        "createPart", number="N-1", name="Nut", price="0.10", material=str(material.pk), tags=[str(tag.pk)]
    )
    part = models.Part.objects.get(number="N-1")
    assert written["id"] == str(part.pk)
    assert (written["price"], written["status"]) == ("0.10", "draft")
    assert (part.material, list(part.tags.all())) == (material, [tag])
    assert desk.change("updatePart", id=str(part.pk), price="0.20")["price"] == "0.20"
    with pytest.raises(ToolError) as taken:
        desk.change("createPart", number="N-1", name="Nut", material=str(material.pk))
    assert taken.value.code == "validation_failed"
    assert list(taken.value.details["fields"]) == ["number"]
    desk.change("deletePart", id=str(part.pk))
    assert not models.Part.objects.filter(number="N-1").exists()


@needs_graphene
def test_graphene(users: dict[str, Any]) -> None:
    desk = Desk(graphql_source("graphene", mutations=["renamePart", "deletePart"]), actor_of(users["staff"]))
    assert inputs(desk, "renamePart") == {"number": ("string", True, None), "name": ("string", True, None)}
    assert desk.change("renamePart", number="P-001", name="Neu")["name"] == "Neu"
    with pytest.raises(ToolError, match="name: A part needs a name") as refused:
        desk.change("renamePart", number="P-001", name="")
    assert refused.value.details == {"fields": {"name": ["A part needs a name."]}}
    assert models.Part.objects.get(number="P-001").name == "Neu", "what a refused mutation wrote is undone"
    models.Part.objects.create(number="N-1", name="Nut", material=models.Material.objects.all()[0])
    assert desk.change("deletePart", number="N-1") == {"ok": True}
    with pytest.raises(ToolError, match="other data still refers to it"):
        desk.change("deletePart", number="P-001")


def test_ariadne(users: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    source = graphql_source("ariadne", mutations={"updatePartPrice": None, "deletePart": "PartManager"})
    desk, plain = Desk(source, actor_of(users["staff"])), Desk(source, actor_of(users["plain"]))
    assert desk.change("updatePartPrice", number="P-001", price="3.5")["price"] == "3.5"
    with pytest.raises(ToolError) as invalid:
        desk.change("updatePartPrice", number="P-001", price="3.555")
    assert invalid.value.code == "validation_failed"
    assert list(invalid.value.details["fields"]) == ["price"]
    with pytest.raises(ToolError) as denied:
        plain.change("deletePart", number="P-001")
    assert denied.value.code == "permission_denied"
    with caplog.at_level(logging.ERROR), pytest.raises(ToolError) as failed:
        desk.change("updatePartPrice", number="none", price="1")
    assert failed.value.code == "failed"
    assert "db-7" not in str(failed.value.as_result())
    assert "db-7.internal" in caplog.text
    models.Part.objects.create(number="N-1", name="Nut", material=models.Material.objects.all()[0])
    assert desk.change("deletePart", number="N-1") == {"result": True}


def test_only_named_mutations_and_only_for_users(users: dict[str, Any]) -> None:
    source = graphql_source("ariadne", managers={"parts": {"public": True}}, mutations=["updatePartPrice"])
    desk, nobody = Desk(source, actor_of(users["staff"])), Desk(source, Actor())
    assert desk.view().mutation("updatePartPrice") is not None
    assert desk.view().mutation("deletePart") is None
    assert nobody.view().get("PartManager") is not None
    assert nobody.view().mutation("updatePartPrice") is None
