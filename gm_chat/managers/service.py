"""All manager sources as one service: what tools and the engine talk to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gm_chat.managers.api import Visibility
from gm_chat.plugin import AggregatingSource, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gm_chat.managers.api import ManagerView, MutationCall, QueryPage, QueryPlan
    from gm_chat.managers.index import SchemaIndex
    from gm_chat.managers.measures import AggregatePage, AggregatePlan
    from gm_chat.plugin import Actor, ManagerSource

__all__ = ["DataService"]


class DataService:
    """A :class:`~gm_chat.managers.api.ManagerService` in which each manager belongs to the source that describes it."""

    def __init__(self, index: SchemaIndex, sources: Sequence[ManagerSource]) -> None:
        """Take the index and the sources that it was built from."""
        self._index = index
        self._owned = [(source, frozenset(info.name for info in source.describe())) for source in sources]
        self._owner = {name: source for source, names in self._owned for name in names}

    async def view(self, actor: Actor) -> ManagerView:
        """The index masked by the actor's rights; actors with equal rights share one view."""
        parts = [(await source.visibility(actor), names) for source, names in self._owned]
        if len(parts) == 1:
            return self._index.view(parts[0][0])
        rights = {
            name: visible
            for visibility, names in parts
            for name, visible in visibility.managers.items()
            if name in names
        }
        return self._index.view(Visibility("+".join(visibility.fingerprint for visibility, _ in parts), rights))

    async def query(self, plan: QueryPlan, actor: Actor, *, deadline: float | None) -> QueryPage:
        """Run a plan on its manager's source."""
        return await self._owner[plan.manager].execute(plan, actor, deadline=deadline)

    async def aggregate(self, plan: AggregatePlan, actor: Actor, *, deadline: float | None) -> AggregatePage:
        """Run a plan on its manager's source, if that can aggregate."""
        source = self._owner[plan.manager]
        if not isinstance(source, AggregatingSource):
            raise ToolError("unsupported", f"{plan.manager} cannot be aggregated; read its rows with query")
        return await source.aggregate(plan, actor, deadline=deadline)

    async def mutate(self, call: MutationCall, actor: Actor, *, deadline: float | None) -> Mapping[str, Any]:
        """Run a mutation on its manager's source."""
        return await self._owner[call.mutation.manager].mutate(call, actor, deadline=deadline)
