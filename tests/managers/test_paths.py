from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.managers.api import RelationInfo
from gm_chat.managers.paths import HUB_MINIMUM, find_paths, hubs_of
from gm_chat.testing.fixtures.large import large_managers

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


def star(spokes: int) -> Graph:
    """Many managers that all point to ``hub``; the first three are also a chain."""
    edges = {f"m{number}": "changed_by:hub" for number in range(spokes)}
    edges["hub"] = " ".join(f"m{number}*" for number in range(spokes))
    edges["m0"] += " m1"
    edges["m1"] += " m2"
    return graph(**edges)


def test_a_hub_is_no_way_station_while_another_path_exists() -> None:
    routes = star(HUB_MINIMUM + 1)
    hubs = hubs_of(routes)
    assert hubs == {"hub"}
    assert find_paths(routes, "m0", "m2", hubs=hubs) == [("m1", "m2")]
    assert find_paths(routes, "m0", "m2", hubs=()) == [("changed_by", "m2")]
    assert find_paths(routes, "m0", "m3", hubs=hubs) == [("changed_by", "m3")]  # there is no other
    assert find_paths(routes, "m0", "hub", hubs=hubs) == [("changed_by",)]
    assert find_paths(routes, "hub", "m0", hubs=hubs) == [("m0",)]


def test_what_counts_as_a_hub() -> None:
    assert hubs_of(star(HUB_MINIMUM)) == frozenset()
    big = star(400)
    assert hubs_of(big) == {"hub"}
    few = {name: relations if int(name.strip("mhub") or 0) <= 35 else () for name, relations in big.items()}
    assert hubs_of(few) == frozenset()  # 36 of 401 are less than a tenth
    repeated = graph(**{f"m{number}": "x:hub y:hub" for number in range(15)}, hub="self:hub")
    assert hubs_of(repeated) == frozenset()  # counted by manager, not by relation


def test_over_the_large_fixture_only_the_user_is_a_hub() -> None:
    managers = {info.name: info.relations for info in large_managers()}
    hubs = hubs_of(managers)
    assert hubs == {"UserManager"}
    path = find_paths(managers, "MachineManager", "ForestManager", hubs=hubs)[0]
    assert "changed_by" not in path


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.booleans()), max_size=30),
    st.integers(0, 7),
    st.integers(0, 7),
    st.sets(st.integers(0, 7)),
)
def test_paths_lead_where_they_should(
    edges: list[tuple[int, int, bool]], start: int, goal: int, hubs: set[int]
) -> None:
    made: Graph = {
        str(node): tuple(
            RelationInfo(name=f"r{index}", target=str(target), many=many)
            for index, (source, target, many) in enumerate(edges)
            if source == node
        )
        for node in range(8)
    }
    names = {str(hub) for hub in hubs}
    paths = find_paths(made, str(start), str(goal), hubs=names, limit=4)
    assert paths == find_paths(made, str(start), str(goal), hubs=names, limit=4)
    assert len(paths) == len(set(paths)) <= 4
    assert all(len(first) <= len(second) for first, second in pairwise(paths))
    for path in paths:
        here, passed = str(start), []
        for step in path:
            here = next(item.target for item in made[here] if item.name == step)
            passed.append(here)
        assert here == str(goal)
        assert len(set(passed)) == len(passed)
    assert bool(paths) == _reachable(made, str(start), str(goal))
    assert paths[:1] == find_paths(made, str(start), str(goal), hubs=names)


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
