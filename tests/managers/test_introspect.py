from typing import Any

import pytest
from django.db import models
from django.db.models.functions import Upper
from django.test.utils import isolate_apps
from testproject.shop.models import BomLine, Note, Part, Placement, Project, Supplier

from gm_chat.managers.introspect import LOOKUPS, members_of, scalar_type


def test_forward_columns_and_relations_of_every_kind() -> None:
    members = members_of(Part)
    types = {name: column.type for name, column in members.columns.items()}
    assert types == {
        "id": "integer",
        "number": "string",
        "name": "string",
        "description": "string",
        "status": "string",
        "price": "decimal",
        "weight": "number",
        "purchased": "boolean",
        "attributes": "json",
        "lead_time": "duration",
        "drawing": "binary",
        "released_on": "date",
        "created_at": "datetime",
        "material_id": "integer",
        "supplier_id": "integer",
    }
    relations = {name: (item.query_name, item.many) for name, item in members.relations.items()}
    assert relations == {
        "material": ("material", False),
        "supplier": ("supplier", False),
        "tags": ("tags", True),
        "remarks": ("remarks", True),
        "specification": ("specification", False),
        "projects": ("projects", True),
        "bomline": ("bomline", True),
        "bomline_set": ("bomline", True),
        "order_lines": ("order_lines", True),
        "documents": ("documents", True),
        "placements": ("placements", True),
    }
    assert "announcement" not in relations  # its related_name is "+"


def test_all_means_django_names_without_keys_twice_and_without_secrets() -> None:
    assert members_of(Supplier).default == ["id", "name", "country", "email", "rating", "parts"]
    default = members_of(Part).default
    assert "material_id" not in default
    assert "bomline" in default
    assert "bomline_set" not in default


def test_relations_know_whether_they_may_be_empty() -> None:
    relations = members_of(Part).relations
    assert not relations["material"].nullable
    assert relations["supplier"].nullable
    assert relations["specification"].nullable  # there may be none on the far side


def test_choices_come_with_their_labels() -> None:
    assert members_of(Part).columns["status"].choices == (
        ("draft", "In design"),
        ("released", "Released"),
        ("obsolete", "No longer used"),
    )


def test_a_composite_key_is_left_out() -> None:
    members = members_of(Placement)
    assert members.default == ["shelf", "part", "quantity"]
    assert "id" not in members.columns
    assert "several columns" in members.unusable["pk"]


def test_a_generic_foreign_key_is_left_out_but_not_its_columns() -> None:
    members = members_of(Note)
    assert members.default == ["id", "text", "content_type", "object_id"]
    assert "points to no one model" in members.unusable["subject"]


def test_a_key_of_another_name_can_be_called_id() -> None:
    members = members_of(Project)
    assert members.default == ["code", "name", "budget", "parts", "lines"]
    assert (members.columns["id"].query_name, members.columns["id"].type) == ("pk", "string")
    assert members.relations["lines"].model is BomLine


@isolate_apps("testproject.shop")
def test_less_common_fields() -> None:
    class Odd(models.Field):  # type: ignore[type-arg] # subscriptable for the type checker only
        pass

    class Base(models.Model):
        name = models.CharField(max_length=5)
        level = models.IntegerField(choices=[("low", [(1, "one"), (2, "two")]), (None, "unknown")], null=True)

        class Meta:
            app_label = "shop"

    class Child(Base):
        shout = models.GeneratedField(
            expression=Upper("name"), output_field=models.CharField(max_length=5), db_persist=True
        )
        address = models.GenericIPAddressField()
        file = models.FileField()
        odd = Odd()
        key = models.CharField(max_length=5)

        class Meta:
            app_label = "shop"

    class Extra(models.Model):
        child = models.OneToOneField(Child, on_delete=models.CASCADE, primary_key=True)
        twin = models.ForeignObject(Child, on_delete=models.CASCADE, from_fields=["child"], to_fields=["base_ptr"])

        class Meta:
            app_label = "shop"

    child = members_of(Child)
    assert {name: column.type for name, column in child.columns.items()} == {
        "id": "integer",
        "name": "string",
        "level": "integer",
        "shout": "string",
        "address": "string",
        "file": "string",
        "key": "string",
        "base_ptr_id": "integer",
    }
    assert child.columns["level"].choices == ((1, "one"), (2, "two"))
    assert "key" not in child.default
    assert "a Odd has no scalar type; use a computed field" in child.unusable["odd"]
    assert child.unusable["extra_set"] == "several columns stand behind it"

    extra = members_of(Extra)
    assert extra.unusable["twin"] == "several columns stand behind it"
    assert extra.columns["id"].query_name == "pk"
    assert extra.columns["id"].type == "integer"
    assert extra.default[:1] == ["child"]
    assert extra.default[-1] == "id"  # the key is a relation, so that its value gets a name of its own


def test_every_type_has_lookups() -> None:
    assert "icontains" in LOOKUPS["string"]
    assert "year" in LOOKUPS["date"]
    assert "range" in LOOKUPS["decimal"]
    assert LOOKUPS["json"] == ("isnull",)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (models.BigAutoField(primary_key=True), "integer"),
        (models.SlugField(), "string"),
        (models.UUIDField(), "uuid"),
        (models.TimeField(), "time"),
        (models.CompositePrimaryKey("shelf", "part"), None),
    ],
)
def test_scalar_types(source: Any, expected: str | None) -> None:
    assert scalar_type(source) == expected
