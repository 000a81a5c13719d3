"""The manager source of the project's own Django models; it enters by the same door as a plugin's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gm_chat.managers import registry
from gm_chat.managers.aggregation import execute_aggregate
from gm_chat.managers.executor import execute_plan
from gm_chat.managers.mutations import execute_mutation, preview_mutation
from gm_chat.managers.visibility import Rights, may_run
from gm_chat.persistence.threads import run_db
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from gm_chat.managers.api import ManagerInfo, MutationCall, QueryPage, QueryPlan, Visibility
    from gm_chat.managers.binding import Binding
    from gm_chat.managers.measures import AggregatePage, AggregatePlan
    from gm_chat.plugin import Actor

__all__ = ["DjangoModelSource"]


class DjangoModelSource:
    """Managers declared in ``chat_managers.py`` modules (or the given bindings). What may block hops to a thread."""

    name = "django"

    def __init__(
        self, bindings: Mapping[str, Binding] | None = None, *, mutations: Container[str] | None = None
    ) -> None:
        """Serve ``bindings``, or what the registry holds at each call.

        ``mutations`` names those that the chat may run (``None``: all): no permission for any other is asked for.
        """
        self._given = bindings
        self._mutations = mutations
        self._rights: Rights | None = None

    @property
    def bindings(self) -> Mapping[str, Binding]:
        """The managers with their models."""
        return registry.bindings() if self._given is None else self._given

    def describe(self) -> Sequence[ManagerInfo]:
        """Every exposed manager; uses no database."""
        return [binding.info for binding in self.bindings.values()]

    async def visibility(self, actor: Actor) -> Visibility:
        """The actor's rights, by Django's permissions; without a hop where nobody needs to be asked."""
        bindings, rights = self.bindings, self._rights
        if rights is None or rights.bindings is not bindings:
            rights = self._rights = Rights(bindings, self._mutations)
        return await run_db(rights.of, actor) if rights.asks(actor) else rights.of(actor)

    async def execute(self, plan: QueryPlan, actor: Actor, *, deadline: float | None) -> QueryPage:
        """Run a plan; see :func:`~gm_chat.managers.executor.execute_plan`."""
        return await run_db(execute_plan, plan, self.bindings, actor, deadline=deadline)

    async def aggregate(self, plan: AggregatePlan, actor: Actor, *, deadline: float | None) -> AggregatePage:
        """Run a plan; see :func:`~gm_chat.managers.aggregation.execute_aggregate`."""
        return await run_db(execute_aggregate, plan, self.bindings, actor, deadline=deadline)

    async def mutate(self, call: MutationCall, actor: Actor, *, deadline: float | None) -> Mapping[str, Any]:
        """Check the actor's permission as it is now, then run the call."""
        return await run_db(_if_permitted, execute_mutation, call, self.bindings, actor, deadline)

    async def preview(self, call: MutationCall, actor: Actor, *, deadline: float | None) -> Mapping[str, Any]:
        """Check the actor's permission as it is now, then tell what the call would do."""
        return await run_db(_if_permitted, preview_mutation, call, self.bindings, actor, deadline)


def _if_permitted(
    do: Callable[..., dict[str, Any]],
    call: MutationCall,
    bindings: Mapping[str, Binding],
    actor: Actor,
    deadline: float | None,
) -> dict[str, Any]:
    if not may_run(call.mutation, actor, bindings):
        raise ToolError("permission_denied", f"you may not run {call.mutation.name}")
    return do(call, bindings, actor, deadline=deadline)
