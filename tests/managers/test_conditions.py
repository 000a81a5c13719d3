"""Conditions in filters: what exchanging, dropping and adding leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from testproject.desk import Desk, actor_of
from testproject.shop_rows import fill_shop

from gm_chat.managers import registry
from gm_chat.managers.api import And, Condition, Related
from gm_chat.managers.conditions import added, conditions_of, dropped, exchanged, names_of
from gm_chat.managers.plan import build_plan

if TYPE_CHECKING:
    from gm_chat.managers.conditions import Found


@pytest.fixture
def desk(db: None) -> Desk:
    return Desk(registry.bindings(), actor_of(fill_shop(parts=1)["staff"]))


def filter_of(desk: Desk, filters: dict[str, Any]) -> And:
    return build_plan(
        {"manager": "PartManager", "fields": ["name"], "filters": filters}, desk.view, max_results=1
    ).where


def the(desk: Desk, where: And, path: str) -> Found:
    (found,) = [found for found in conditions_of(where, "PartManager", desk.view) if "__".join(found.path) == path]
    return found


FILTERS = {
    "name": "a",
    "material": {"name__icontains": "b", "density__gt": 1},
    "or": [{"supplier__name": "c"}, {"number": "d"}],
    "not": {"name": "e"},
    "first": {"per": [], "order_by": ["price"], "where": {"description": "f"}},
}


def test_conditions_are_found_with_their_fields(desk: Desk) -> None:
    found = {
        "__".join(item.path): (item.owner, item.is_required, item.condition.value)
        for item in conditions_of(filter_of(desk, FILTERS), "PartManager", desk.view)
    }
    assert found == {
        "name": ("PartManager", True, "a"),
        "material__name": ("MaterialManager", True, "b"),
        "material__density": ("MaterialManager", True, 1.0),
        "supplier__name": ("SupplierManager", False, "c"),
        "number": ("PartManager", False, "d"),
        "description": ("PartManager", False, "f"),
    }


@pytest.mark.parametrize("path", ["name", "material__name", "supplier__name", "number", "description"])
def test_one_condition_is_exchanged_and_back(desk: Desk, path: str) -> None:
    where = filter_of(desk, FILTERS)
    condition = the(desk, where, path).condition
    other = Condition(condition.path, "icontains", "other")
    changed = exchanged(where, condition, other)
    assert the(desk, changed, path).condition == other
    assert repr(changed).count("'other'") == 1
    assert exchanged(changed, other, condition) == where


def test_a_relation_that_leads_to_nothing_else_is_dropped_with_its_condition(desk: Desk) -> None:
    where = filter_of(desk, {"name": "a", "projects": {"parts": {"number": "x"}}, "material": {"name": "b", "id": 1}})
    rest = dropped(where, the(desk, where, "projects__parts__number").condition)
    assert names_of(rest) == ["name", "material__name", "material__id"]
    rest = dropped(rest, the(desk, rest, "material__name").condition)
    assert names_of(rest) == ["name", "material__id"]
    assert names_of(filter_of(desk, {"supplier__isnull": False, "material": {"parts__isnull": True}})) == [
        "supplier",
        "material__parts",
    ]


def test_what_is_added_is_said_of_the_row_that_is_spoken_of(desk: Desk) -> None:
    where = filter_of(desk, {"projects": {"budget__gt": 5}})
    (budget,) = [item.condition for item in conditions_of(where, "PartManager", desk.view)]
    name = Condition(("name",), "icontains", "x")
    assert added(where, ("projects", "name"), "icontains", "x") == And((Related("projects", And((budget, name))),))
    assert added(And(()), ("projects", "lines", "name"), "icontains", "x") == And(
        (Related("projects", And((Related("lines", And((name,))),))),)
    )
    assert added(where, ("name",), "icontains", "x") == And((*where.parts, name))


def test_names_say_what_a_filter_is_about(desk: Desk) -> None:
    names = names_of(filter_of(desk, FILTERS))
    assert sorted(names) == ["first", "material__density", "material__name", "name", "number", "supplier__name"]
