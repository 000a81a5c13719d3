"""The door to a turn: who may start one, who may take a paused one up again, and what waits too long."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from gm_chat.engine.confirmation import timed_out
from gm_chat.engine.failures import TurnStopped, report
from gm_chat.engine.ports import ConfirmationLapsed, JoinedTurn
from gm_chat.engine.shielding import to_the_end
from gm_chat.engine.turn import Turn
from gm_chat.plugin.context import TurnContext, TurnOutcome
from gm_chat.plugin.decisions import Action, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gm_chat.engine.ports import ConfirmRequest, ExpiredMutation, OpenedTurn, TurnRequest, TurnServices
    from gm_chat.plugin.context import Actor

__all__ = ["accept", "expire", "resume"]

logger = logging.getLogger("gm_chat.engine")


async def accept(services: TurnServices, request: TurnRequest) -> Turn | JoinedTurn:
    """Ask for permission and let the store accept the message; raise :class:`TurnStopped` for any other end."""
    decision = await services.permit(Action("message"), request.actor, {"scope": request.scope})
    if decision.verdict is Verdict.DENY:
        raise TurnStopped("permission_denied")
    turn_id = services.new_id()
    try:
        opened = await _open(services, request, turn_id)
    except TurnStopped:
        raise
    except Exception as error:
        context = TurnContext(turn_id, None, request.actor, request.text, request.transport, request.scope)
        raise TurnStopped.with_event(await report(services.observer, context, error)) from error
    return opened if isinstance(opened, JoinedTurn) else Turn.accepted(services, request, turn_id, opened)


async def _open(services: TurnServices, request: TurnRequest, turn_id: str) -> OpenedTurn | JoinedTurn:
    limit = services.settings.max_recent_messages
    try:
        return await services.store.open_turn(request, turn_id, max_messages=limit)
    except ConfirmationLapsed:
        await expire(services, request.actor)
    try:
        return await services.store.open_turn(request, turn_id, max_messages=limit)
    except ConfirmationLapsed:
        raise TurnStopped("confirmation_pending") from None


async def resume(services: TurnServices, request: ConfirmRequest, *, stop: bool = False) -> Turn:
    """Claim a pending mutation for its user's word; raise :class:`TurnStopped` if that is impossible."""
    settings = services.settings
    try:
        resumed = await services.store.claim(
            request, max_messages=settings.max_recent_messages, lease_seconds=settings.claim_lease_seconds
        )
    except TurnStopped:
        raise
    except ConfirmationLapsed:
        await expire(services, request.actor)
        raise TurnStopped("confirmation_unavailable") from None
    except Exception as error:
        context = TurnContext("", None, request.actor, "", request.transport, request.scope)
        raise TurnStopped.with_event(await report(services.observer, context, error)) from error
    return Turn.resumed(services, request, resumed, stop=stop)


async def expire(services: TurnServices, actor: Actor | None = None) -> Sequence[ExpiredMutation]:
    """End the confirmations whose time is over, the actor's or everybody's, and tell the observer of each, once."""
    return await to_the_end(_expire(services, actor))


async def _expire(services: TurnServices, actor: Actor | None) -> Sequence[ExpiredMutation]:
    expired = await services.store.expire(actor)
    for item in expired:
        try:
            await _tell(services, item)
        except Exception:
            logger.exception("the observer of turn %s failed", item.turn_id)
    return expired


async def _tell(services: TurnServices, item: ExpiredMutation) -> None:
    # No client takes part: the housekeeping of the server ends the turn.
    context = TurnContext(item.turn_id, item.conversation_id, item.actor, item.text, "terminal")
    row = timed_out(item.pending)
    await services.observer.tool_finished(
        context, item.pending.id, row.tool_name or "", row.tool_args or {}, row.tool_result
    )
    usage = item.pending.progress.usage
    await services.observer.turn_finished(context, TurnOutcome("done", None, usage.input_tokens, usage.output_tokens))
