from __future__ import annotations

import importlib.util
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.managers.api import FieldInfo, ManagerInfo, RelationInfo
from gm_chat.managers.index import SchemaIndex
from gm_chat.managers.search import SearchIndex, singular
from gm_chat.planned.catalog import load_manager_catalog
from gm_chat.testing.fixtures.large import MANAGERS, large_catalog, large_managers

DATA = Path(__file__).parents[1] / "data"


def manager(name: str, description: str = "", *, aliases: tuple[str, ...] = (), fields: str = "") -> ManagerInfo:
    return ManagerInfo(
        name=name,
        description=description,
        aliases=aliases,
        fields=tuple(FieldInfo(name=item, type="string") for item in fields.split()),
        relations=(RelationInfo(name="belongs_to", target=name, many=False, description="the owning branch"),),
    )


INFOS = [
    manager("PartManager", "Designed or purchased components.", aliases=("spare part", "item"), fields="number price"),
    manager("OrderManager", "Goods that customers want.", fields="number ordered_at"),
    manager("OrderLineManager", "Positions of goods that customers want.", fields="quantity"),
    manager("BOMLineManager", "Which component goes where.", fields="quantity"),
    manager("SupplierManager", "Companies that sell to us.", aliases=("vendor",), fields="country"),
    manager("BusStatusManager", "Where a coach is."),
    manager("MaßeinheitManager", "Kilogramm, Meter, Stück."),
    manager("ManagerManager", "People who lead."),
]
INDEX = SearchIndex(INFOS)
EVERYTHING: dict[str, frozenset[str] | None] = {info.name: None for info in INFOS}


def found(query: str, **visible: Any) -> list[str]:
    return INDEX.rank(query, {f"{name}Manager": members for name, members in visible.items()} or EVERYTHING)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("PartManager", "PartManager"),
        ("part", "PartManager"),
        ("PARTS", "PartManager"),
        ("spare parts", "PartManager"),
        ("order", "OrderManager"),  # not the line of one
        ("orders", "OrderManager"),
        ("order_line", "OrderLineManager"),
        ("orderLine", "OrderLineManager"),
        ("orderlines", "OrderLineManager"),
        ("lines of an order", "OrderLineManager"),
        ("bom line", "BOMLineManager"),
        ("bomline", "BOMLineManager"),
        ("vendors", "SupplierManager"),
        ("Which companies sell to us?", "SupplierManager"),
        ("country", "SupplierManager"),
        ("suplier", "SupplierManager"),
        ("pratt", "PartManager"),
        ("bus status", "BusStatusManager"),
        ("maßeinheit", "MaßeinheitManager"),
        ("MASSEINHEIT", "MaßeinheitManager"),
        ("manager", "ManagerManager"),
        ("who is the manager of the order", "OrderManager"),
    ],
)
def test_the_best_comes_first(query: str, first: str) -> None:
    assert found(query)[0] == first


@pytest.mark.parametrize("query", ["", "   ", "?!", "\x00", "xyzzyq", "\ud800"])
def test_nothing_is_found_for_nothing(query: str) -> None:
    assert found(query) == []


def test_words_without_meaning_are_used_when_there_is_nothing_else() -> None:
    index = SearchIndex([manager("ToDoManager"), manager("PartManager")])
    visible: dict[str, frozenset[str] | None] = {"ToDoManager": None, "PartManager": None}
    assert index.rank("to do", visible)[0] == "ToDoManager"
    assert index.rank("how do i get to the parts", visible)[0] == "PartManager"


def test_only_visible_managers_and_members_count() -> None:
    assert found("order", Part=None, Supplier=None) == []
    assert found("country", Supplier=frozenset({"belongs_to"})) == []
    assert found("country", Supplier=frozenset({"country"})) == ["SupplierManager"]
    assert found("owning branch", Supplier=frozenset({"belongs_to"})) == ["SupplierManager"]


def test_a_typo_finds_its_word_among_many_like_it() -> None:
    """Hidden words take no place among the few that a typo is compared with, and more of them change nothing."""
    alike = [manager(f"Invo{first}{second}eManager") for first in "abcdefghij" for second in "bcdfghklmn"]
    infos = [*alike, manager("InvoiceManager")]
    everything: dict[str, frozenset[str] | None] = {info.name: None for info in infos}
    index = SearchIndex(infos)
    assert index.rank("invoiice", everything)[0] == "InvoiceManager"
    alone = SearchIndex(infos[-1:])
    for typo in ("invoise", "invozze", "invoibe", "voice"):
        assert index.rank(typo, {"InvoiceManager": None}) == alone.rank(typo, {"InvoiceManager": None}), typo


def in_words(name: str, description: str, use_when: str = "", domain: str = "", *aliases: str) -> ManagerInfo:
    return replace(manager(name, description, aliases=aliases), use_when=use_when, domain=domain)


def test_what_people_say_finds_what_they_mean() -> None:
    infos = [
        in_words("InvoiceManager", "What we charge.", "Somebody asks who owes us.", "accounting", "bill", "debit note"),
        in_words("InvoiceNoteManager", "Notes on what we charge."),
        in_words("ReceiptManager", "Cash that came in.", "The question concerns what is paid.", "accounting"),
        in_words("PosterManager", "Bills that are put on walls."),
    ]
    index, visible = SearchIndex(infos), dict.fromkeys(info.name for info in infos)
    for query, first in (
        ("bills", "InvoiceManager"),
        ("bils", "InvoiceManager"),
        ("debit note", "InvoiceManager"),
        ("debitnotes", "InvoiceManager"),
        ("notes", "InvoiceNoteManager"),  # a word of an alias counts less than one of a name
        ("who owes us?", "InvoiceManager"),
        ("what is paid", "ReceiptManager"),
        ("a bill put on the wall", "PosterManager"),  # it accounts for more of the question
    ):
        assert index.rank(query, visible)[0] == first, query
    assert set(index.rank("accounting", visible)) == {"InvoiceManager", "ReceiptManager"}
    assert index.rank("quick question concerning you", visible) == []  # as every use says so, it tells nothing
    assert index.rank("debit", {"PosterManager": None, "ReceiptManager": None}) == []


def test_the_number_of_answers_is_limited() -> None:
    assert len(INDEX.rank("number quantity", EVERYTHING, limit=2)) == 2
    assert INDEX.rank("number", EVERYTHING, limit=0) == []
    assert INDEX.rank("number", EVERYTHING, limit=-1) == []


@given(st.text())
def test_no_text_is_an_error(query: str) -> None:
    answer = found(query)
    assert set(answer) <= set(EVERYTHING)
    assert len(answer) == len(set(answer)) <= 10
    assert found(query) == answer


def test_a_long_text_costs_no_more_than_a_short_one() -> None:
    assert found("part " + "x" * 100_000 + " order" * 10_000)[0] == "PartManager"


@pytest.mark.parametrize(
    ("plural", "one"),
    [
        ("parts", "part"),
        ("companies", "company"),
        ("boxes", "box"),
        ("branches", "branch"),
        ("addresses", "address"),
        ("status", "status"),
        ("glass", "glass"),
        ("analysis", "analysis"),
        ("ties", "tie"),
        ("gas", "gas"),
        ("as", "as"),
    ],
)
def test_plurals(plural: str, one: str) -> None:
    assert singular(plural) == one


# --- the measured promise ---------------------------------------------------------------------------------------


def test_the_large_fixture_is_the_same_each_time() -> None:
    managers = large_managers()
    assert managers == large_managers()
    assert len({info.name for info in managers}) == len(managers) == MANAGERS == 1_000
    known = {info.name for info in managers}
    assert all(relation.target in known for info in managers for relation in info.relations)
    assert all(info.description and info.fields for info in managers)


def test_the_committed_queries_are_what_the_seed_makes() -> None:
    spec = importlib.util.spec_from_file_location("search_queries", DATA / "search_queries.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (DATA / "search_queries.jsonl").read_text(encoding="utf-8").splitlines() == module.lines()


@pytest.mark.parametrize("has_catalog", [False, True])
def test_recall_over_the_large_fixture(has_catalog: bool) -> None:
    managers = large_managers()
    catalog = load_manager_catalog(large_catalog() if has_catalog else None, {info.name: info for info in managers})
    index = SchemaIndex.build(managers, catalog).search
    visible: dict[str, frozenset[str] | None] = {info.name: None for info in managers}
    hits: dict[str, list[bool]] = defaultdict(list)
    for line in (DATA / "search_queries.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        hits[case["kind"]].append(case["manager"] in index.rank(case["query"], visible, limit=5))
    of_names = ["name", "plural", "typo", "question", "description"]
    of_catalogs = ["alias", "alias typo", "use"]
    assert {kind: len(cases) for kind, cases in hits.items()} == dict.fromkeys([*of_names, *of_catalogs], 100)
    recall = {kind: sum(hits[kind]) / 100 for kind in (of_names + of_catalogs if has_catalog else of_names)}
    assert sum(recall.values()) / len(recall) >= 0.99, recall
    assert min(recall.values()) >= 0.97, recall
