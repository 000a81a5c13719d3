"""What the tools say, in whatever shape, becomes managers or nothing."""

from __future__ import annotations

from typing import Any

import pytest
from gm_chat_provider_offline.schema import Field, Manager, Relation, read_manager, read_managers


def test_a_summary_gives_names_only() -> None:
    (manager,) = read_managers(
        [
            {
                "manager": "OrderLineManager",
                "description": "Lines.",
                "fields": ["id", "amount", 7],
                "relations": [{"name": "order", "target": "OrderManager"}, {"name": "bad"}, None],
                "filters": ["id"],
            }
        ]
    )
    assert manager == Manager(
        "OrderLineManager", "Lines.", (Field("id"), Field("amount")), (Relation("order", "OrderManager"),)
    )
    assert manager.noun == "order line"
    assert list(manager.called()) == [("order", "line")]
    assert list(manager.to_one()) == list(manager.to_many()) == []


def test_a_full_schema_gives_types_choices_and_what_is_computed() -> None:
    manager = read_manager(
        {
            "manager": "PartManager",
            "description": "",
            "fields": ["name", "status", "gross", "due_on"],
            "filters": ["name", "name__icontains", "status__in", "due_on__gte"],
            "field_details": {
                "name": {"type": "string"},
                "status": {
                    "type": "string",
                    "choices": [{"value": "on_hold", "label": "On hold"}, ["x", "Ex"], "plain"],
                },
                "gross": {"type": "decimal", "description": "price with tax"},
                "due_on": {"type": "date"},
            },
            "relations": [{"name": "lines", "target": "LineManager", "many": True}],
            "aliases": ["component", None],
        }
    )
    assert manager is not None
    name, status, gross, due_on = manager.fields
    assert (name.is_text, status.is_text, gross.computed, gross.is_ordered) == (True, False, True, False)
    assert status.choices == (("on_hold", "On hold"), ("x", "Ex"), ("plain", "plain"))
    assert status.choice(("on", "hold")) == "on_hold"
    assert status.choice(("ex",)) == "x"
    assert status.choice(("hold",)) is None
    assert due_on.called() == {("due", "on"), ("due",)}
    assert due_on.is_dated
    assert due_on.is_ordered
    assert list(manager.to_many()) == [Relation("lines", "LineManager", many=True)]
    assert ("component",) in list(manager.called())


@pytest.mark.parametrize("result", [None, [], "x", {"error": {"code": "c"}}, {"manager": 3}])
def test_anything_else_is_no_manager(result: Any) -> None:
    assert read_manager(result) is None
    assert read_managers([result]) == []


@pytest.mark.parametrize("result", [None, {"error": {}}, "x"])
def test_anything_else_holds_no_managers(result: Any) -> None:
    assert read_managers(result) == []


@pytest.mark.parametrize(
    ("description", "word", "said"),
    [
        ("Designed or purchased components with number and price.", "component", True),
        ("Machines designed and built for a customer, with status.", "customers", False),
        ("Machines designed and built for a customer, with status.", "machine", True),
        ("Customers' orders of spare parts.", "customers", False),
        ("Customers' orders of spare parts.", "orders", True),
    ],
)
def test_a_description_is_about_its_head(description: str, word: str, said: bool) -> None:
    assert Manager(name="XManager", description=description, fields=()).mentions(word) is said
