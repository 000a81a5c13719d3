from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from testproject.calling import call
from testproject.shop import models as shop

from gm_chat.encoding import to_json
from gm_chat.plugin import ToolError
from gm_chat.tools import query
from gm_chat.tools.query import HIDDEN_NOTE

if TYPE_CHECKING:
    from collections.abc import Callable

    from gm_chat.plugin import ToolContext

    Contexts = Callable[..., ToolContext]


def ask(context: ToolContext, **args: Any) -> dict[str, Any]:
    result: dict[str, Any] = call(query, {"manager": "PartManager", "fields": ["name"], **args}, context)
    assert to_json(result)
    return result


def test_a_page(context_for: Contexts) -> None:
    result = ask(context_for("staff"), limit=5, fields=["number", "material__name"])
    assert set(result) == {"data", "total_count", "has_more"}
    assert (len(result["data"]), result["total_count"], result["has_more"]) == (5, 12, True)
    assert result["data"][0]["number"] == "P-000"


def test_a_limit_above_max_results_is_lowered(context_for: Contexts) -> None:
    result = ask(context_for("staff", max_results=3), limit=10**9)
    assert (len(result["data"]), result["has_more"]) == (3, True)


def test_choices_come_with_their_labels(context_for: Contexts) -> None:
    result = ask(context_for("staff"), fields=["status", {"order_lines": ["order__status"]}])
    assert {row["status"] for row in result["data"]} <= {"draft", "released", "obsolete"}
    assert result["labels"] == {
        "status": {"draft": "In design", "released": "Released", "obsolete": "No longer used"},
        "order_lines__order__status": {"open": "Open", "shipped": "Shipped", "cancelled": "Cancelled"},
    }


def test_the_note_depends_on_the_actor_s_rights_alone(context_for: Contexts) -> None:
    touching: list[dict[str, Any]] = [
        {"manager": "OrderManager", "fields": ["number"]},
        {"manager": "OrderManager", "fields": ["number"], "filters": {"number": "no such"}},
        {"fields": ["name", {"order_lines": ["quantity"]}]},
        {"filters": {"not": {"order_lines__quantity": 1}}},
    ]
    for args in touching:
        assert (ask(context_for("plain"), **args))["note"] == HIDDEN_NOTE
    assert "note" not in ask(context_for("plain"))


def test_large_rows_truncate(context_for: Contexts) -> None:
    material = shop.Material.objects.first()
    shop.Part.objects.bulk_create(
        shop.Part(number=f"L{number}", name="large", description="x" * 5_000, material=material) for number in range(50)
    )
    result = ask(context_for("staff"), fields=["description"], filters={"name": "large"})
    assert result["truncated"] is True
    assert (result["total_count"], result["has_more"]) == (50, True)
    assert 0 < len(result["data"]) < 50
    shop.Part.objects.filter(number="L0").update(description="x" * 2_000_000)
    result = ask(context_for("staff"), fields=["description"], filters={"number": "L0"})
    assert (result["data"], result["truncated"], result["total_count"]) == ([], True, 1)
    assert "fewer fields" in result["hint"]


def test_cut_lists_are_named(context_for: Contexts) -> None:
    material = shop.Material.objects.create(name="common", density=1)
    shop.Part.objects.bulk_create(shop.Part(number=f"C{number}", name="c", material=material) for number in range(101))
    args: dict[str, Any] = {"manager": "MaterialManager", "fields": [{"parts": ["id"]}], "filters": {"name": "common"}}
    result = ask(context_for("staff"), **args)
    assert len(result["data"][0]["parts"]) == 100
    assert result["cut_lists"]["paths"] == ["parts"]


def test_the_deadline_reaches_the_database(context_for: Contexts) -> None:
    with pytest.raises(ToolError) as caught:
        ask(context_for("staff", deadline=time.monotonic() - 1))
    assert caught.value.code == "timeout"


def test_a_hidden_manager_is_answered_like_an_unknown_one(context_for: Contexts) -> None:
    errors = []
    for name in ("PaymentManager", "PeymantManager"):
        with pytest.raises(ToolError) as caught:
            ask(context_for("plain"), manager=name)
        error = caught.value
        errors.append((error.code, error.message.replace(name, "?"), sorted(error.details["allowed"])))
    assert errors[0] == errors[1]
    with pytest.raises(ToolError) as caught:
        ask(context_for("plain"), manager="EmployeeManager", fields=["salary"])
    assert caught.value.code == "unknown_field"
    assert "salary" not in caught.value.details["allowed"]
