"""The same questions to gm-chat's own source, to strawberry-django and to GeneralManager, over the same tables."""

from __future__ import annotations

from typing import Any

import pytest
from asking import alike_desk, fill
from desks import Desk, actor_of, alike, django_source, graphql_source
from questions import QUESTIONS
from testproject.shop import models

from gm_chat.plugin import ToolError


@pytest.fixture
def users(db: None) -> dict[str, Any]:
    return fill()


def desks(user: Any) -> dict[str, Desk]:
    actor = actor_of(user)
    return {
        "django": Desk(django_source(), actor),
        "strawberry": Desk(graphql_source("strawberry", mutations="*"), actor),
        "general_manager": alike_desk(user),
    }


def named(desk: str, manager: str) -> str:
    return manager.removesuffix("Manager") if desk == "general_manager" else manager


@pytest.mark.parametrize("user", ["staff", "plain"])
def test_questions(user: str, users: dict[str, Any]) -> None:
    asked = desks(users[user])
    found = 0
    for manager, fields, args in QUESTIONS:
        pages = {name: desk.ask(named(name, manager), fields, **args) for name, desk in asked.items()}
        expected = pages.pop("django")
        for name, page in pages.items():
            question = (name, manager, fields, args)
            assert alike(page.data) == alike(expected.data), question
            assert (page.total_count, page.has_more) == (expected.total_count, expected.has_more), question
            assert (page.truncated, page.cut_lists) == (expected.truncated, expected.cut_lists), question
        found += bool(expected.data)
    assert len(QUESTIONS) > 20
    assert found > len(QUESTIONS) * 2 // 3


@pytest.mark.parametrize("name", ["django", "strawberry", "general_manager"])
def test_hidden_rows_are_hidden_at_every_hop(name: str, users: dict[str, Any]) -> None:
    desk = desks(users["plain"])[name]
    part, supplier = named(name, "PartManager"), named(name, "SupplierManager")
    assert not desk.ask(part, ["number"], filters={"status": "draft"}).total_count
    assert not desk.ask(part, ["number"], filters={"supplier__rating": 1}).total_count
    page = desk.ask(part, ["number", "supplier__name", "supplier__rating"])
    shown = {row["supplier"] and row["supplier"]["rating"] for row in page.data}
    assert shown <= {None, 2, 3, 5}
    hidden = models.Part.objects.filter(supplier__rating=1).exclude(status="draft").values_list("number", flat=True)
    assert hidden
    assert all(row["supplier"] is None for row in page.data if row["number"] in hidden)
    for row in desk.ask(supplier, [{"parts": ["status"]}]).data:
        assert all(item["status"] != "draft" for item in row["parts"])
    assert desk.view().rows_may_be_hidden(part)


@pytest.mark.parametrize("name", ["django", "strawberry", "general_manager"])
def test_a_change_and_its_refusals(name: str, users: dict[str, Any]) -> None:
    desk = desks(users["plain"])[name]
    row = models.Part.objects.exclude(status="draft")[0]
    desk.change("updatePart", id=str(row.pk) if name == "strawberry" else row.pk, price="7.25")
    assert str(models.Part.objects.get(pk=row.pk).price) == "7.25"
    material = models.Material.objects.all()[0]
    values = {"number": row.number, "name": "again", "material": material.pk}
    if name == "strawberry":
        values |= {"material": str(material.pk), "tags": []}
    with pytest.raises(ToolError) as refused:
        desk.change("createPart", **values)
    assert refused.value.code == "validation_failed"
    assert set(refused.value.details["fields"]) == {"number"}
    assert models.Part.objects.filter(number=row.number).count() == 1
