"""A turn as a client follows it: what every transport has in common after the request is read."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from gm_chat.engine import UnknownTurnError
from gm_chat.engine.events import Error
from gm_chat.engine.failures import TurnStopped, unexpected
from gm_chat.engine.ports import TurnRequest
from gm_chat.transports.wire import event_object, logged_object

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from gm_chat.engine import TurnRunner
    from gm_chat.engine.ports import ConfirmRequest
    from gm_chat.plugin import Actor

__all__ = ["answer", "begin", "exists", "follow", "whole_answer"]


async def begin(runner: TurnRunner, request: TurnRequest | ConfirmRequest) -> tuple[str, int] | Error:
    """Start, join or resume a turn: its id, and the ``seq`` after which its answer to this request begins.

    A refusal is an event like any other, only that it belongs to no turn.
    """
    try:
        if isinstance(request, TurnRequest):
            return await runner.start(request), 0
        return await runner.confirm(request)
    except TurnStopped as refusal:
        return refusal.event
    except Exception as error:  # noqa: BLE001 - logged, and told to the client in general words
        return unexpected(error, "of a request that was not accepted")


async def follow(
    runner: TurnRunner, turn_id: str, after_seq: int, actor: Actor
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the public form of the turn's events after ``after_seq``; raise ``UnknownTurnError`` if it is not theirs.

    Close it with ``aclosing``: who leaves early starts the grace period in which one may come back.
    """
    async with aclosing(runner.subscribe(turn_id, after_seq, actor=actor)) as events:
        async for logged in events:
            yield logged_object(logged)


async def answer(runner: TurnRunner, request: TurnRequest | ConfirmRequest) -> AsyncGenerator[dict[str, Any], None]:
    """Begin a turn and follow it. Nothing is begun before the first event is asked for."""
    match await begin(runner, request):
        case Error() as refusal:
            yield event_object(refusal)
        case turn_id, after_seq:
            async with aclosing(follow(runner, turn_id, after_seq, request.actor)) as events:
                async for event in events:
                    yield event


async def whole_answer(runner: TurnRunner, request: TurnRequest | ConfirmRequest) -> list[dict[str, Any]]:
    """The same events as :func:`answer`, all of them at the turn's end."""
    match await begin(runner, request):
        case Error() as refusal:
            return [event_object(refusal)]
        case turn_id, after_seq:
            return [logged_object(item) for item in await runner.collect(turn_id, after_seq, actor=request.actor)]


async def exists(runner: TurnRunner, turn_id: str, actor: Actor) -> bool:
    """Whether a turn that has ended is the actor's own."""
    try:
        async with aclosing(runner.subscribe(turn_id, actor=actor)) as events:
            await anext(events, None)
    except UnknownTurnError:
        return False
    return True
