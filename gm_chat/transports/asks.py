"""What a socket asks of the runner. Each answers with a place to show a turn from, a refusal, or nothing to show."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from gm_chat.engine.events import Error
from gm_chat.engine.ports import ConfirmRequest, TurnRequest
from gm_chat.transports.handshake import Visit
from gm_chat.transports.turns import begin

if TYPE_CHECKING:
    from gm_chat.engine import TurnRunner
    from gm_chat.transports.incoming import Confirm, Say

__all__ = ["Ask", "Place", "Showing", "cancel", "confirm", "lapse", "resume", "say"]

Place: TypeAlias = tuple[str, int]
"""A turn, and the ``seq`` after which its events are wanted."""

Ask: TypeAlias = Callable[[Visit], Awaitable[Place | Error | None]]


@dataclass(slots=True, eq=False)
class Showing:
    """A turn that is shown; its id is known once it is accepted. ``key`` is the client's id of its message."""

    turn_id: str | None = None
    cancelled: bool = False
    key: str | None = None


async def say(runner: TurnRunner, said: Say, visit: Visit) -> Place | Error:
    """Begin a turn, or join the one that the same message began."""
    request = TurnRequest(actor=visit.actor, text=said.text, transport="websocket", scope=visit.scope, key=said.key)
    return (await begin(runner, request)).place


async def confirm(runner: TurnRunner, word: Confirm, visit: Visit) -> Place | Error:
    """Approve or reject a mutation, and go on with its turn."""
    request = ConfirmRequest(
        actor=visit.actor,
        confirmation_id=word.confirmation_id,
        approved=word.confirmed,
        transport="websocket",
        scope=visit.scope,
    )
    return (await begin(runner, request)).place


async def cancel(runner: TurnRunner, turn_id: str, rest: Place | None, visit: Visit) -> Place | None:
    """Stop a turn. A paused one is not being shown, so ``rest`` says where its end stands."""
    await runner.cancel(turn_id, actor=visit.actor)
    return rest


async def lapse(runner: TurnRunner, rest: Place, visit: Visit) -> Place:
    """End a confirmation whose time is over, unless somebody else did, and show what became of its turn."""
    await runner.expire(visit.actor)
    return rest


async def resume(place: Place, visit: Visit) -> Place:
    """Show a turn that was begun elsewhere. Whether it is the visitor's own is found out when it is followed."""
    del visit
    return place
