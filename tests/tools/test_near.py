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
    return shop.Material.objects.create(name="Aluminium EN AW-6060", density=2.7)


def ask(context: ToolContext, filters: dict[str, Any], manager: str = "PartManager") -> dict[str, Any]:
    result: dict[str, Any] = call(query, {"manager": manager, "fields": ["id"], "filters": filters}, context)
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
    hint = ask(context_for("staff"), filters)["hint"]
    assert "'Aluminium EN AW-6060'" in hint
    assert hint.startswith("No row matches material__name ")
    assert hint.endswith(f'Try the filter {{"material__name__icontains": "{tried}"}}.')
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
    assert (result["total_count"], result.get("hint")) == (0, None)


def test_a_hint_shows_only_rows_that_the_actor_may_see(context_for: Contexts) -> None:
    hidden = shop.Order.objects.exclude(owner__username="plain").first()
    assert hidden is not None
    hidden.number = "SECRET-ORDER-1"
    hidden.save()
    filters = {"number": "SECRET-ORDER-2"}
    assert "SECRET-ORDER-1" in ask(context_for("staff"), filters, "OrderManager")["hint"]
    ask(context_for("plain"), {}, "OrderManager")  # loads the user's permissions
    with CaptureQueriesContext(connection) as near:
        seen = ask(context_for("plain"), filters, "OrderManager")
    with CaptureQueriesContext(connection) as far:
        ask(context_for("plain"), {"number": "XECRET-ORDER-2"}, "OrderManager")
    assert "hint" not in seen
    assert len(near) == len(far)


def test_looking_costs_a_few_statements_and_long_values_are_cut(context_for: Contexts) -> None:
    shop.Material.objects.create(name="Long " + "x" * 90, density=1)
    filters = {"or": [{"name": f"nothing {number}"} for number in range(15)]}
    with CaptureQueriesContext(connection) as statements:
        ask(context_for("staff"), filters, "MaterialManager")
    assert len(statements) <= 14
    hint = ask(context_for("staff"), {"name": "long xy"}, "MaterialManager")["hint"]
    assert "x" * 56 not in hint
    assert "x" * 55 in hint


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
