"""Telling a connection that went stale in a client's pool from a server that hangs up.

Servers close connections that were idle for some seconds. A client that sends its next request in that very moment
learns of it by the connection's end, before any byte of an answer: the request was not heard, so it is safe, and right,
to send it once more. The same end of a connection that was opened for the request is the server's answer to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["ConnectionWatch", "retry_stale", "went_stale"]

Response = TypeVar("Response")


class ConnectionWatch:
    """The extension ``trace`` of one httpx request: notes whether a connection was opened for it."""

    def __init__(self) -> None:
        self.opened = False

    async def __call__(self, event: str, _info: Any) -> None:
        """Called by httpcore with each event of the request."""
        if event.startswith("connection.connect_"):
            self.opened = True


async def retry_stale(send: Callable[[], Awaitable[Response]], *lost: type[Exception]) -> Response:
    """Send a request; once more if the connection that was kept from an earlier one :func:`went_stale`."""
    try:
        return await send()
    except Exception as error:
        if not went_stale(error, *lost):
            raise
    return await send()


def went_stale(error: Exception, *lost: type[Exception]) -> bool:
    """Whether a kept connection had been closed, so that nobody heard the request and it can be sent once more.

    ``error`` is the HTTP library's, or an SDK's that was raised from it; ``lost`` are the HTTP library's errors of a
    connection that breaks. The request must have a :class:`ConnectionWatch` as its extension ``trace``.
    """
    if not (isinstance(error, lost) or isinstance(error.__cause__, lost)):
        return False
    request = getattr(error, "request", None)
    watch = None if request is None else request.extensions.get("trace")
    return isinstance(watch, ConnectionWatch) and not watch.opened
