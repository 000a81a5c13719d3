"""What the schema is asked: its own filters, orders and pages where it has them, else one bounded reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from desks import LIBRARIES, Desk, actor_of, graphql_source, needs_graphene
from django.contrib.auth import get_user_model
from testproject.shop import models
from testproject.shop_rows import fill_shop

from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from gm_chat_source_graphql import GraphQLSource


class Listening:
    """The documents and variables that a source sends."""

    def __init__(self, source: GraphQLSource) -> None:
        loaded = source._load()
        inner = loaded.library.execute
        self.sent: list[tuple[str, dict[str, Any]]] = []

        def execute(document: str, variables: Any, context: Any) -> Any:
            self.sent.append((document, dict(variables)))
            return inner(document, variables, context)

        object.__setattr__(loaded.library, "execute", execute)


def listening(library: str, **options: Any) -> tuple[Desk, Listening]:
    source = graphql_source(library, **options)
    return Desk(source, actor_of(fill_shop()["staff"])), Listening(source)


def test_strawberry_gives_the_page_itself(db: None) -> None:
    desk, log = listening("strawberry")
    filters = {"name__icontains": "a", "price__gte": "0.99", "number__in": ["P-001", "P-002", "P-003", "P-004"]}
    desk.ask("PartManager", ["number"], filters=filters, order_by=["-price", "number"], limit=2, offset=1)
    ((document, variables),) = log.sent
    assert variables == {
        "v0": {"name": {"iContains": "a"}, "price": {"gte": "0.99"}, "number": {"inList": filters["number__in"]}},
        "v1": [{"price": "DESC_NULLS_LAST"}, {"number": "ASC"}, {"id": "ASC"}],
        "v2": {"limit": 2, "offset": 1},
    }
    assert document == (
        "query GmChat($v0: PartFilter, $v1: [PartOrder!]!, $v2: OffsetPaginationInput) "
        "{ parts(filters: $v0, ordering: $v1, pagination: $v2) { totalCount results { id number name price } } }"
    )


@pytest.mark.parametrize("library", LIBRARIES)
def test_values_never_stand_in_the_document(library: str, db: None) -> None:
    desk, log = listening(library)
    evil = 'x") { __schema { types { name } } } #'
    page = desk.ask("PartManager", ["number"], filters={"name__icontains": evil, "number": evil})
    assert page.total_count == 0
    assert log.sent
    assert all("__schema" not in document for document, _ in log.sent)
    assert any(evil in repr(variables) for _, variables in log.sent)


@needs_graphene
def test_graphene_filters_and_we_finish(db: None) -> None:
    desk, log = listening("graphene", page_size=10)
    page = desk.ask(
        "PartManager", ["number"], filters={"purchased": True, "weight__gt": 0.6}, order_by=["-number"], limit=3
    )
    expected = models.Part.objects.filter(purchased=True, weight__gt=0.6).order_by("-number")
    assert [row["number"] for row in page.data] == [part.number for part in expected[:3]]
    assert page.total_count == expected.count()
    assert [variables.get("v0") for _, variables in log.sent] == [True] * len(log.sent)
    assert len(log.sent) == -(-models.Part.objects.filter(purchased=True).count() // 10)


def test_pages_are_read_through_a_cap_that_nobody_tells_of(db: None) -> None:
    desk, log = listening("ariadne")  # at most 25 parts a page, whatever is asked
    page = desk.ask("PartManager", ["number"], limit=33, offset=5)
    assert [row["number"] for row in page.data] == [f"P-{number:03}" for number in range(5, 38)]
    assert (page.total_count, page.has_more, len(log.sent)) == (40, True, 2)


def test_an_argument_that_does_not_do_what_it_says_is_dropped(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from shop_schemas import with_ariadne

    field = with_ariadne.schema.query_type.fields["parts"]  # type: ignore[union-attr]
    before = field.resolve
    monkeypatch.setattr(field, "resolve", lambda root, info, filter=None, **args: before(root, info, **args))
    desk, log = listening("ariadne")
    page = desk.ask("PartManager", ["number", "price"], filters={"price__gte": "12"})
    assert page.total_count == models.Part.objects.filter(price__gte=12).count() > 0
    assert {row["price"] for row in page.data} == {"12.50"}
    assert "filter:" not in log.sent[-1][0]


def test_what_may_not_be_seen_cannot_be_filtered_by(db: None) -> None:
    """``cost`` is denied to all but staff: no filter, order or count tells of it; the column ``price`` is not."""
    users = fill_shop()
    desk = Desk(graphql_source("ariadne"), actor_of(users["plain"]))
    page = desk.ask("PartManager", ["number", "cost"], filters={"cost__gte": "0"})
    assert (list(page.data), page.total_count) == ([], 0)
    ordered = desk.ask("PartManager", ["number", "cost"], order_by=["-cost"])
    assert list(ordered.data) == list(desk.ask("PartManager", ["number", "cost"]).data)
    assert {row["cost"] for row in ordered.data} == {None}
    staff = Desk(graphql_source("ariadne"), actor_of(users["staff"]))
    assert staff.ask("PartManager", ["cost"], filters={"cost__gte": "12"}).total_count > 0


@needs_graphene
def test_too_many_rows_to_finish_here(db: None) -> None:
    desk, log = listening("graphene", max_rows=20, page_size=10)
    with pytest.raises(ToolError, match="more than 20 rows of PartManager") as caught:
        desk.ask("PartManager", ["number"], order_by=["weight"])
    assert caught.value.code == "too_large"
    assert {"name__icontains", "price__gte", "number"} <= set(caught.value.details["allowed"])
    assert len(log.sent) == 3
    assert desk.ask("PartManager", ["number"], filters={"number": "P-003"}, order_by=["weight"]).total_count == 1
    assert Desk(graphql_source("strawberry", max_rows=5), desk.actor).ask("PartManager", ["id"]).total_count == 40


def test_the_first_of_each_is_refused(db: None) -> None:
    desk, log = listening("ariadne")
    for args in (
        {"first_per": ["material"], "order_by": ["-price"]},
        {"filters": {"first": {"per": [], "order_by": ["price"]}}},
    ):
        with pytest.raises(ToolError, match="cannot be asked for the first of each"):
            desk.ask("PartManager", ["number"], **args)
    assert log.sent == []


def test_nested_lists_are_cut_and_say_so(db: None) -> None:
    for library in LIBRARIES:
        models.Part.objects.all().delete()
        material = models.Material.objects.create(name=f"of {library}", density=1)
        models.Part.objects.bulk_create(
            models.Part(number=f"{library} {number:03}", name="x", material=material) for number in range(150)
        )
        staff = get_user_model()(username="boss", pk=1, is_staff=True)
        desk = Desk(graphql_source(library), actor_of(staff))
        page = desk.ask("MaterialManager", ["name", {"parts": ["number"]}], filters={"name": material.name})
        ((row),) = page.data
        assert page.cut_lists == (("parts",),)
        assert 99 <= len(row["parts"]) <= 100
        with pytest.raises(ToolError, match="does not give all rows of 'parts' at once"):
            desk.ask("MaterialManager", ["name"], filters={"parts__number": f"{library} 149"})
        found = desk.ask("MaterialManager", ["name"], filters={"parts__number": f"{library} 003"})
        assert [item["name"] for item in found.data] == [material.name]


def test_a_list_that_is_just_full_is_not_cut(db: None) -> None:
    material = models.Material.objects.create(name="x", density=1)
    staff = actor_of(get_user_model()(username="boss", pk=1, is_staff=True))
    desk = Desk(graphql_source("ariadne", page_size=200), staff)  # a plain list with limit and offset, and no total
    for number in range(101):
        models.Part.objects.create(number=f"{number:03}", name="x", material=material)
        if number >= 99:
            page = desk.ask("MaterialManager", [{"parts": ["number"]}])
            assert len(page.data[0]["parts"]) == 100
            assert page.cut_lists == ((("parts",),) if number == 100 else ())


def test_whole_rows_are_dropped_at_the_byte_budget(db: None) -> None:
    desk, _ = listening("strawberry")
    page = desk.ask("PartManager", ["number"], max_bytes=200)
    assert page.truncated
    assert page.has_more
    assert 0 < len(page.data) < 40
    assert page.total_count == 40
