"""What a query says when a text filter matches nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from testproject.calling import call
from testproject.shop import models as shop

from gm_chat.plugin import ToolError
from gm_chat.tools import aggregate, near, query

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
        {"not": {"material__name__icontains": "material"}},
        {"material__name": "zzzzzz", "price__gt": 0},
    ],
)
def test_nothing_similar_is_no_hint(filters: dict[str, Any], metal: shop.Material, context_for: Contexts) -> None:
    result = ask(context_for("staff"), filters)
    assert set(result) == {"data", "total_count", "has_more"}


def test_a_hint_shows_only_rows_that_the_actor_may_see(context_for: Contexts) -> None:
    hidden = shop.Order.objects.exclude(owner__username="plain").first()
    assert hidden is not None
    hidden.number = "SECRET-ORDER-ONE"
    hidden.save()
    filters = {"number": "SECRET-ORDER-TWO"}
    assert ask(context_for("staff"), filters, "OrderManager")["similar_rows"] == [{"number": "SECRET-ORDER-ONE"}]
    ask(context_for("plain"), {}, "OrderManager")  # loads the user's permissions
    with CaptureQueriesContext(connection) as close:
        seen = ask(context_for("plain"), filters, "OrderManager")
    with CaptureQueriesContext(connection) as far:
        ask(context_for("plain"), {"number": "XECRET-ORDER-TWO"}, "OrderManager")
    assert not {"hint", "similar_rows"} & set(seen)
    assert len(close) == len(far)


def test_looking_costs_a_few_statements_and_long_values_are_cut(context_for: Contexts) -> None:
    shop.Material.objects.create(name="Long " + "x" * 90, density=1)
    filters = {"or": [{"name": f"nothing {number}"} for number in range(15)]}
    with CaptureQueriesContext(connection) as statements:
        ask(context_for("staff"), filters, "MaterialManager")
    assert len(statements) <= 24
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


@pytest.fixture
def lander(metal: shop.Material) -> shop.Project:
    """A project with one part, whose name stands nowhere else."""
    project = shop.Project.objects.create(code="lm-1", name="Eagle lander")
    shop.BomLine.objects.create(project=project, part=shop.Part.objects.get(number="A-1"), position=1)
    return project


@pytest.mark.parametrize(
    ("manager", "filters", "meant"),
    [
        ("PartManager", {"name__icontains": "eagle"}, {"projects__name__icontains": "eagle"}),
        ("PartManager", {"number": "Frame"}, {"name__icontains": "Frame"}),
        ("PartManager", {"supplier__name": "Eagle lander"}, {"projects__name__icontains": "Eagle lander"}),
        ("MaterialManager", {"name": "Eagle"}, {"parts__projects__name__icontains": "Eagle"}),
        ("PartManager", {"material": {"name": "eagle"}}, {"projects__name__icontains": "eagle"}),
        ("PartManager", {"material": {"name": "eagle", "density__gt": 2}}, {"projects__name__icontains": "eagle"}),
        ("PartManager", {"material": {"name": "eagle", "density__gt": 3}}, None),
        ("PartManager", {"projects": {"code": "eagle"}}, {"projects__name__icontains": "eagle"}),
        ("PartManager", {"or": [{"name": "eagle"}, {"name": "hawk"}]}, None),
        ("PartManager", {"name": "eagle", "price__gte": 5}, None),
        ("PartManager", {"not": {"name__icontains": "Frame"}, "name": "eagle"}, None),
    ],
)
def test_a_text_that_stands_elsewhere_comes_with_the_filter_that_finds_it(
    manager: str, filters: dict[str, Any], meant: dict[str, str] | None, lander: shop.Project, context_for: Contexts
) -> None:
    shop.Part.objects.update(supplier=shop.Supplier.objects.create(name="Acme"))
    result = ask(context_for("staff"), filters, manager)
    assert (result["data"], result["total_count"]) == ([], 0)
    if meant is None:
        assert not {"hint", "similar_rows"} & set(result)
        return
    ((path, text),) = meant.items()
    assert f'The filter {{"{path}": "{text}' in result["hint"]
    if len(filters) == 1 and manager == "PartManager" and "supplier__name" not in filters:
        found = ask(context_for("staff"), {path: text})
        assert found["data"] == result["similar_rows"]


def test_a_text_of_hidden_rows_is_found_nowhere(context_for: Contexts) -> None:
    line = shop.OrderLine.objects.exclude(order__owner__username="plain").select_related("order", "part").first()
    assert line is not None
    shop.Order.objects.filter(pk=line.order_id).update(customer="Zyklotron")
    filters = {"name__icontains": "zyklotron"}
    hint = ask(context_for("staff"), filters)["hint"]
    assert '{"order_lines__order__customer__icontains": "zyklotron"} instead matches ' in hint
    ask(context_for("plain"), {})  # loads the user's permissions
    with CaptureQueriesContext(connection) as close:
        seen = ask(context_for("plain"), filters)
    with CaptureQueriesContext(connection) as far:
        ask(context_for("plain"), {"name__icontains": "xyklotron"})
    assert not {"hint", "similar_rows"} & set(seen)
    assert len(close) == len(far)


def test_a_source_that_cannot_run_one_filter_is_asked_the_others(
    metal: shop.Material, context_for: Contexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = context_for("staff")
    run = context.managers.query

    async def partial(plan: Any, *args: Any, **more: Any) -> Any:
        if "Or(" in repr(plan.where):
            raise ToolError("unsupported", "this source knows no or")
        return await run(plan, *args, **more)

    monkeypatch.setattr(context.managers, "query", partial)
    assert ask(context, {"material__name": "aluminum"})["similar_rows"] == [{"number": "A-1"}]


@pytest.mark.parametrize(
    ("arguments", "is_told"),
    [
        ({"measures": {"n": "count()"}, "filters": {"name__icontains": "eagle"}}, True),
        ({"measures": {"a": "sum(price)"}, "filters": {"name__icontains": "eagle"}}, True),
        ({"measures": {"n": "count()"}, "group_by": ["status"], "filters": {"name__icontains": "eagle"}}, True),
        ({"measures": {"n": "count()"}, "filters": {"name__icontains": "zzzzzz"}}, False),
        ({"measures": {"n": "count()"}, "filters": {"price__gt": 10**6}}, False),
        ({"measures": {"a": "sum(weight)"}, "filters": {"name__icontains": "frame"}}, False),
        ({"measures": {"n": "count()"}, "filters": {"name__icontains": "frame"}}, False),
    ],
)
def test_a_computation_over_no_row_is_told_as_well(
    arguments: dict[str, Any], *, is_told: bool, lander: shop.Project, context_for: Contexts
) -> None:
    result = call(aggregate, {"manager": "PartManager", **arguments}, context_for("staff"))
    hint = 'No row has name \'eagle\'. The filter {"projects__name__icontains": "eagle"} instead matches 1 rows.'
    assert (result.get("hint"), "similar_rows" in result) == (hint if is_told else None, False)
    if is_told:
        right = {"manager": "PartManager", **arguments, "filters": {"projects__name__icontains": "eagle"}}
        assert result["corrected"] == right
        assert "hint" not in call(aggregate, result["corrected"], context_for("staff"))


@pytest.mark.parametrize(
    ("filters", "counts", "rows"),
    [
        ({"price__lt": 0}, {"price": 13}, 5),
        ({"status": "released", "price__lt": 0}, {"price": 3}, 3),
        ({"weight__isnull": False, "number": "A-1"}, {"weight": 1}, 1),
        ({"material": {"density__gt": 99, "density__lt": 100}}, {"material__density": 13}, 5),
        ({"material": {"density__gt": 99, "notes__isnull": False}}, {"material__density, material__notes": 13}, 5),
        ({"first": {"per": [], "order_by": ["id"], "where": {"price__lt": 0}}}, {"first": 13}, 5),
        ({"tags": None, "price__lt": 0}, {"price": 4}, 4),
    ],
)
def test_a_bound_that_keeps_all_rows_out_is_named(
    filters: dict[str, Any], counts: dict[str, int], rows: int, metal: shop.Material, context_for: Contexts
) -> None:
    result = ask(context_for("staff"), filters)
    assert (result["data"], result["total_count"], len(result["similar_rows"])) == ([], 0, rows)
    assert result["matches_without"] == counts
    assert "hint" not in result


@pytest.mark.parametrize(
    ("filters", "counts"),
    [
        ({"status": "obsolete"}, None),
        ({"status__in": ["obsolete"]}, None),
        ({"purchased": True}, None),
        ({"material": {"parts__status": "obsolete"}}, None),
        ({"status": "obsolete", "number": "A-1"}, {"status": 1}),
    ],
)
def test_that_nothing_has_a_status_is_an_answer(
    filters: dict[str, Any], counts: dict[str, int] | None, metal: shop.Material, context_for: Contexts
) -> None:
    shop.Part.objects.filter(status="obsolete").update(status="draft")
    shop.Part.objects.update(purchased=False)
    result = ask(context_for("staff"), filters)
    assert (result["total_count"], result.get("matches_without"), "similar_rows" in result) == (0, counts, bool(counts))


def test_a_flag_that_is_never_empty_is_meant_to_be_off(metal: shop.Material, context_for: Contexts) -> None:
    shop.Part.objects.create(number="A-2", name="Frame", material=metal, price=1, purchased=True)
    result = ask(context_for("staff"), {"name": "Frame", "purchased__isnull": True})
    assert (result["data"], result["total_count"], result["similar_rows"]) == ([], 0, [{"number": "A-1"}])
    assert result["hint"] == 'No row lacks purchased. The filter {"purchased": false} instead matches 1 rows.'
    assert result["corrected"]["filters"] == {"name": "Frame", "purchased": False}
    shop.Part.objects.update(purchased=True)
    assert "hint" not in ask(context_for("staff"), {"name": "Frame", "purchased__isnull": True})


def test_two_bounds_of_which_each_alone_keeps_rows_out_are_both_told(context_for: Contexts) -> None:
    for number, price in (("A-2", 10), ("A-3", 20)):
        material = shop.Material.objects.all()[0]
        shop.Part.objects.create(number=number, name="Pin", weight=number[-1], price=price, material=material)
    assert ask(context_for("staff"), {"price": 10, "weight": 3})["matches_without"] == {"price": 1, "weight": 1}


@pytest.mark.parametrize(
    ("filters", "counts"),
    [
        ({"name": "Frame", "price__gt": 1000}, {"price": 1}),
        ({"name": "Frame", "number": "P-000"}, None),
        ({"name__icontains": "frame", "supplier__name": "zzzzzz"}, None),
    ],
)
def test_a_text_that_some_row_has_is_not_what_is_wrong(
    filters: dict[str, Any], counts: dict[str, int] | None, metal: shop.Material, context_for: Contexts
) -> None:
    shop.Part.objects.create(number="B-1", name="Frame cutter", price=2000, material=metal)
    result = ask(context_for("staff"), filters)
    assert (result["total_count"], result.get("matches_without"), result.get("hint")) == (0, counts, None)


@pytest.mark.parametrize("filters", [{"id": 10**6}, {"id__in": [10**6]}, {"material__id": 10**6}, {"name__in": ["zz"]}])
def test_a_key_or_name_that_nothing_has_is_an_answer(filters: dict[str, Any], context_for: Contexts) -> None:
    assert set(ask(context_for("staff"), filters)) == {"data", "total_count", "has_more"}


@pytest.mark.parametrize("text", ["Project 17", "P-99999", "x" * 300])
def test_what_differs_by_a_figure_or_is_no_name_is_something_else(text: str, context_for: Contexts) -> None:
    part = shop.Part.objects.all()[0]
    shop.Part.objects.filter(pk=part.pk).update(description="x" * 400)
    for number in range(3):
        project = shop.Project.objects.create(code=f"fig-{number}", name=f"Project {number}")
        shop.BomLine.objects.create(project=project, part=part, position=1)
    assert "hint" not in ask(context_for("staff"), {"name__icontains": text})


def test_the_text_is_sought_in_the_related_row_that_the_filters_speak_of(
    lander: shop.Project, context_for: Contexts
) -> None:
    other = shop.Project.objects.create(code="lm-2", name="Other", budget=900)
    shop.BomLine.objects.create(project=other, part=shop.Part.objects.get(number="A-1"), position=1)
    filters = {"projects": {"code__icontains": "eagle", "budget__gt": 500}}
    assert "eagle" not in ask(context_for("staff"), filters).get("hint", "")


def test_rows_are_no_more_than_the_chat_may_show(metal: shop.Material, context_for: Contexts) -> None:
    context = context_for("staff", max_results=2)
    assert len(ask(context, {"material__name": "Mat", "price__gte": 0})["similar_rows"]) == 2
    assert len(ask(context, {"price__lt": 0})["similar_rows"]) == 2


def test_what_breaks_nearby_breaks_no_result(
    metal: shop.Material, context_for: Contexts, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    context = context_for("staff")
    run = context.managers.query

    async def broken(plan: Any, *args: Any, **more: Any) -> Any:
        if plan.manager == "ProjectManager":
            raise RuntimeError("a project's own code")
        return await run(plan, *args, **more)

    monkeypatch.setattr(context.managers, "query", broken)
    assert set(ask(context, {"name": "eagle"})) == {"data", "total_count", "has_more"}
    assert "the look for rows near those of PartManager failed" in caplog.text


def test_a_look_among_many_ways_ends(
    lander: shop.Project, context_for: Contexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = context_for("staff")
    nearby, run, asked = near._nearby, context.managers.query, []

    def by_many_ways(name: str, view: Any) -> Any:
        for paths, manager in nearby(name, view):
            yield paths * 50, manager

    async def counted(plan: Any, *args: Any, **more: Any) -> Any:
        asked.append(plan.manager)
        return await run(plan, *args, **more)

    monkeypatch.setattr(near, "_nearby", by_many_ways)
    monkeypatch.setattr(context.managers, "query", counted)
    ask(context, {"name": "eagle", "price__lt": 0})
    assert len(asked) < near.MAX_SEARCHES + near.MAX_PATHS + 10


@pytest.mark.parametrize(
    ("filters", "corrected"),
    [
        ({"name__icontains": "eagle"}, {"projects__name__icontains": "eagle"}),
        ({"name": "eagle", "price__gte": 0}, {"price__gte": 0, "projects__name__icontains": "eagle"}),
        ({"material__name": "ALUMINIUM"}, {"material__name__icontains": "ALUMINIUM"}),
        ({"material__name": "aluminum"}, None),  # only its beginning is found
        ({"material": {"name": "eagle"}}, None),
        ({"name": "eagle", "number__icontains": "eagle"}, None),
    ],
)
def test_the_very_text_comes_with_the_call_that_finds_it(
    filters: dict[str, Any], corrected: dict[str, Any] | None, lander: shop.Project, context_for: Contexts
) -> None:
    context = context_for("staff")
    result = ask(context, filters)
    assert result.get("corrected", {}).get("filters") == corrected
    if corrected is not None:
        assert call(query, result["corrected"], context)["data"] == result["similar_rows"]
