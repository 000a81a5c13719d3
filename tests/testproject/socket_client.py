"""The client's end of a chat socket, without a network: talks to an ASGI application in the same event loop."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from gm_chat.asgi import websocket_application

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ENDS = {"done", "error", "confirm_mutation"}
SECONDS = 5.0


class SocketClient:
    """Sends objects, text or bytes; receives events."""

    def __init__(self) -> None:
        self.headers: dict[bytes, bytes] = {}
        self._inbox: asyncio.Queue[Any] = asyncio.Queue()
        self._outbox: asyncio.Queue[Any] = asyncio.Queue()

    async def say(self, text: str, **more: Any) -> None:
        await self.send({"type": "message", "text": text, **more})

    async def send(self, value: Any) -> None:
        match value:
            case bytes():
                await self._inbox.put({"type": "websocket.receive", "bytes": value})
            case str():
                await self._inbox.put({"type": "websocket.receive", "text": value})
            case _:
                await self._inbox.put({"type": "websocket.receive", "text": json.dumps(value)})

    async def event(self, seconds: float = SECONDS) -> dict[str, Any]:
        """The next event."""
        message = await asyncio.wait_for(self._outbox.get(), seconds)
        assert message["type"] == "websocket.send", message
        event: dict[str, Any] = json.loads(message["text"])
        return event

    async def closed(self) -> int:
        """The code with which the server closes the socket, next."""
        message = await asyncio.wait_for(self._outbox.get(), SECONDS)
        assert message["type"] == "websocket.close", message
        code: int = message["code"]
        return code

    async def rest(self) -> list[dict[str, Any]]:
        """The events up to one that ends the stream."""
        events = [await self.event()]
        while events[-1]["type"] not in ENDS:
            events.append(await self.event())
        return events

    async def ask(self, text: str, **more: Any) -> list[dict[str, Any]]:
        await self.say(text, **more)
        return await self.rest()

    async def is_silent(self, seconds: float = 0.1) -> bool:
        await asyncio.sleep(seconds)
        return self._outbox.empty()

    async def leave(self) -> None:
        await self._inbox.put({"type": "websocket.disconnect", "code": 1001})


@asynccontextmanager
async def connected(
    *,
    path: str = "/chat/",
    origin: str | None = "http://testserver",
    cookies: dict[str, str] | None = None,
    application: Any = None,
) -> AsyncIterator[SocketClient]:
    """Open a socket; the block begins when the handshake is over, and its end leaves the socket."""
    headers = [] if origin is None else [(b"origin", origin.encode("latin-1"))]
    if cookies:
        headers.append((b"cookie", "; ".join(f"{name}={value}" for name, value in cookies.items()).encode()))
    scope = {
        "type": "websocket",
        "path": path,
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 50000),
        "subprotocols": [],
    }
    client = SocketClient()
    await client._inbox.put({"type": "websocket.connect"})
    served = asyncio.create_task((application or websocket_application())(scope, client._inbox.get, client._outbox.put))
    opening = asyncio.create_task(client._outbox.get())
    await asyncio.wait({opening, served}, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
    if not opening.done():
        opening.cancel()
        await served
    answer = opening.result()
    assert answer["type"] == "websocket.accept", answer
    client.headers = dict(answer.get("headers", ()))
    try:
        yield client
    finally:
        await client.leave()
        await asyncio.wait_for(served, SECONDS)
