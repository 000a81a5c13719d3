"""Which rows of a plan's manager need not be asked one by one, as the plan's own conditions leave them out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, assert_never

from gm_chat.managers.api import And, Condition, FieldReference, First, Not, Or, Related
from gm_chat.managers.orm import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import Q

    from gm_chat.managers.api import Path, QueryPlan, Selection, Where
    from gm_chat.managers.orm import Binding
    from gm_chat.plugin import Actor

__all__ = ["own_conditions"]


def own_conditions(plan: QueryPlan, bindings: Mapping[str, Binding], actor: Actor) -> Q | None:
    """What the plan asks of its manager's own columns; ``None`` if nothing, or if it needs other rows of it as well."""
    parts = tuple(part for part in plan.where.parts if _is_own(part))
    reach = _Reach(bindings)
    reach.select(plan.manager, plan.selection)
    reach.restrict(plan.manager, plan.where)
    for term in plan.order:
        reach.follow(plan.manager, term.path)
    if not parts or plan.manager in reach.found:
        return None
    unlimited = {plan.manager: replace(bindings[plan.manager], visible_to=None)}
    return Scope(unlimited, actor).condition(And(parts), plan.manager)


def _is_own(part: Where) -> bool:
    return isinstance(part, Condition) and len(part.path) == 1 and not isinstance(part.value, FieldReference)


@dataclass(slots=True)
class _Reach:
    """Collects the managers that relations lead to."""

    bindings: Mapping[str, Binding]
    found: set[str] = field(default_factory=set)

    def select(self, manager: str, selection: Selection) -> None:
        for item in selection.relations:
            self.select(self._hop(manager, item.name), item.selection)

    def follow(self, manager: str, path: Path) -> None:
        for relation in path[:-1]:
            manager = self._hop(manager, relation)

    def restrict(self, manager: str, where: Where) -> None:
        match where:
            case And(parts) | Or(parts):
                for part in parts:
                    self.restrict(manager, part)
            case Not(part):
                self.restrict(manager, part)
            case Related(relation, part):
                self.restrict(self._hop(manager, relation), part)
            case First():
                self.found.add(manager)  # it ranks rows that the other conditions leave out
            case Condition(path, _, value):
                self.follow(manager, path)
                if isinstance(value, FieldReference) and not value.outer:
                    self.follow(manager, value.path)
            case _:
                assert_never(where)

    def _hop(self, manager: str, relation: str) -> str:
        target = self.bindings[manager].relations[relation].target
        self.found.add(target)
        return target
