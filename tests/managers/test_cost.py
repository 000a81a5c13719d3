"""What is too large is refused before a single statement, whichever way it grows."""

from __future__ import annotations

from typing import Any

import pytest
from testproject.calling import answer, context_of
from testproject.desk import Desk, actor_of, whole_view
from testproject.shop_rows import fill_shop

from gm_chat.managers import registry
from gm_chat.managers.aggregate import build_aggregate
from gm_chat.managers.api import And, Condition, First, Not, Or, QueryPlan, Related, RelationSelection, Selection
from gm_chat.managers.cost import subselects_of, values_of
from gm_chat.managers.plan import PlanLimits, build_plan
from gm_chat.plugin import ToolError
from gm_chat.tools import aggregate, query

VIEW = whole_view()


def nested(inner: Any, key: str, times: int, *, listed: bool = False) -> Any:
    for _ in range(times):
        inner = {key: [inner] if listed else inner}
    return inner


def first(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"per": [], "order_by": ["id"]}
    for _ in range(depth):
        inner = {"per": [], "order_by": ["id"], "where": {"first": inner}}
    return {"first": inner}


BEHIND = {"tags__name": "x", "projects__code": "x", "documents__title": "x", "order_lines__order__number": "x"}
BEHIND["material__parts__name"] = "x"
LISTS = [{name: ["*"]} for name in ("order_lines", "documents", "bomline", "projects", "remarks", "tags")]
TOO_LARGE: dict[str, dict[str, Any]] = {
    "fields 30 deep": {"manager": "EmployeeManager", "fields": [nested("name", "boss", 30, listed=True)]},
    "a path 30 deep": {"manager": "EmployeeManager", "fields": ["boss__" * 30 + "name"]},
    "5,000 fields": {"fields": ["name"] * 5_000},
    "many stars": {"fields": ["*", *(f"{name}__*" for name in ("material", "supplier"))] * 20},
    "many relations": {"fields": [*LISTS, {"material": [{"parts": LISTS}]}, {"supplier": [{"parts": LISTS}]}]},
    "lists of lists of lists": {
        "fields": ["*", {"material": [{"parts": ["*", *LISTS, {"supplier": [{"parts": LISTS}]}]}]}]
    },
    "5,000 filters": {"fields": ["id"], "filters": {"or": [{"name": "x"}] * 5_000}},
    "5,000 lookups": {"fields": ["id"], "filters": {"and": [{"id": {"gt": 1, "lt": 9}}] * 2_500}},
    "filters 30 deep": {"manager": "EmployeeManager", "fields": ["id"], "filters": nested({"name": "x"}, "boss", 30)},
    "a filter's path 30 deep": {
        "manager": "EmployeeManager",
        "fields": ["id"],
        "filters": {"boss__" * 30 + "name": "x"},
    },
    "not 30 deep": {"fields": ["id"], "filters": nested({"name": "x"}, "not", 30)},
    "first 30 deep": {"fields": ["id"], "filters": first(30)},
    "a list of 5,000 values": {"fields": ["id"], "filters": {"id__in": list(range(5_000))}},
    "an order of 30": {"fields": ["id"], "order_by": ["name", "-price"] * 15},
    "an order 30 deep": {"manager": "EmployeeManager", "fields": ["id"], "order_by": ["boss__" * 30 + "name"]},
    "first of 30": {"fields": ["id"], "order_by": ["id"], "first_per": ["name"] * 30},
}
AGGREGATES: dict[str, dict[str, Any]] = {
    "5,000 measures": {"measures": {f"m{number}": "count()" for number in range(5_000)}},
    "a long formula": {"measures": " + ".join(["sum(price)"] * 500)},
    "a formula 30 deep": {"measures": "(" * 30 + "count()" + ")" * 30},
    "a formula's path 30 deep": {"manager": "EmployeeManager", "measures": f"sum({'boss__' * 30}salary)"},
    "measures of measures": {
        "measures": {"m0": "count()"} | {f"m{n}": " * ".join([f"m{n - 1}"] * 40) for n in range(1, 9)},
        "group_by": ["name"],
    },
    "5,000 groups": {"group_by": ["name"] * 5_000, "measures": "count()"},
    "a group 30 deep": {"manager": "EmployeeManager", "group_by": ["boss__" * 30 + "name"], "measures": "count()"},
    "5,000 filters": {"measures": "count()", "filters": {"or": [{"name": "x"}] * 5_000}},
    "5,000 filters of a measure": {"measures": {"n": {"formula": "count()", "where": {"or": [{"name": "x"}] * 5_000}}}},
    "5,000 conditions on groups": {"measures": "count()", "group_by": ["id"], "having": {"or": [{"value": 1}] * 5_000}},
    "an order of 30": {"measures": "count()", "group_by": ["name"], "order_by": ["name"] * 30},
    "filters behind relations in each measure": {
        "measures": {f"m{number}": {"formula": "count()", "where": BEHIND | {"id": number}} for number in range(12)}
    },
    "what lies behind relations in each measure": {
        "measures": {
            f"m{n}": " + ".join(f"sum(sum(order_lines__quantity)) * {n + k}" for k in range(10)) for n in range(9)
        }
    },
}
QUESTIONS = [
    *((query, args, name) for name, args in TOO_LARGE.items()),
    *((aggregate, args, name) for name, args in AGGREGATES.items()),
]


@pytest.mark.parametrize(
    ("tool", "args"), [pytest.param(t, a, id=f"{t.definition.name}: {n}") for t, a, n in QUESTIONS]
)
def test_what_is_too_large_runs_no_statement(db: None, tool: Any, args: dict[str, Any]) -> None:
    """The user is one whose rights need no look-up, so that any statement would be the plan's."""
    context = context_of(Desk(registry.bindings(), actor_of(fill_shop(parts=2)["staff"])))
    text, statements = answer(tool, {"manager": "PartManager", **args}, context)
    assert '"error":"too_large"' in text, text[:300]
    assert statements == 0
    assert len(text) < 3_000


def test_the_values_of_a_full_page() -> None:
    def lines(limit: int | None, *inner: RelationSelection) -> RelationSelection:
        return RelationSelection("lines", Selection(("a", "b"), inner), limit)

    plan = QueryPlan(
        "M", Selection(("a", "b", "c"), (lines(10, lines(None), lines(100)),)), limit=20, nested_rows=1_000
    )
    assert values_of(plan) == 20 * 3 + 200 * 2 + 200 * 2 + 1_000 * 2
    assert values_of(QueryPlan("M", Selection((), (lines(5),)), limit=3)) == 3 + 15 * 2


def test_the_subselects_of_a_condition() -> None:
    leaf = Condition(("a", "b", "c"), "exact", 1)
    where = And((leaf, Or((Not(Related("r", leaf)), First((), (), And((leaf,))))), Related("r", And(()))))
    assert subselects_of(where) == 2 + (1 + 2) + (1 + 2) + 1


def test_both_bounds_are_limits_of_a_plan() -> None:
    args: dict[str, Any] = {"manager": "PartManager", "fields": ["id", "name"], "filters": {"tags": {"name": "x"}}}
    for limits in (PlanLimits(values=3), PlanLimits(subselects=0)):
        with pytest.raises(ToolError) as caught:
            build_plan(args, VIEW, max_results=2, limits=limits)
        assert caught.value.code == "too_large"
    build_plan(args, VIEW, max_results=2, limits=PlanLimits(values=4, subselects=1))
    sums = {"manager": "PartManager", "measures": "sum(count(tags))"}
    with pytest.raises(ToolError, match="ask in several steps"):
        build_aggregate(sums, VIEW, max_results=2, limits=PlanLimits(subselects=0))
    build_aggregate(sums, VIEW, max_results=2, limits=PlanLimits(subselects=1))
