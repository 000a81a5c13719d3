"""The sending side of a socket, for as long as it is open."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from gm_chat.encoding import to_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

__all__ = ["DENIED", "FAILED", "Line"]

DENIED: Final = 4403
FAILED: Final = 1011


class Line:
    """Sends events and at most one close. What comes after that, or when the client is gone, goes nowhere."""

    def __init__(self, send: Send) -> None:
        """Send by ASGI's ``send``."""
        self._send = send
        self._is_open = True

    async def emit(self, event: dict[str, Any]) -> None:
        """Send an event as a text frame."""
        await self._put({"type": "websocket.send", "text": to_json(event)})

    async def close(self, code: int) -> None:
        """Close the socket with a code that says why."""
        await self._put({"type": "websocket.close", "code": code})
        self._is_open = False

    async def _put(self, message: dict[str, Any]) -> None:
        if self._is_open:
            with suppress(OSError):  # the client is gone, as the server is about to say
                await self._send(message)
