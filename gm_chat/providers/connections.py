"""Telling a connection that went stale in a client's pool from a server that hangs up.

Servers close connections that were idle for some seconds. A client that sends its next request in that very moment
learns of it by the connection's end, before any byte of an answer: the request was not heard, so it is safe, and right,
to send it once more. The same end of a connection that was opened for the request is the server's answer to it.
"""

from __future__ import annotations

from typing import Any

__all__ = ["ConnectionWatch"]


class ConnectionWatch:
    """The ``trace`` extension of one httpx request: notes whether a connection was opened for it."""

    def __init__(self) -> None:
        self.opened = False

    async def __call__(self, event: str, _info: Any) -> None:
        """Called by httpcore with each event of the request."""
        if event.startswith("connection.connect_"):
            self.opened = True
