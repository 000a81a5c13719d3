"""How to get from one manager to another over relations: the shortest paths that say something.

A manager that everything points to (who changed a row, which tenant owns it) connects any two others by a path of
two steps that means nothing: such a hub is a way station only where there is no other. One that much points to may be
a customer or a currency, which no count can tell apart: to pass it counts as two more steps.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gm_chat.managers.api import Path, RelationInfo

__all__ = ["HUB_MINIMUM", "HUB_SHARE", "JUNCTION_SHARE", "LONGER", "RelationGraph"]

HUB_MINIMUM: Final = 20
HUB_SHARE: Final = 1 / 3
"""A hub is the target of relations of more managers than both the minimum and this share of all."""
JUNCTION_SHARE: Final = 0.1
JUNCTION_COST: Final = 3
"""With this share, but less than a hub's, it is a junction: passing it costs as much as this many steps."""
LONGER: Final = 2
"""How many steps more than the best path an alternative may cost."""


class RelationGraph:
    """Managers and the relations between them. Immutable once built; safe to use from several threads."""

    def __init__(self, relations: Mapping[str, Sequence[RelationInfo]], *, hub_minimum: int = HUB_MINIMUM) -> None:
        """Take each manager's relations; those to a manager that is no key lead nowhere."""
        self._steps = {
            name: sorted((item for item in own if item.target in relations), key=lambda item: item.many)
            for name, own in relations.items()
        }
        self._sources: dict[str, list[str]] = {name: [] for name in relations}
        for name, steps in self._steps.items():
            for target in dict.fromkeys(step.target for step in steps):
                if target != name:
                    self._sources[target].append(name)
        count = len(relations)
        degrees = {name: len(sources) for name, sources in self._sources.items() if len(sources) > hub_minimum}
        self.hubs = frozenset(name for name, degree in degrees.items() if degree > HUB_SHARE * count)
        """The managers that too many others point to for a path through them to mean anything."""
        self._costs = {name: JUNCTION_COST for name, degree in degrees.items() if degree > JUNCTION_SHARE * count}
        self._costs |= dict.fromkeys(self.hubs, JUNCTION_COST * count)  # no path without a hub costs as much

    def paths(self, start: str, goal: str, *, limit: int = 1) -> list[Path]:
        """Return up to ``limit`` paths of relation names, best first; ``[()]`` from a manager to itself.

        Shorter is better, then fewer relations to many, then managers with fewer neighbours on the way, then the
        order of declaration. None goes through more hubs, or is more than :data:`LONGER` steps longer, than the best.
        """
        if start not in self._steps or goal not in self._steps or limit < 1:
            return []
        if start == goal:
            return [()]
        left = self._left(goal)
        return self._search(start, goal, left, limit) if start in left else []

    def _left(self, goal: str) -> dict[str, int]:
        """From where ``goal`` can be reached, and what that costs: each manager after the first, ``goal`` being 1."""
        left: dict[str, int] = {}
        heap = [(0, goal)]
        while heap:
            cost, here = heapq.heappop(heap)
            if here in left:
                continue
            left[here] = cost
            onward = cost + (1 if here == goal else self._costs.get(here, 1))
            for source in self._sources[here]:
                if source not in left:
                    heapq.heappush(heap, (onward, source))
        return left

    def _search(self, start: str, goal: str, left: Mapping[str, int], limit: int) -> list[Path]:
        """Best first, by what a way will cost at least. A manager is left ``limit`` times: the work is bounded."""
        found: list[Path] = []
        arrivals: Counter[str] = Counter()
        order = itertools.count()
        heap = [_Way(left[start], 0, 0, next(order), start)]
        while heap and len(found) < limit:
            way = heapq.heappop(heap)
            arrivals[way.here] += 1
            if way.here == goal:
                found.append(way.path())
                continue
            if arrivals[way.here] > limit:
                continue
            taken, passed = way.cost - left[way.here], way.passed()
            for step in self._steps[way.here]:
                target = step.target
                if target not in left or target in passed or arrivals[target] >= limit:
                    continue
                cost = taken + (1 if target == goal else self._costs.get(target, 1)) + left[target]
                if cost <= left[start] + LONGER:
                    many, neighbours = way.many + step.many, way.neighbours + len(self._sources[target])
                    heapq.heappush(heap, _Way(cost, many, neighbours, next(order), target, way, step.name))
        return found


class _Way(NamedTuple):
    """A way that leads to ``here``, compared by what makes a path better; ``order`` differs, so no more is compared."""

    cost: int
    """Of the steps taken, and at least of those that are left."""
    many: int
    neighbours: int
    order: int
    here: str
    before: _Way | None = None
    relation: str = ""

    def path(self) -> Path:
        return tuple(way.relation for way in self._back())[-2::-1]

    def passed(self) -> set[str]:
        return {way.here for way in self._back()}

    def _back(self) -> Iterator[_Way]:
        way: _Way | None = self
        while way is not None:
            yield way
            way = way.before
