"""Managers without a table, through GeneralManager's GraphQL schema, with its holes closed."""

from __future__ import annotations

from typing import Any

import pytest
from asking import desk, fill, gm_source
from desks import Desk, actor_of, run
from gm_chat_source_general_manager.calculated import Calculated
from testproject.shop import models

from gm_chat.managers.aggregate import build_aggregate
from gm_chat.plugin import ToolError


@pytest.fixture
def users(db: None) -> dict[str, Any]:
    users = fill()
    material = models.Material.objects.all()[0]
    for number in range(20):
        models.Part.objects.create(
            number=f"F-{number:02}", name="f", material=material, status="released", price="2.00"
        )
    return users


def refused(desk: Desk, manager: str, fields: list[Any], **args: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        desk.ask(manager, fields, **args)
    return caught.value


def test_all_pages(users: dict[str, Any]) -> None:
    """GeneralManager gives at most 100 rows at once."""
    staff = desk(users["staff"])
    page = staff.ask(
        "Forecast", ["year", "total_cost", "mass", "part__number"], limit=110, order_by=["part__number", "year"]
    )
    assert (len(page.data), page.total_count, page.has_more) == (110, 120, True)
    expected = [
        {
            "year": year,
            "total_cost": float(part.price or 0) * (year - 2024),
            "mass": None if part.weight is None else f"{part.weight} kilogram",
            "part": {"number": part.number},
        }
        for part in models.Part.objects.order_by("number")
        for year in (2025, 2026)
    ]
    assert page.data == expected[:110]


def test_filters_and_orders(users: dict[str, Any]) -> None:
    staff = desk(users["staff"])
    page = staff.ask(
        "Forecast", ["year", "total_cost"], filters={"year": 2026, "total_cost__gte": 4}, order_by=["-total_cost"]
    )
    prices = [float(price or 0) * 2 for price in models.Part.objects.values_list("price", flat=True)]
    assert [row["total_cost"] for row in page.data] == sorted((price for price in prices if price >= 4), reverse=True)
    page = staff.ask("Forecast", ["year"], filters={"part__number": "F-07"}, order_by=["year"])
    assert [row["year"] for row in page.data] == [2025, 2026]
    assert "mass" in refused(staff, "Forecast", ["year"], filters={"mass": "1 kg"}).message


def test_a_hidden_row_is_null(users: dict[str, Any]) -> None:
    plain = desk(users["plain"])
    drafts = set(models.Part.objects.filter(status="draft").values_list("number", flat=True))
    page = plain.ask("Forecast", ["year", {"part": ["number", {"supplier": ["name", "rating"]}]}], limit=200)
    parts = [row["part"] for row in page.data]
    assert parts.count(None) == 2 * len(drafts)
    assert drafts.isdisjoint(part["number"] for part in parts if part)
    ratings = {part["supplier"]["rating"] for part in parts if part and part["supplier"]}
    assert ratings <= {None, 2, 3, 5}
    assert plain.ask("Forecast", ["year"], filters={"part__number": min(drafts)}).total_count == 0
    names = {item.name for item in plain.view().get("Forecast").fields}  # type: ignore[union-attr]
    assert names == {"year", "total_cost", "mass"}


def test_what_the_schema_would_spoil_is_refused(users: dict[str, Any]) -> None:
    """A moment is a date there, and a list of ten where nobody says how many."""
    staff = desk(users["staff"])
    error = refused(staff, "Forecast", [{"part": ["created_at"]}])
    assert (error.code, "query Part itself" in error.message) == ("unsupported", True)
    assert refused(staff, "Forecast", ["year"], filters={"part__created_at__year": 2024}).code == "unsupported"
    page = staff.ask("Forecast", [{"part": ["price", "released_on", {"material": [{"parts": ["number"]}]}]}], limit=1)
    part = page.data[0]["part"]
    material = models.Part.objects.get(number="P-000").material
    assert len(part["material"]["parts"]) == min(100, material.parts.count())


def test_who_sees_them(users: dict[str, Any]) -> None:
    assert desk(None).view().get("Forecast") is None
    assert refused(desk(None), "Forecast", ["year"]).code == refused(desk(None), "Nothing", ["year"]).code
    assert desk(users["plain"]).view().get("Forecast") is not None


def test_aggregates(users: dict[str, Any]) -> None:
    source, actor = gm_source(), actor_of(users["staff"])
    asked = {"manager": "Forecast", "group_by": ["year"], "measures": {"n": "count()", "total": "sum(total_cost)"}}
    plan = build_aggregate(asked, Desk(source, actor).view(), max_results=9)
    prices = sum(float(price or 0) for price in models.Part.objects.values_list("price", flat=True))
    rows = run(source.aggregate(plan, actor, deadline=None)).data
    assert [(row["year"], row["n"]) for row in rows] == [(2025, 60), (2026, 60)]
    assert [row["total"] for row in rows] == pytest.approx([prices, 2 * prices])


def test_a_bound(users: dict[str, Any]) -> None:
    assert (
        refused(desk(users["staff"], max_rows=50), "Forecast", ["year"], order_by=["part__number"]).code == "too_large"
    )


def test_without_a_schema_there_are_none(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from general_manager import GraphQL

    monkeypatch.setattr(GraphQL, "get_schema", classmethod(lambda cls: None))
    source = gm_source()
    assert "Forecast" not in {info.name for info in source.describe()}
    assert "Part" in {info.name for info in source.describe()}
    assert Calculated.of({}, source._load().models, source._options).infos == {}
