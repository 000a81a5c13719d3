"""A turn as a client follows it: what every transport has in common after the request is read."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple

from gm_chat.engine import UnknownTurnError
from gm_chat.engine.events import Error
from gm_chat.engine.failures import TurnStopped, unexpected
from gm_chat.engine.ports import TurnRequest
from gm_chat.transports.wire import event_object, logged_object

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Sequence

    from gm_chat.engine import TurnRunner
    from gm_chat.engine.budgets import BudgetState
    from gm_chat.engine.ports import ConfirmRequest
    from gm_chat.plugin import Actor

__all__ = ["Begun", "answer", "begin", "exists", "follow", "whole_answer"]


class Begun(NamedTuple):
    """What came of a request: a turn's id and the ``seq`` after which its answer begins, or a refusal.

    ``budgets`` is how the actor's budgets stand, as far as that was asked for.
    """

    place: tuple[str, int] | Error
    budgets: Sequence[BudgetState] = ()


async def begin(runner: TurnRunner, request: TurnRequest | ConfirmRequest) -> Begun:
    """Start, join or resume a turn. A refusal is an event like any other, only that it belongs to no turn."""
    try:
        place = (await runner.start(request), 0) if isinstance(request, TurnRequest) else await runner.confirm(request)
        return Begun(place, runner.budgets(place[0]))
    except TurnStopped as refusal:
        return Begun(refusal.event, refusal.budgets)
    except Exception as error:  # noqa: BLE001 - logged, and told to the client in general words
        return Begun(unexpected(error, "of a request that was not accepted"))


async def follow(
    runner: TurnRunner, turn_id: str, after_seq: int, actor: Actor
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the public form of the turn's events after ``after_seq``; raise ``UnknownTurnError`` if it is not theirs.

    Close it with ``aclosing``: who leaves early starts the grace period in which one may come back.
    """
    async with aclosing(runner.subscribe(turn_id, after_seq, actor=actor)) as events:
        async for logged in events:
            yield logged_object(logged)


async def answer(runner: TurnRunner, beginning: Awaitable[Begun], actor: Actor) -> AsyncGenerator[dict[str, Any], None]:
    """Wait until a turn has begun, and follow it."""
    match (await beginning).place:
        case Error() as refusal:
            yield event_object(refusal)
        case turn_id, after_seq:
            async with aclosing(follow(runner, turn_id, after_seq, actor)) as events:
                async for event in events:
                    yield event


async def whole_answer(
    runner: TurnRunner, request: TurnRequest | ConfirmRequest
) -> tuple[list[dict[str, Any]], Sequence[BudgetState]]:
    """The same events as :func:`answer`, all of them at the turn's end, and how the budgets stand then."""
    begun = await begin(runner, request)
    match begun.place:
        case Error() as refusal:
            return [event_object(refusal)], begun.budgets
        case turn_id, after_seq:
            events = await runner.collect(turn_id, after_seq, actor=request.actor)
            return [logged_object(item) for item in events], runner.budgets(turn_id)


async def exists(runner: TurnRunner, turn_id: str, actor: Actor) -> bool:
    """Whether a turn that has ended is the actor's own."""
    try:
        async with aclosing(runner.subscribe(turn_id, actor=actor)) as events:
            await anext(events, None)
    except UnknownTurnError:
        return False
    return True
