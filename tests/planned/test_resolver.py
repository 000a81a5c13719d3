"""Candidates: which managers a text may be about, in which order, and why."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.audit import emit_planned_audit_event
from gm_chat.planned.catalog import ManagerCatalog, load_manager_catalog
from gm_chat.planned.resolver import AUDIT_MATCH_SOURCES, MAX_CANDIDATES, ManagerCandidate, ManagerResolver


def summary(name: str, description: str, fields: str, *relations: tuple[str, str]) -> Mapping[str, Any]:
    return {
        "manager": name,
        "description": description,
        "fields": fields.split(),
        "filters": [f"{field}__icontains" for field in fields.split()],
        "relations": [{"name": name, "target": target} for name, target in relations],
    }


INDEX = {
    item["manager"]: item
    for item in (
        summary("PartManager", "Designed items.", "name mass", ("material", "MaterialManager")),
        summary("MaterialManager", "Substances.", "name density"),
        summary("ProjectManager", "Work for customers.", "title", ("parts", "PartManager")),
        summary("SalesOrderManager", "What was sold.", "number"),
        summary("SalesOrderLineManager", "Positions of what was sold.", "quantity", ("order", "SalesOrderManager")),
    )
}
CATALOG = load_manager_catalog(
    {
        "PartManager": {
            "domain": "manufacturing",
            "aliases": ["component", "spare part"],
            "use_when": "It is about engineering.",
            "distinguish_from": ["MaterialManager"],
        }
    },
    INDEX,
)
EMPTY = ManagerCatalog.of({})


def names(candidates: tuple[ManagerCandidate, ...]) -> list[str]:
    return [candidate.manager for candidate in candidates]


def resolve(text: str, *anchors: str) -> tuple[ManagerCandidate, ...]:
    return ManagerResolver(INDEX, CATALOG).resolve(text, anchors)


@pytest.mark.parametrize(
    ("text", "manager", "explanation"),
    [
        ("PartManager", "PartManager", "exact manager name"),
        ("part manager", "PartManager", "exact manager name"),
        ("Component", "PartManager", "exact catalog alias"),
        ("Spare-Part", "PartManager", "exact catalog alias"),
        ("manufacturing", "PartManager", "catalog domain"),
        ("spare", "PartManager", "catalog aliases"),
        ("engineering", "PartManager", "catalog use_when"),
        ("substances", "MaterialManager", "schema description"),
        ("density", "MaterialManager", "schema fields"),
        ("icontains density", "MaterialManager", "schema filters"),
        ("parts", "PartManager", "catalog aliases"),
        ("sales order", "SalesOrderManager", None),
    ],
)
def test_each_source_is_explained(text: str, manager: str, explanation: str | None) -> None:
    best = resolve(text)[0]
    assert best.manager == manager
    assert explanation is None or explanation in best.explanations
    assert set(best.explanations) <= set(AUDIT_MATCH_SOURCES)


def test_relations_are_a_source() -> None:
    candidates = {candidate.manager: candidate for candidate in resolve("material")}
    assert candidates["PartManager"].explanations == ("schema relations",)


@pytest.mark.parametrize(
    ("text", "exact", "named"),
    [
        ("PartManager", True, True),
        ("component", True, True),
        ("components", False, True),
        ("List all parts with their mass.", False, True),
        ("the spare parts", False, True),
        ("spare", False, False),
        ("mass", False, False),
    ],
)
def test_exact_is_the_whole_text_and_named_is_in_it(text: str, exact: bool, named: bool) -> None:
    best = resolve(text)[0]
    assert (best.manager, best.exact, best.named) == ("PartManager", exact, named)


@pytest.mark.parametrize("text", ["", "  ", "?!", "the of all", "manager", "xyzzy", "\ud800\0"])
def test_a_text_that_speaks_of_nothing_has_no_candidates(text: str) -> None:
    assert resolve(text) == ()


def test_the_longest_name_that_is_meant_comes_first() -> None:
    assert names(resolve("sales order lines"))[0] == "SalesOrderLineManager"
    assert names(resolve("sales orders"))[0] == "SalesOrderManager"


def test_an_anchor_draws_what_it_leads_to() -> None:
    assert names(resolve("name")) == ["MaterialManager", "PartManager"]
    assert names(resolve("name", "PartManager")) == ["PartManager", "MaterialManager"]
    assert names(resolve("name mass quantity", "SalesOrderLineManager"))[0] == "SalesOrderLineManager"
    assert names(resolve("name title", "ProjectManager")) == ["ProjectManager", "PartManager", "MaterialManager"]


def test_an_anchor_never_outdoes_the_name() -> None:
    assert names(resolve("materials and sales orders", "ProjectManager"))[0] in {"MaterialManager", "SalesOrderManager"}
    assert names(resolve("MaterialManager", "SalesOrderLineManager"))[0] == "MaterialManager"


def test_paths_are_those_of_the_finder() -> None:
    asked: list[tuple[str, str]] = []

    def find(start: str, goal: str) -> list[str] | None:
        asked.append((start, goal))
        return ["way"] if goal == "SalesOrderManager" else None

    resolver = ManagerResolver(INDEX, EMPTY, path_finder=find)
    assert names(resolver.resolve("number name", ["ProjectManager", "HiddenManager"])) == [
        "SalesOrderManager",
        "MaterialManager",
        "PartManager",
    ]
    assert set(asked) == {("ProjectManager", name) for name in ("SalesOrderManager", "MaterialManager", "PartManager")}


def test_only_five_and_only_what_is_in_the_index() -> None:
    index = {f"Thing{number}Manager": summary(f"Thing{number}Manager", "A thing.", "x") for number in range(9)}
    assert names(ManagerResolver(index, EMPTY).resolve("thing")) == [f"Thing{number}Manager" for number in range(5)]
    assert MAX_CANDIDATES == 5
    visible = {name: INDEX[name] for name in ("MaterialManager", "ProjectManager")}
    resolver = ManagerResolver(visible, CATALOG, search=lambda _: list(INDEX))
    assert names(resolver.resolve("component material", ["PartManager"])) == ["MaterialManager", "ProjectManager"]


def test_a_hidden_way_station_leads_nowhere() -> None:
    """Project -> Part -> Material is no path for an actor who does not see parts."""
    visible = {name: item for name, item in INDEX.items() if name != "PartManager"}
    index = {**visible, "AlloyManager": summary("AlloyManager", "", "density")}
    resolver = ManagerResolver(index, EMPTY)
    assert names(resolver.resolve("density", ["ProjectManager"])) == ["AlloyManager", "MaterialManager"]
    whole = ManagerResolver({**index, "PartManager": INDEX["PartManager"]}, EMPTY)
    assert names(whole.resolve("density", ["ProjectManager"])) == ["MaterialManager", "AlloyManager"]


def test_with_a_search_its_order_counts_and_its_finds_are_kept() -> None:
    seen: list[str] = []

    def search(text: str) -> list[str]:
        seen.append(text)
        return ["ProjectManager", "MaterialManager", "PartManager", "HiddenManager"]

    resolver = ManagerResolver(INDEX, CATALOG, search=search)
    assert names(resolver.resolve("prjects")) == ["ProjectManager", "MaterialManager", "PartManager"]
    assert names(resolver.resolve("component")) == ["PartManager", "ProjectManager", "MaterialManager"]
    assert seen == ["prjects", "component"]


def test_with_a_search_little_is_read_of_the_index() -> None:
    class Counting(dict[str, Mapping[str, Any]]):
        read: list[str]

        def __getitem__(self, name: str) -> Mapping[str, Any]:
            self.read.append(name)
            return super().__getitem__(name)

    index = Counting(INDEX)
    index.read = []
    resolver = ManagerResolver(index, CATALOG, search=lambda _: ["PartManager"])
    resolver.resolve("parts")
    resolver.resolve("components")
    assert index.read == ["PartManager"]


@given(st.text() | st.lists(st.sampled_from(["part", "Materials", "order", "line", "the"])).map(" ".join))
def test_any_text_gives_the_same_candidates_again(text: str) -> None:
    candidates = resolve(text, "PartManager")
    assert len(candidates) <= MAX_CANDIDATES
    assert resolve(text, "PartManager") == candidates
    turned = ManagerResolver(dict(reversed(INDEX.items())), CATALOG)
    assert turned.resolve(text, ("PartManager",)) == candidates


def test_every_source_may_be_audited() -> None:
    events: list[dict[str, Any]] = []
    sources = list(AUDIT_MATCH_SOURCES.values())
    emit_planned_audit_event("candidate", {"match_sources": sources}, sink=events.append)
    assert events == [{"event_type": "planned_candidate", "match_sources": sources}]
