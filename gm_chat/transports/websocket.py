"""One WebSocket: messages, confirmations, cancels and resumes in, events out.

A plain ASGI application. Whatever takes time runs in a task of its own, so that the socket always listens; turns belong
to the runner, and the socket only shows them. (Specification: "WebSocket".)
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gm_chat.engine.failures import TurnStopped
from gm_chat.transports import asks
from gm_chat.transports.asks import Showing
from gm_chat.transports.checked import Unusable
from gm_chat.transports.handshake import Headers, Visit, is_welcome
from gm_chat.transports.incoming import Cancel, Confirm, Resume, Say, read_frame
from gm_chat.transports.line import DENIED, FAILED, Line
from gm_chat.transports.stage import Stage
from gm_chat.transports.wire import event_object
from gm_chat.wiring import get_runtime

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from gm_chat.engine import TurnRunner

    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

__all__ = ["chat_socket"]

IN_PROGRESS: Final = event_object(TurnStopped("turn_in_progress").event)

logger = logging.getLogger(__name__)


async def chat_socket(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
    """Serve one connection, below Channels' ``AuthMiddlewareStack``.

    Close codes: 4403 for a foreign origin or a denied permission, 1011 when the chat cannot be started. Browsers are
    told a code only after an accepted handshake, so it is accepted first.
    """
    await receive()  # websocket.connect
    headers: Headers = []
    code = DENIED
    try:
        runtime = get_runtime()
        if is_welcome(scope, runtime.settings.allowed_origins):
            visit, headers = await Visit.begin(scope, runtime.settings.rate_limit.trusted_proxies)
            if await visit.is_permitted(runtime):
                code = 0
    except Exception:
        logger.exception("a chat socket could not be opened")
        code = FAILED
    await send({"type": "websocket.accept", "headers": headers})
    line = Line(send)
    if code:
        await line.close(code)
        return
    async with Stage(runtime, visit, line) as stage:
        while (message := await receive())["type"] != "websocket.disconnect":
            try:
                said = read_frame(message.get("text"), max_characters=runtime.settings.max_message_characters)
            except Unusable as error:
                await line.emit(event_object(error.event))
            else:
                await stage.room()
                await _obey(said, runtime.runner, stage, line)


async def _obey(said: Say | Confirm | Cancel | Resume, runner: TurnRunner, stage: Stage, line: Line) -> None:
    """Do what the client says, without waiting for what it leads to."""
    match said, stage.showing:
        case Say(key=str(key)), Showing(key=shown) if key == shown:
            pass  # the same message again: its turn is being shown
        case Say() | Resume(), Showing():
            await line.emit(IN_PROGRESS)
        case Say(), None:
            stage.show(partial(asks.say, runner, said), said.key)
        case Resume(), None:
            stage.show(partial(asks.resume, (said.turn_id, said.after_seq)))
        case Confirm(), _:
            stage.show(partial(asks.confirm, runner, said))
        case Cancel(), Showing() as showing:
            showing.cancelled = True
            if showing.turn_id is not None:
                stage.show(partial(asks.cancel, runner, showing.turn_id, None))
        case Cancel(), None:
            if stage.paused is not None:
                stage.show(partial(asks.cancel, runner, stage.paused[0], stage.paused))
