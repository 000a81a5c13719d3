"""Clients of one user each: a question in, the turn's events out, over each transport.

HTTP and SSE are spoken by hand over one kept connection: a client library would cost more than a turn, and on the
processor that the server needs.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from websockets.asyncio.client import connect

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

__all__ = ["QUESTIONS", "TRANSPORTS", "Address", "Client", "TurnFailedError", "checked", "connected"]

QUESTIONS: Final = {
    "text": "tell me something",
    "query": "query the bolts",
    "planned": "query the bolts",
    "slow": "query them slowly",
}
TURN_SECONDS: Final = 60.0


class TurnFailedError(Exception):
    """A turn did not end as its question asks for; the message holds what came instead."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens, and whose session to use."""

    port: int
    session: str
    csrf: str

    @property
    def cookie(self) -> str:
        """The session's and the form protection's cookies."""
        return f"sessionid={self.session}; csrftoken={self.csrf}"

    @property
    def origin(self) -> str:
        """What a browser would say it comes from."""
        return f"http://127.0.0.1:{self.port}"


class Client(Protocol):
    """One user's connection."""

    async def open(self) -> None:
        """Connect."""
        ...

    async def ask(self, text: str) -> list[dict[str, Any]]:
        """Send a message and return the events of its turn."""
        ...

    async def close(self) -> None:
        """Disconnect."""
        ...


class HttpClient:
    """``POST /chat/`` over a connection that stays open."""

    path = "/chat/"

    def __init__(self, address: Address) -> None:
        """Remember the address."""
        self._address = address
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self) -> None:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._address.port, limit=2**22)

    async def ask(self, text: str) -> list[dict[str, Any]]:
        """Post the message and read the whole answer."""
        status, body = await self.request("POST", self.path, json.dumps({"text": text}).encode())
        if status != 200:
            raise TurnFailedError(f"status {status}: {body[:200]!r}")
        return self.events_of(body)

    def events_of(self, body: bytes) -> list[dict[str, Any]]:
        """Take the events out of the envelope."""
        events: list[dict[str, Any]] = json.loads(body)["events"]
        return events

    async def request(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Make one request and return the status and the body."""
        if self._reader is None or self._writer is None:
            raise RuntimeError("open() comes first")
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._address.port}\r\nCookie: {self._address.cookie}\r\n"
            f"X-CSRFToken: {self._address.csrf}\r\nOrigin: {self._address.origin}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ", 2)[1])
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if headers.get("transfer-encoding") == "chunked":
            return status, b"".join([part async for part in self._chunks(self._reader)])
        return status, await self._reader.readexactly(int(headers.get("content-length", "0")))

    @staticmethod
    async def _chunks(reader: asyncio.StreamReader) -> Any:
        while size := int(await reader.readline(), 16):
            yield (await reader.readexactly(size + 2))[:-2]
        await reader.readline()

    async def close(self) -> None:
        """Disconnect."""
        if self._writer is not None:
            self._writer.close()


class SseClient(HttpClient):
    """``POST /chat/stream/``."""

    path = "/chat/stream/"

    def events_of(self, body: bytes) -> list[dict[str, Any]]:
        """Take the events out of the frames."""
        return [json.loads(line[5:]) for line in body.split(b"\n") if line.startswith(b"data:")]


class WebSocketClient:
    """One socket at ``/chat/``."""

    def __init__(self, address: Address) -> None:
        """Remember the address."""
        self._address = address
        self._socket: ClientConnection | None = None

    async def open(self) -> None:
        """Connect, with the session's cookie and the page's origin."""
        self._socket = await connect(
            f"ws://127.0.0.1:{self._address.port}/chat/",
            additional_headers={"Cookie": self._address.cookie},
            origin=self._address.origin,  # type: ignore[arg-type]  # a NewType of str
            compression=None,
            open_timeout=TURN_SECONDS,
            ping_interval=None,
            proxy=None,
        )

    async def ask(self, text: str) -> list[dict[str, Any]]:
        """Send the message and read events until the turn's last one."""
        if self._socket is None:
            raise RuntimeError("open() comes first")
        await self._socket.send(json.dumps({"type": "message", "text": text}))
        events: list[dict[str, Any]] = []
        while not events or events[-1]["type"] not in {"done", "error"}:
            events.append(json.loads(await self._socket.recv()))
        return events

    async def close(self) -> None:
        """Disconnect."""
        if self._socket is not None:
            await self._socket.close()


TRANSPORTS: Final[dict[str, type[Client]]] = {"http": HttpClient, "sse": SseClient, "ws": WebSocketClient}


async def connected(transport: str, addresses: list[Address]) -> list[Client]:
    """Open one client for each address."""
    clients = [TRANSPORTS[transport](address) for address in addresses]  # type: ignore[call-arg]  # not in the protocol
    await asyncio.gather(*(client.open() for client in clients))
    return clients


async def checked(client: Client, kind: str) -> None:
    """Ask the question of ``kind``; raise :class:`TurnFailedError` unless the answer is complete and right."""
    try:
        async with asyncio.timeout(TURN_SECONDS):
            events = await client.ask(QUESTIONS[kind])
    except (OSError, ValueError, EOFError, TimeoutError) as error:
        raise TurnFailedError(repr(error)) from error
    if not events or events[-1]["type"] != "done":
        raise TurnFailedError(repr(events[-1:])[:300])
    answer = "".join(event["content"] for event in events if event["type"] == "text_chunk")
    results = [event["result"] for event in events if event["type"] == "tool_result"]
    rows = [len(result.get("data", ())) for result in results]
    expected = {"text": [], "query": [10], "planned": [10], "slow": [0]}[kind]
    if answer != "There are parts." or rows != expected:
        raise TurnFailedError(f"answer {answer!r}, rows {rows}: {results!r}"[:300])
