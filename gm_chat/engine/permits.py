"""Asking permission for what a tool does, at the moment at which it does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gm_chat.plugin.decisions import Action, Verdict
from gm_chat.plugin.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.engine.ports import TurnServices
    from gm_chat.managers.api import ManagerView, MutationCall, QueryPage, QueryPlan
    from gm_chat.managers.measures import AggregatePage, AggregatePlan
    from gm_chat.plugin.context import Actor, TurnContext

__all__ = ["PermittedManagers", "require"]


async def require(action: Action, services: TurnServices, turn: TurnContext, args: Mapping[str, Any]) -> None:
    """Ask the permission checks; a denial is told to the model without its reason, which is the operator's."""
    decision = await services.permit(action, turn.actor, {"scope": turn.scope, "args": args})
    if decision.verdict is Verdict.DENY:
        raise ToolError("permission_denied", f"this user may not use the {action.kind} {action.name!r}")


class PermittedManagers:
    """The turn's ``ManagerService``: each mutation asks permission right before it runs.

    By then the tool has checked name, input and allow-list, in the contract's order, and told the model what is
    wrong with them; and a third-party tool that writes through it is asked about like the built-in one.

    What the turn's actor sees is worked out once, so that the prompt and all tools of a turn go by the same view.
    """

    def __init__(self, services: TurnServices, turn: TurnContext) -> None:
        """Serve one turn."""
        self._services = services
        self._turn = turn
        self._view: ManagerView | None = None

    async def view(self, actor: Actor) -> ManagerView:
        """The actor's view of the index."""
        if actor is not self._turn.actor:
            return await self._services.managers.view(actor)
        if self._view is None:
            self._view = await self._services.managers.view(actor)
        return self._view

    async def query(self, plan: QueryPlan, actor: Actor, *, deadline: float | None) -> QueryPage:
        """Run a plan."""
        return await self._services.managers.query(plan, actor, deadline=deadline)

    async def aggregate(self, plan: AggregatePlan, actor: Actor, *, deadline: float | None) -> AggregatePage:
        """Run a computation."""
        return await self._services.managers.aggregate(plan, actor, deadline=deadline)

    async def mutate(self, call: MutationCall, actor: Actor, *, deadline: float | None) -> Mapping[str, Any]:
        """Run a mutation if every check permits ``Action("mutation", <its name>)``."""
        await self._require(call)
        return await self._services.managers.mutate(call, actor, deadline=deadline)

    async def preview(self, call: MutationCall, actor: Actor, *, deadline: float | None) -> Mapping[str, Any] | None:
        """Tell what a mutation would do, if it is permitted: nobody is asked to approve what could not run."""
        await self._require(call)
        return await self._services.managers.preview(call, actor, deadline=deadline)

    async def _require(self, call: MutationCall) -> None:
        name = call.mutation.name
        await require(Action("mutation", name), self._services, self._turn, {"mutation": name, "input": call.values})
