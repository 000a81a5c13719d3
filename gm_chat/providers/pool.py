"""SDK clients, kept per event loop and configuration, closed together with their loop.

A client's connections belong to the event loop that opened them, so one client for the process would break where loops
come and go (a WSGI server runs one per request, a test one per function), and one client per call would pay for a new
connection, and for reading the certificates, each time.

asyncio offers no "loop is closing" callback, with one exception: ``loop.shutdown_asyncgens()``, which ``asyncio.run``
and every server call before they close a loop, finalises the asynchronous generators that were started on it. The
pool parks one such generator per loop, and closes that loop's clients in its ``finally``.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable

__all__ = ["ClientPool", "open_clients"]

Client = TypeVar("Client")


@dataclass(slots=True)
class _LoopClients(Generic[Client]):
    clients: dict[Hashable, Client] = field(default_factory=dict)
    guard: AsyncGenerator[None] | None = None


class ClientPool(Generic[Client]):
    """Hands out the client of the running loop for a configuration; ``close`` releases one of them."""

    def __init__(self, close: Callable[[Client], Awaitable[None]]) -> None:
        self._close = close
        self._loops: dict[asyncio.AbstractEventLoop, _LoopClients[Client]] = {}
        self._lock = threading.Lock()
        _POOLS.add(self)

    async def get(self, key: Hashable, make: Callable[[], Client]) -> Client:
        """Return the running loop's client for ``key``, made by ``make()`` at first use."""
        loop = asyncio.get_running_loop()
        with self._lock:
            for closed in [known for known in self._loops if known.is_closed()]:
                del self._loops[closed]  # closed without shutdown_asyncgens(): nothing can be awaited there any more
            mine = self._loops.setdefault(loop, _LoopClients())
        if mine.guard is None:
            mine.guard = self._guard(loop)
            await anext(mine.guard)
        if key not in mine.clients:
            mine.clients[key] = make()
        return mine.clients[key]

    def __len__(self) -> int:
        """How many clients it holds, of all loops."""
        return sum(len(loop.clients) for loop in list(self._loops.values()))

    async def _guard(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            with self._lock:
                mine = self._loops.pop(loop, None)
            for client in mine.clients.values() if mine else ():
                await self._close(client)


_POOLS: Final[weakref.WeakSet[ClientPool[Any]]] = weakref.WeakSet()


def open_clients() -> int:
    """How many clients all pools of this process hold: for tests and monitoring."""
    return sum(map(len, list(_POOLS)))
