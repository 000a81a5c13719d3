"""Which managers a plan reads from: for the note that rows may be hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gm_chat.managers.api import And, Condition, FieldReference, First, Not, Or, Related
from gm_chat.managers.measures import Aggregated, Arithmetic, Behind, Elapsed, FieldValue

if TYPE_CHECKING:
    from gm_chat.managers.api import ManagerView, Path, QueryPlan, Selection, Where
    from gm_chat.managers.measures import AggregatePlan, Formula

__all__ = ["managers_of", "managers_of_aggregate"]


def managers_of(plan: QueryPlan, view: ManagerView) -> frozenset[str]:
    """Every manager that the plan selects from, filters or sorts through, by name."""
    reach = _Reach(view)
    reach.select(plan.manager, plan.selection)
    reach.restrict(plan.manager, plan.where)
    for term in plan.order:
        reach.follow(plan.manager, term.path)
    return frozenset(reach.found)


def managers_of_aggregate(plan: AggregatePlan, view: ManagerView) -> frozenset[str]:
    """Every manager that the plan counts, groups or filters through, by name."""
    reach = _Reach(view)
    reach.restrict(plan.manager, plan.where)
    for group in plan.groups:
        reach.follow(plan.manager, group.path)
    for measure in plan.measures:
        reach.compute(plan.manager, measure.formula)
    return frozenset(reach.found)


class _Reach:
    """Collects names; each method adds the manager where it starts."""

    def __init__(self, view: ManagerView) -> None:
        self._view = view
        self.found: set[str] = set()

    def select(self, name: str, selection: Selection) -> None:
        self.found.add(name)
        for inner in selection.relations:
            self.select(self._target(name, inner.name), inner.selection)

    def follow(self, name: str, path: Path) -> None:
        """Along a path's relations; its last element is a field."""
        self.found.add(name)
        for hop in path[:-1]:
            name = self._target(name, hop)
            self.found.add(name)

    def restrict(self, name: str, where: Where) -> None:
        self.found.add(name)
        match where:
            case And(parts) | Or(parts):
                for part in parts:
                    self.restrict(name, part)
            case Not(part):
                self.restrict(name, part)
            case Related(relation, part):
                self.restrict(self._target(name, relation), part)
            case Condition(path, _, value):
                self.follow(name, path)
                if isinstance(value, FieldReference) and not value.outer:
                    self.follow(name, value.path)
            case First(per, order, part):
                for path in (*(key.path for key in per), *(term.path for term in order)):
                    self.follow(name, path)
                self.restrict(name, part)

    def compute(self, name: str, formula: Formula | None) -> None:
        self.found.add(name)
        match formula:
            case FieldValue(path):
                self.follow(name, path)
            case Arithmetic(_, left, right) | Elapsed(left, right):
                self.compute(name, left)
                self.compute(name, right)
            case Behind(relation, _, of, where):
                target = self._target(name, relation)
                self.compute(target, of)
                self.restrict(target, where)
            case Aggregated(_, of, where):
                self.compute(name, of)
                self.restrict(name, where)

    def _target(self, name: str, relation: str) -> str:
        info = self._view.get(name)
        return next(item.target for item in (info.relations if info is not None else ()) if item.name == relation)
