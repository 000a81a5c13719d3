"""The door to a turn: who may start one, who may take a paused one up again, and what waits too long."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from gm_chat.engine.confirmation import timed_out
from gm_chat.engine.failures import TurnStopped, report
from gm_chat.engine.ports import ConfirmationLapsed, JoinedTurn, OpenedTurn
from gm_chat.engine.rate_limit import RateLimited
from gm_chat.engine.shielding import to_the_end
from gm_chat.engine.turn import Turn
from gm_chat.plugin.context import TurnContext, TurnOutcome
from gm_chat.plugin.decisions import Action, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gm_chat.engine.ports import ConfirmRequest, ExpiredMutation, TurnRequest, TurnServices
    from gm_chat.plugin.context import Actor

__all__ = ["accept", "expire", "resume"]

logger = logging.getLogger("gm_chat.engine")


async def accept(services: TurnServices, request: TurnRequest) -> Turn | JoinedTurn:
    """Ask for permission, charge a request, let the store accept the message; else raise :class:`TurnStopped`."""
    decision = await services.permit(Action("message"), request.actor, {"scope": request.scope})
    if decision.verdict is Verdict.DENY:
        raise TurnStopped("permission_denied")
    turn_id = services.new_id()
    try:
        return await _charge_and_open(services, request, turn_id)
    except TurnStopped:
        raise
    except Exception as error:
        context = TurnContext(turn_id, None, request.actor, request.text, request.transport, request.scope)
        raise TurnStopped.with_event(await report(services.observer, context, error)) from error


async def _charge_and_open(services: TurnServices, request: TurnRequest, turn_id: str) -> Turn | JoinedTurn:
    """Charge the request first: whoever is over the limit costs no more than that. It counts only if a turn comes."""
    try:
        allowance = await services.limiter.admit(request.actor)
    except RateLimited:
        if request.key is None or (earlier := await services.store.earlier(request)) is None:
            raise
        return earlier  # sent again: it was charged before, and its answer is there
    opened: OpenedTurn | JoinedTurn | None = None
    try:
        opened = await _open(services, request, turn_id)
    finally:
        if not isinstance(opened, OpenedTurn):
            await to_the_end(allowance.leave())
    return opened if isinstance(opened, JoinedTurn) else Turn.accepted(services, request, turn_id, opened, allowance)


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
    """Claim a pending mutation for its user's word; raise :class:`TurnStopped` if that is impossible.

    An approval that comes while a budget is used up is not claimed: it can be given again until it lapses.
    """
    settings = services.settings
    allowance = services.limiter.resume(request.actor)
    try:
        if request.approved:
            await allowance.check()
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
    return Turn.resumed(services, request, resumed, allowance, stop=stop)


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
