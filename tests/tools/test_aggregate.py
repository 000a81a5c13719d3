from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from testproject.calling import call
from testproject.shop import models as shop

from gm_chat.encoding import to_json
from gm_chat.managers import registry
from gm_chat.managers.index import SchemaIndex
from gm_chat.managers.service import DataService
from gm_chat.plugin import ToolContext, ToolError
from gm_chat.tools import aggregate, query
from gm_chat.tools.query import HIDDEN_NOTE, MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    Contexts = Callable[..., ToolContext]


def ask(context: ToolContext, **args: Any) -> dict[str, Any]:
    result: dict[str, Any] = call(aggregate, {"manager": "PartManager", "measures": {"n": "count()"}, **args}, context)
    assert to_json(result)
    return result


def test_the_schemas_of_reading_tools_stay_small() -> None:
    """Every round pays for them: 2,500 characters are about 700 tokens, as ``bench/query.py`` counts."""
    shown = [
        {
            "name": tool.definition.name,
            "description": tool.definition.description,
            "parameters": tool.definition.input_schema,
        }
        for tool in (query, aggregate)
    ]
    assert sum(len(json.dumps({"type": "function", "function": item})) for item in shown) < 2_500


def test_one_object(context_for: Contexts) -> None:
    assert ask(context_for("staff")) == {"data": [{"n": 12}], "has_more": False}


def test_groups(context_for: Contexts) -> None:
    result = ask(context_for("staff"), group_by=["material__name"], order_by=["-n"], limit=2)
    assert set(result) == {"data", "has_more"}
    assert (len(result["data"]), result["has_more"]) == (2, True)
    assert list(result["data"][0]) == ["material__name", "n"]
    whole = ask(context_for("staff"), group_by=["material__name"])
    assert whole["total_count"] == len(whole["data"])
    assert sum(row["n"] for row in whole["data"]) == 12
    rest = ask(context_for("staff"), group_by=["material__name"], order_by=["-n"], offset=2)
    assert len(rest["data"]) == whole["total_count"] - 2
    assert rest["total_count"] == whole["total_count"]
    assert "total_count" not in ask(context_for("staff"), group_by=["material__name"], offset=99)


def test_one_statement(context_for: Contexts) -> None:
    measures = {
        "n": "count()",
        "lines": "count(order_lines)",
        "latest": "max(max(order_lines__order__ordered_at))",
        "drafts": {"formula": "count()", "where": {"status": "draft", "tags__name__icontains": "1"}},
        "share": "share(lines)",
    }
    with CaptureQueriesContext(connection) as statements:
        ask(
            context_for("staff"),
            measures=measures,
            group_by=["material__name", "created_at__month"],
            filters={"first": {"per": ["number"], "order_by": ["id"]}, "supplier__isnull": False},
            having={"n__gte": 1, "share__gte": 0},
            order_by=["-lines"],
        )
    assert len(statements) == 1
    with CaptureQueriesContext(connection) as statements:
        ask(context_for("staff"), measures=measures, group_by=["created_at__month"], fill=True)
    assert len(statements) == 1


def test_a_limit_above_max_results_is_lowered(context_for: Contexts) -> None:
    result = ask(context_for("staff", max_results=3), group_by=["number"], limit=10**9)
    assert (len(result["data"]), result["has_more"]) == (3, True)


def test_choices_come_with_their_labels(context_for: Contexts) -> None:
    statuses = {"draft": "In design", "released": "Released", "obsolete": "No longer used"}
    assert ask(context_for("staff"), group_by=["status"])["labels"] == {"status": statuses}
    result = ask(context_for("staff"), manager="OrderLineManager", group_by=["part__status", "order__status"])
    assert result["labels"]["part__status"] == statuses
    assert result["labels"]["order__status"]["open"] == "Open"
    assert "labels" not in ask(context_for("staff"), group_by=["status"], filters={"number": "no such"})


def test_the_note_depends_on_the_actor_s_rights_alone(context_for: Contexts) -> None:
    touching: list[dict[str, Any]] = [
        {"manager": "OrderManager"},
        {"manager": "OrderManager", "filters": {"number": "no such"}},
        {"measures": {"n": "count(order_lines)"}},
        {"measures": {"n": {"formula": "count()", "where": {"order_lines__quantity": 1}}}},
        {"filters": {"not": {"order_lines__quantity": 1}}},
        {"filters": {"first": {"per": [], "order_by": ["id"], "where": {"order_lines__quantity": 1}}}},
    ]
    for args in touching:
        assert ask(context_for("plain"), **args)["note"] == HIDDEN_NOTE
    assert "note" not in ask(context_for("plain"))


def test_large_results_drop_whole_groups(context_for: Contexts) -> None:
    material = shop.Material.objects.first()
    shop.Part.objects.bulk_create(
        shop.Part(number=f"L{number}", name="large", description="x" * 5_000, material=material) for number in range(50)
    )
    args: dict[str, Any] = {"filters": {"name": "large"}, "group_by": ["number"]}
    result = ask(context_for("staff"), measures={"text": "max(description)"}, **args)
    assert (result["truncated"], result["has_more"]) == (True, True)
    assert 0 < len(result["data"]) < 50
    assert len(json.dumps(result["data"])) < 2 * MAX_BYTES
    assert "total_count" not in result


def test_the_deadline_reaches_the_database(context_for: Contexts) -> None:
    with pytest.raises(ToolError) as caught:
        ask(context_for("staff", deadline=time.monotonic() - 1))
    assert caught.value.code == "timeout"


def test_the_deadline_ends_a_statement_that_runs(context_for: Contexts) -> None:
    """Ten thousand times ten thousand rows: it would take minutes."""
    material = shop.Material.objects.first()
    shop.Part.objects.bulk_create(
        shop.Part(number=f"D{number}", name="d", material=material) for number in range(10_000)
    )
    args: dict[str, Any] = {
        "filters": {"material__parts": {"id__gt": {"outer": "id"}, "description__icontains": "nothing"}},
        "measures": {"n": "count()", "m": {"formula": "count()", "where": {"material__parts__id": {"outer": "id"}}}},
    }
    start = time.monotonic()
    with pytest.raises(ToolError) as caught:
        ask(context_for("staff", deadline=start + 0.3), **args)
    assert caught.value.code == "timeout"


def test_hidden_things_are_answered_like_unknown_ones(context_for: Contexts) -> None:
    errors = []
    for name in ("PaymentManager", "PeymantManager"):
        with pytest.raises(ToolError) as caught:
            ask(context_for("plain"), manager=name)
        error = caught.value
        errors.append((error.code, error.message.replace(name, "?"), sorted(error.details["allowed"])))
    assert errors[0] == errors[1]
    for args in ({"measures": "sum(salary)"}, {"group_by": ["salary"]}, {"filters": {"salary__gt": 1}}):
        with pytest.raises(ToolError) as caught:
            ask(context_for("plain"), manager="EmployeeManager", **args)
        assert caught.value.code.startswith("unknown_")
        assert "salary" not in caught.value.details["allowed"]


def test_a_source_that_cannot_compute_says_so(context_for: Contexts) -> None:
    info = registry.bindings()["PartManager"].info

    class Reading:
        name = "reading"

        def describe(self) -> list[Any]:
            return [info]

        async def visibility(self, actor: Any) -> Any:
            from gm_chat.managers.visibility import visibility_of

            return visibility_of(actor, {"PartManager": registry.bindings()["PartManager"]})

        async def execute(self, plan: Any, actor: Any, *, deadline: float | None) -> Any:
            raise AssertionError

        async def mutate(self, call: Any, actor: Any, *, deadline: float | None) -> Any:
            raise AssertionError

    staff = context_for("staff")
    source: Any = Reading()
    service = DataService(SchemaIndex.build(source.describe()), [source])
    context = ToolContext(staff.turn, "call", service, staff.settings, deadline=None)
    with pytest.raises(ToolError) as caught:
        ask(context)
    assert caught.value.code == "unsupported"
    assert "read its rows with query" in caught.value.message


def test_empty_periods(context_for: Contexts) -> None:
    for month in (2, 5):
        shop.Order.objects.create(number=f"N{month}", customer="x", ordered_at=f"2022-0{month}-15T12:00Z")
    args: dict[str, Any] = {
        "manager": "OrderManager",
        "filters": {"customer": "x"},
        "group_by": ["ordered_at__month"],
        "measures": {"n": "count()", "first": "min(ordered_at)", "change": "change(n)", "so_far": "running(n)"},
    }
    assert len(ask(context_for("staff"), **args)["data"]) == 2
    result = ask(context_for("staff"), **args, fill=True)["data"]
    assert [row["ordered_at__month"] for row in result] == [f"2022-0{month}-01" for month in (2, 3, 4, 5)]
    assert [row["n"] for row in result] == [1, 0, 0, 1]
    assert [row["change"] for row in result] == [None, -1, 0, 1]
    assert [row["so_far"] for row in result] == [1, 1, 1, 2]
    assert [row["first"] is None for row in result] == [False, True, True, False]
    none = ask(context_for("staff"), **args, fill=True, having={"n": 0}, order_by=["-ordered_at__month"], limit=1)
    assert [row["ordered_at__month"] for row in none["data"]] == ["2022-04-01"]
    assert none["has_more"] is True
    filters = {"customer": "x", "ordered_at__gte": "2022-01-15", "ordered_at__lt": "2022-07-01"}
    wide = ask(context_for("staff"), **{**args, "filters": filters}, fill=True)["data"]
    assert [row["n"] for row in wide] == [0, 1, 0, 0, 1, 0]
    year = ask(context_for("staff"), **{**args, "filters": {"customer": "x", "ordered_at__year": 2022}}, fill=True)
    assert year["total_count"] == 12
    args |= {"group_by": ["ordered_at__day"], "filters": {"ordered_at__gte": "1800-01-01"}}
    with pytest.raises(ToolError) as caught:
        ask(context_for("staff"), **args, fill=True)
    assert caught.value.code == "too_large"
