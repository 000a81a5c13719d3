"""All manager sources as one service: what tools and the engine talk to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gm_chat.managers.api import Visibility
from gm_chat.plugin import AggregatingSource, PreviewingSource, ToolError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gm_chat.managers.api import ManagerView, ManagerVisibility, MutationCall, QueryPage, QueryPlan
    from gm_chat.managers.index import SchemaIndex
    from gm_chat.managers.measures import AggregatePage, AggregatePlan
    from gm_chat.plugin import Actor, ManagerSource

__all__ = ["DataService"]


class DataService:
    """A :class:`~gm_chat.managers.api.ManagerService` in which each manager belongs to the source that describes it."""

    def __init__(
        self, index: SchemaIndex, sources: Sequence[ManagerSource], mutations: Collection[str] | None = None
    ) -> None:
        """Take the index, the sources that it was built from, and the mutations that views show (``None``: all)."""
        self._index = index
        self._mutations = None if mutations is None else frozenset(mutations)
        self._owned = [(source, frozenset(info.name for info in source.describe())) for source in sources]
        self._owner = {name: source for source, names in self._owned for name in names}

    async def view(self, actor: Actor) -> ManagerView:
        """The index masked by the actor's rights; actors with equal rights share one view."""
        parts = [(await source.visibility(actor), names) for source, names in self._owned]
        fingerprint = "+".join(visibility.fingerprint for visibility, _ in parts)
        view = self._index.kept_view(fingerprint)
        if view is None:
            rights = {
                name: self._narrowed(visible)
                for visibility, names in parts
                for name, visible in visibility.managers.items()
                if name in names
            }
            view = self._index.view(Visibility(fingerprint, rights))
        return view

    def _narrowed(self, visible: ManagerVisibility) -> ManagerVisibility:
        if self._mutations is None or visible.mutations <= self._mutations:
            return visible
        return replace(visible, mutations=visible.mutations & self._mutations)

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
        """Run a mutation on its manager's source, if that can tell whether it may."""
        source = self._owner[call.mutation.manager]
        if (call.expected or call.shown is not None) and not isinstance(source, PreviewingSource):
            raise _unbound(call)
        return await source.mutate(call, actor, deadline=deadline)

    async def preview(self, call: MutationCall, actor: Actor, *, deadline: float | None) -> Mapping[str, Any] | None:
        """What a mutation would do, if its manager's source can tell."""
        source = self._owner[call.mutation.manager]
        if isinstance(source, PreviewingSource):
            return await source.preview(call, actor, deadline=deadline)
        if call.expected:
            raise _unbound(call)
        return None


def _unbound(call: MutationCall) -> ToolError:
    return ToolError("unsupported", f"{call.mutation.name} cannot be bound to old values; leave out expected")
