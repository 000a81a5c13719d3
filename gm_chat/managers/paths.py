"""How to get from one manager to another over relations: the shortest paths that say something.

A manager that everything points to (who changed a row, which tenant owns it) connects any two others by a path of
two steps that means nothing. Such hubs are no way stations while another path exists.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from gm_chat.managers.api import Path, RelationInfo

__all__ = ["HUB_MINIMUM", "HUB_SHARE", "find_paths", "hubs_of"]

HUB_MINIMUM: Final = 20
HUB_SHARE: Final = 0.1
"""A hub is the target of relations of more managers than both the minimum and this share of all."""


def hubs_of(graph: Mapping[str, Sequence[RelationInfo]]) -> frozenset[str]:
    """The managers that too many others point to for a path through them to mean anything."""
    degrees = Counter(
        target for name, relations in graph.items() for target in {item.target for item in relations} if target != name
    )
    most = max(HUB_MINIMUM, HUB_SHARE * len(graph))
    return frozenset(name for name, degree in degrees.items() if degree > most)


def find_paths(
    graph: Mapping[str, Sequence[RelationInfo]],
    start: str,
    goal: str,
    *,
    hubs: Collection[str] = frozenset(),
    limit: int = 1,
) -> list[Path]:
    """Return up to ``limit`` paths of relation names, shortest first; ``[()]`` from a manager to itself.

    Of equally long ones those over to-one relations come first, then the order of declaration decides.
    """
    if start not in graph or goal not in graph or limit < 1:
        return []
    if start == goal:
        return [()]
    found = list(_search(graph, start, goal, frozenset(hubs) - {goal}, limit))
    return found or list(_search(graph, start, goal, frozenset(), limit))


def _search(
    graph: Mapping[str, Sequence[RelationInfo]], start: str, goal: str, avoid: Collection[str], limit: int
) -> Iterator[Path]:
    """Breadth-first over paths without cycles. A manager is expanded at most ``limit`` times: the work is bounded."""
    queue: deque[tuple[Path, frozenset[str], str]] = deque([((), frozenset({start}), start)])
    expanded: Counter[str] = Counter()
    count = 0
    while queue:
        path, passed, here = queue.popleft()
        if here == goal:
            yield path
            count += 1
            if count == limit:
                return
            continue
        if expanded[here] == limit:
            continue
        expanded[here] += 1
        for relation in sorted(graph[here], key=lambda item: item.many):
            target = relation.target
            if target in graph and target not in passed and target not in avoid and expanded[target] < limit:
                queue.append(((*path, relation.name), passed | {target}, target))
