from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.managers.api import RelationInfo
from gm_chat.managers.paths import HUB_MINIMUM, LONGER, RelationGraph
from gm_chat.testing.fixtures.large import large_managers

if TYPE_CHECKING:
    from collections.abc import Collection

Graph = dict[str, tuple[RelationInfo, ...]]


def graph(**edges: str) -> Graph:
    """``a="b c*"``: a has a to-one relation ``b`` to b and a to-many relation ``c`` to c; ``x:b`` names it x."""
    made: Graph = {}
    for name, text in edges.items():
        relations = []
        for item in text.split():
            label, _, target = item.rstrip("*").rpartition(":")
            relations.append(RelationInfo(name=label or target, target=target, many=item.endswith("*")))
        made[name] = tuple(relations)
    return made


def find_paths(
    made: Graph, start: str, goal: str, *, limit: int = 1, hub_minimum: int = HUB_MINIMUM
) -> list[tuple[str, ...]]:
    return RelationGraph(made, hub_minimum=hub_minimum).paths(start, goal, limit=limit)


def hubs_of(made: Graph) -> frozenset[str]:
    return RelationGraph(made).hubs


SHOP = graph(
    part="material supplier lines*", material="parts:part*", supplier="parts:part*", lines="part order", order="lines*"
)


def test_the_shortest_path() -> None:
    assert find_paths(SHOP, "material", "order") == [("parts", "lines", "order")]
    assert find_paths(SHOP, "order", "material") == [("lines", "part", "material")]


def test_no_step_and_no_path() -> None:
    assert find_paths(SHOP, "part", "part") == [()]
    assert find_paths(SHOP, "part", "part", limit=3) == [()]
    assert find_paths(graph(a="", b="a"), "a", "b") == []
    assert find_paths(SHOP, "part", "nothing") == [] == find_paths(SHOP, "nothing", "part")
    assert find_paths(SHOP, "part", "order", limit=0) == []


def test_a_relation_to_something_outside_is_no_step() -> None:
    assert find_paths(graph(a="hidden", b=""), "a", "b") == []


def test_alternatives_are_longer_or_equal_and_to_one_comes_first() -> None:
    routes = graph(a="m:x* one:y far:z", x="t", y="t", z="w", w="t", t="")
    assert find_paths(routes, "a", "t", limit=5) == [("one", "t"), ("m", "t"), ("far", "w", "t")]
    parallel = graph(order="author:user owner:user", user="")
    assert find_paths(parallel, "order", "user", limit=5) == [("author",), ("owner",)]


def test_of_equally_long_paths_the_fewest_rows_decide_wherever_they_multiply() -> None:
    routes = graph(a="x y*", x="p*", p="t*", y="q", q="t", t="")
    assert find_paths(routes, "a", "t", limit=2) == [("y", "q", "t"), ("x", "p", "t")]


def test_then_the_manager_with_fewer_neighbours() -> None:
    """An order has both a customer and an author; invoices have, too, and everything else has an author."""
    others = {f"other{number}": "user" for number in range(5)}
    routes = graph(order="user customer", user="invoices:invoice*", customer="invoices:invoice*", invoice="", **others)
    assert find_paths(routes, "order", "invoice", limit=2) == [("customer", "invoices"), ("user", "invoices")]


def test_much_longer_alternatives_are_none() -> None:
    chain = {f"n{number}": f"n{number + 1}" for number in range(LONGER)} | {f"n{LONGER}": "t", "t": ""}
    assert find_paths(graph(a="t n1", **chain), "a", "t", limit=5) == [
        ("t",),
        (*(f"n{n + 1}" for n in range(LONGER)), "t"),
    ]
    assert find_paths(graph(a="t n0", **chain), "a", "t", limit=5) == [("t",)]


def star(spokes: int) -> Graph:
    """Many managers that all point to ``hub``; the first three are also a chain."""
    edges = {f"m{number}": "changed_by:hub" for number in range(spokes)}
    edges["hub"] = " ".join(f"m{number}*" for number in range(spokes))
    edges["m0"] += " m1"
    edges["m1"] += " m2"
    return graph(**edges)


def test_a_hub_is_no_way_station_while_another_path_exists() -> None:
    routes = star(HUB_MINIMUM + 1)
    assert hubs_of(routes) == {"hub"}
    assert find_paths(routes, "m0", "m2") == [("m1", "m2")] == find_paths(routes, "m0", "m2", limit=5)
    assert find_paths(routes, "m0", "m2", hub_minimum=99, limit=2) == [("m1", "m2"), ("changed_by", "m2")]
    assert find_paths(routes, "m0", "m3") == [("changed_by", "m3")]  # there is no other
    assert find_paths(routes, "m0", "hub") == [("changed_by",)]
    assert find_paths(routes, "hub", "m0") == [("m0",)]


def test_a_long_way_round_is_better_than_one_through_a_hub() -> None:
    spokes = {f"m{number}": f"tenant m{number + 1}" for number in range(40)}
    routes = graph(**spokes, m40="tenant", tenant=" ".join(f"m{number}*" for number in range(41)))
    assert hubs_of(routes) == {"tenant"}
    assert find_paths(routes, "m0", "m40") == [tuple(f"m{number}" for number in range(1, 41))]


def test_of_two_hubs_one_is_passed_where_one_is_enough() -> None:
    spokes = {f"m{number}": "user tenant" for number in range(30)}
    routes = graph(**spokes, user="tenant", tenant="goal", goal="")
    assert hubs_of(routes) == {"user", "tenant"}
    assert find_paths(routes, "m0", "goal", limit=5) == [("tenant", "goal")]


def test_a_junction_is_passed_unless_the_other_way_is_about_as_short() -> None:
    """To a customer a sixth of all managers point, and so they may to a currency."""
    spokes = {f"m{number}": "customer" for number in range(40)}
    rest = {f"n{number}": "" for number in range(180)}
    far = graph(**spokes, **rest, a="customer w", w="x", x="y", y="z", z="t", t="", customer="t")
    assert hubs_of(far) == frozenset()
    assert find_paths(far, "a", "t", limit=5) == [("customer", "t"), ("w", "x", "y", "z", "t")]
    near = graph(**spokes, **rest, a="customer x", x="y", y="t", t="", customer="t")
    assert find_paths(near, "a", "t", limit=5) == [("x", "y", "t"), ("customer", "t")]


def test_what_counts_as_a_hub() -> None:
    assert hubs_of(star(HUB_MINIMUM)) == frozenset()
    big = star(400)
    assert hubs_of(big) == {"hub"}
    few = {name: relations if int(name.strip("mhub") or 0) <= 120 else () for name, relations in big.items()}
    assert hubs_of(few) == frozenset()  # 121 of 401 are less than a third
    repeated = graph(**{f"m{number}": "x:hub y:hub" for number in range(15)}, hub="self:hub")
    assert hubs_of(repeated) == frozenset()  # counted by manager, not by relation


def test_over_the_large_fixture_only_the_user_is_a_hub() -> None:
    managers = {info.name: info.relations for info in large_managers()}
    assert hubs_of(managers) == {"UserManager"}
    path = find_paths(managers, "MachineManager", "ForestManager")[0]
    assert "changed_by" not in path


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.booleans()), max_size=30),
    st.integers(0, 7),
    st.integers(0, 7),
    st.integers(1, 8),
)
def test_paths_lead_where_they_should(
    edges: list[tuple[int, int, bool]], start: int, goal: int, hub_minimum: int
) -> None:
    made: Graph = {
        str(node): tuple(
            RelationInfo(name=f"r{index}", target=str(target), many=many)
            for index, (source, target, many) in enumerate(edges)
            if source == node
        )
        for node in range(8)
    }
    paths = find_paths(made, str(start), str(goal), hub_minimum=hub_minimum, limit=4)
    assert paths == find_paths(made, str(start), str(goal), hub_minimum=hub_minimum, limit=4)
    assert len(paths) == len(set(paths)) <= 4
    hubs = RelationGraph(made, hub_minimum=hub_minimum).hubs
    passed_hubs = set()
    for path in paths:
        here, passed = str(start), []
        for step in path:
            here = next(item.target for item in made[here] if item.name == step)
            passed.append(here)
        assert here == str(goal)
        assert len(set(passed)) == len(passed)
        passed_hubs.add(len(hubs.intersection(passed[:-1])))
    assert len(passed_hubs) <= 1
    assert passed_hubs <= {_fewest_hubs(made, str(start), str(goal), hubs)}
    assert bool(paths) == _reachable(made, str(start), str(goal))
    assert paths[:1] == find_paths(made, str(start), str(goal), hub_minimum=hub_minimum)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=20), st.integers(0, 6), st.integers(0, 6))
def test_without_hubs_the_first_path_is_a_shortest_one(edges: list[tuple[int, int]], start: int, goal: int) -> None:
    made: Graph = {
        str(node): tuple(
            RelationInfo(name=f"r{index}", target=str(target), many=False)
            for index, (source, target) in enumerate(edges)
            if source == node
        )
        for node in range(7)
    }
    lengths = [len(path) for path in find_paths(made, str(start), str(goal), limit=9)]
    assert lengths == sorted(lengths)
    reached, steps = {str(start)}, 0
    while str(goal) not in reached and steps < 8:
        reached |= {item.target for name in reached for item in made[name]}
        steps += 1
    assert lengths[:1] == ([steps] if str(goal) in reached else [])


def _fewest_hubs(made: Graph, start: str, goal: str, hubs: Collection[str]) -> int:
    """By trying: the smallest set of hubs without which there is no path."""
    inner = sorted(set(hubs) - {start, goal})
    for count in range(len(inner) + 1):
        for kept in combinations(inner, count):
            left = {name: own for name, own in made.items() if name not in inner or name in kept}
            if _reachable({name: tuple(i for i in own if i.target in left) for name, own in left.items()}, start, goal):
                return count
    return -1


def _reachable(made: Graph, start: str, goal: str) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        new = {item.target for item in made[waiting.pop()]} - seen
        seen |= new
        waiting += new
    return goal in seen


@pytest.mark.parametrize("limit", [1, 5])
def test_the_work_is_bounded(limit: int) -> None:
    """A complete graph has astronomically many paths without cycles."""
    names = [f"n{number}" for number in range(60)]
    dense = {name: tuple(RelationInfo(name=other, target=other, many=False) for other in names) for name in names}
    dense["goal"] = ()
    assert find_paths(dense, "n0", "goal", limit=limit) == []
