from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from django.db import models
from django.test.utils import isolate_apps
from testproject.shop import models as shop

from gm_chat.managers import DeclarationError, ModelManager, expose
from gm_chat.managers.describe import describe

if TYPE_CHECKING:
    from gm_chat.managers.api import InputInfo, MutationInfo


def mutations(manager: type[ModelManager], *others: type[ModelManager]) -> dict[str, MutationInfo]:
    info = describe([manager, *others]).bindings[manager.__name__].info
    return {item.name: item for item in info.mutations}


def inputs(mutation: MutationInfo) -> dict[str, InputInfo]:
    return {item.name: item for item in mutation.inputs}


def test_names_are_made_of_the_managers_name() -> None:
    found = mutations(expose(shop.Tag))
    assert list(found) == ["createTag", "updateTag", "deleteTag"]
    assert [item.kind for item in found.values()] == ["create", "update", "delete"]
    assert {item.manager for item in found.values()} == {"TagManager"}


def test_create_takes_what_the_model_lets_people_edit() -> None:
    part = expose(shop.Part)
    found = inputs(mutations(part, expose(shop.Material), expose(shop.Supplier), expose(shop.Tag))["createPart"])
    required = {name for name, item in found.items() if item.required}
    assert required == {"number", "name", "material"}
    assert "id" not in found  # the database makes it
    assert "created_at" not in found  # Django makes it
    assert "drawing" not in found  # JSON has no bytes
    assert found["status"].choices[0] == ("draft", "In design")
    assert found["price"].nullable
    material, tags = found["material"], found["tags"]
    assert (material.type, material.relation, material.many) == ("integer", "MaterialManager", False)
    assert (tags.type, tags.relation, tags.many, tags.nullable) == ("integer", "TagManager", True, False)


def test_update_needs_the_id_and_delete_takes_nothing_else() -> None:
    found = mutations(expose(shop.Tag))
    update, delete = inputs(found["updateTag"]), inputs(found["deleteTag"])
    assert [(item.name, item.required) for item in update.values()] == [("id", True), ("name", False)]
    assert list(delete) == ["id"]


def test_a_key_of_its_own_name_is_given_once_and_never_changed() -> None:
    found = mutations(expose(shop.Project))
    assert inputs(found["createProject"])["code"].required
    update = inputs(found["updateProject"])
    assert (update["id"].type, update["id"].description) == ("string", "its code")
    assert "code" not in update


def test_many_to_many_with_own_columns_is_not_set_by_ids() -> None:
    assert "parts" not in inputs(mutations(expose(shop.Project), expose(shop.Part))["createProject"])


def test_a_key_with_a_default_is_not_asked_for() -> None:
    found = mutations(expose(shop.Document))
    assert "id" not in inputs(found["createDocument"])
    assert inputs(found["updateDocument"])["id"].type == "uuid"


def test_without_a_scalar_key_there_is_no_update() -> None:
    assert list(mutations(expose(shop.Placement), expose(shop.Part))) == ["createPlacement"]
    with pytest.raises(DeclarationError, match="mutations: 'update' cannot work: the model has no primary key of one"):
        mutations(expose(shop.Placement, mutations=["update"]))


def test_create_is_not_offered_without_what_the_model_requires() -> None:
    assert "createPart" not in mutations(expose(shop.Part))  # the material is not exposed
    with pytest.raises(DeclarationError, match="'create' cannot work: the model requires 'material', which fields="):
        mutations(expose(shop.Part, mutations=["create"]))


def test_only_the_declared_kinds_are_offered() -> None:
    assert list(mutations(expose(shop.Tag, mutations=["delete"]))) == ["deleteTag"]
    assert mutations(expose(shop.Tag, mutations=())) == {}


@isolate_apps("testproject.shop")
def test_defaults_and_inheritance() -> None:
    class Base(models.Model):
        name = models.CharField(max_length=5)

        class Meta:
            app_label = "shop"

    class Child(Base):
        size = models.IntegerField(db_default=3)
        token_id = models.UUIDField(default=uuid.uuid4, editable=False)

        class Meta:
            app_label = "shop"

    found: Any = inputs(mutations(expose(Child), expose(Base))["createChild"])
    assert {name: item.required for name, item in found.items()} == {"name": True, "size": False}
    assert inputs(mutations(expose(Child))["updateChild"])["id"].type == "integer"
