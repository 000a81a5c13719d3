"""What a query says when a text filter matches nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from testproject.calling import call
from testproject.shop import models as shop

from gm_chat.plugin import ToolError
from gm_chat.tools import query

if TYPE_CHECKING:
    from collections.abc import Callable

    from gm_chat.plugin import ToolContext

    Contexts = Callable[..., ToolContext]


@pytest.fixture
def metal(context_for: Contexts) -> shop.Material:
    material = shop.Material.objects.create(name="Aluminium EN AW-6060", density=2.7)
    shop.Part.objects.create(number="A-1", name="Frame", material=material, price=1)
    return material


def ask(context: ToolContext, filters: dict[str, Any], manager: str = "PartManager") -> dict[str, Any]:
    result: dict[str, Any] = call(
        query,
        {"manager": manager, "fields": ["number" if manager != "MaterialManager" else "name"], "filters": filters},
        context,
    )
    return result


@pytest.mark.parametrize(
    ("filters", "tried"),
    [
        ({"material__name__icontains": "aluminum"}, "alumin"),
        ({"material": {"name": "aluminium"}}, "aluminium"),
        ({"and": [{"price__gte": 0}, {"or": [{"material__name__istartswith": "Aluminum alloy"}]}]}, "Alumin"),
        ({"material__name": " ALUMINIUM "}, "ALUMINIUM"),
    ],
)
def test_similar_values_come_with_the_filter_to_try(
    filters: dict[str, Any], tried: str, metal: shop.Material, context_for: Contexts
) -> None:
    result = ask(context_for("staff"), filters)
    assert (result["data"], result["total_count"]) == ([], 0)
    assert result["similar_rows"] == [{"number": "A-1"}]
    assert result["hint"].startswith("No row has material__name ")
    assert f'The filter {{"material__name__icontains": "{tried}"}} instead matches 1 rows' in result["hint"]
    assert "hint" not in ask(context_for("staff"), {"name__icontains": tried}, "MaterialManager")


@pytest.mark.parametrize(
    "filters",
    [
        {"material__name": "zzzzzz"},
        {"material__name": "al"},
        {"price__gt": 10**9},
        {"not": {"material__name__icontains": "material"}},
        {"status": "draft", "price__gt": 10**9},
    ],
)
def test_nothing_similar_is_no_hint(filters: dict[str, Any], metal: shop.Material, context_for: Contexts) -> None:
    result = ask(context_for("staff"), filters)
    assert set(result) == {"data", "total_count", "has_more"}


def test_a_hint_shows_only_rows_that_the_actor_may_see(context_for: Contexts) -> None:
    hidden = shop.Order.objects.exclude(owner__username="plain").first()
    assert hidden is not None
    hidden.number = "SECRET-ORDER-1"
    hidden.save()
    filters = {"number": "SECRET-ORDER-2"}
    assert ask(context_for("staff"), filters, "OrderManager")["similar_rows"] == [{"number": "SECRET-ORDER-1"}]
    ask(context_for("plain"), {}, "OrderManager")  # loads the user's permissions
    with CaptureQueriesContext(connection) as near:
        seen = ask(context_for("plain"), filters, "OrderManager")
    with CaptureQueriesContext(connection) as far:
        ask(context_for("plain"), {"number": "XECRET-ORDER-2"}, "OrderManager")
    assert not {"hint", "similar_rows"} & set(seen)
    assert len(near) == len(far)


def test_looking_costs_a_few_statements_and_long_values_are_cut(context_for: Contexts) -> None:
    shop.Material.objects.create(name="Long " + "x" * 90, density=1)
    filters = {"or": [{"name": f"nothing {number}"} for number in range(15)]}
    with CaptureQueriesContext(connection) as statements:
        ask(context_for("staff"), filters, "MaterialManager")
    assert len(statements) <= 14
    hint = ask(context_for("staff"), {"name": "x" * 90 + "z"}, "MaterialManager")["hint"]
    assert hint.startswith(f"No row has name {'x' * 60!r}. ")


def test_a_look_that_takes_too_long_gives_no_hint(
    metal: shop.Material, context_for: Contexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = context_for("staff")
    asked, run = [], context.managers.query

    async def slow(plan: Any, *args: Any, **more: Any) -> Any:
        asked.append(plan)
        if len(asked) > 1:
            raise ToolError("timeout", "the query took too long")
        return await run(plan, *args, **more)

    monkeypatch.setattr(context.managers, "query", slow)
    answer = ask(context, {"material__name": "aluminum"})
    assert (answer["total_count"], "hint" in answer, len(asked)) == (0, False, 2)
