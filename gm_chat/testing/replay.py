"""A loopback HTTP server that replays recorded wire bytes, for tests of provider adapters with their real SDK.

Mocking an HTTP library reaches only the SDKs that use it, and skips what breaks in the field: bytes cut in the middle
of a character, a connection that dies, a server that goes silent. So the adapter talks to a real socket::

    async with ReplayServer() as server:
        server.reply("/v1/chat/completions", Reply(recording, cuts=[17, 18]))
        provider = MyProvider.from_config({"base_url": f"{server.url}/v1"})
        ...
        request = server.requests[0]
        assert request.json()["model"] == "small"
        await request.closed_by_client(within=1.0)
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Self

from gm_chat.testing.client_end import ClientEnd

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

__all__ = ["ReplayServer", "ReplayedRequest", "Reply"]


@dataclass(frozen=True, slots=True)
class Reply:
    """What to answer one request with. Positions are byte offsets into ``body``.

    ``cuts``: where the body is split into pieces, each of which is sent when a client in the same process has read
    the one before. ``stall_at``: send up to there, then stay silent until the client goes away (or the server is
    closed). ``drop_at``: send up to there, then break the connection. ``hang_up``: close the connection without a
    byte, as a server does with one that was idle too long.
    """

    body: bytes = b""
    status: int = 200
    content_type: str = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict)
    cuts: Sequence[int] = ()
    stall_at: int | None = None
    drop_at: int | None = None
    hang_up: bool = False

    def pieces(self) -> list[bytes]:
        """The parts of the body that are sent one by one, up to where the reply stalls or drops."""
        limits = [position for position in (self.stall_at, self.drop_at) if position is not None]
        body = self.body[: min(limits)] if limits else self.body
        edges = sorted({0, len(body), *(cut for cut in self.cuts if 0 < cut < len(body))})
        return [body[start:end] for start, end in itertools.pairwise(edges)]


@dataclass(slots=True)
class ReplayedRequest:
    """One request as the server saw it. ``connection`` counts from 1: equal numbers mean a reused connection."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int
    _closed: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    def json(self) -> Any:
        """The decoded body."""
        return json.loads(self.body)

    @property
    def is_closed_by_client(self) -> bool:
        """Whether the client closed the connection before the reply was complete."""
        return self._closed.is_set()

    def note_close(self) -> None:
        """Called by the server when the client goes away mid-reply."""
        self._closed.set()

    async def closed_by_client(self, *, within: float) -> float:
        """Wait until the client closes the connection mid-reply; return the seconds it took, ``TimeoutError`` else."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        async with asyncio.timeout(within):
            await self._closed.wait()
        return loop.time() - start


class ReplayServer:
    """An HTTP/1.1 server on a free loopback port, in the running event loop. Use it with ``async with``."""

    def __init__(self) -> None:
        self.requests: list[ReplayedRequest] = []
        """All requests so far, oldest first."""
        self._replies: dict[str, deque[Reply]] = {}
        self._connections = 0
        self._handlers: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._asked = asyncio.Condition()

    @property
    def url(self) -> str:
        """The server's address, e.g. ``http://127.0.0.1:40123``, without a trailing slash."""
        if self._server is None:
            raise RuntimeError("the ReplayServer is not running: enter it with 'async with' first")
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    def reply(self, path: str, *replies: Reply) -> None:
        """Answer requests for ``path`` (without its query) with ``replies`` in turn; the last one repeats."""
        self._replies[path] = deque(replies)

    async def wait_for_request(self, *, within: float, number: int = 1) -> ReplayedRequest:
        """Return a request, counted from 1, as soon as it has come; ``TimeoutError`` if it does not."""
        async with asyncio.timeout(within), self._asked:
            await self._asked.wait_for(lambda: len(self.requests) >= number)
        return self.requests[number - 1]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is None:
            return
        self._server.close()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._handlers.add(task)
            task.add_done_callback(self._handlers.discard)
        self._connections += 1
        number = self._connections
        client = ClientEnd(writer.get_extra_info("peername")[:2])
        try:
            # A client may go away at any moment: that is what many of these tests are about.
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self._serve_one(reader, writer, number, client):
                    pass
        finally:
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve_one(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int, client: ClientEnd
    ) -> bool:
        """Answer one request; return whether the connection can serve another."""
        request = await _read_request(reader, number)
        async with self._asked:
            self.requests.append(request)
            self._asked.notify_all()
        reply = self._next_reply(request.path)
        if reply.hang_up:
            return False
        watcher = asyncio.ensure_future(_watch(reader, request))
        try:
            complete = await _send(writer, reply, watcher, client)
        except ConnectionError:
            request.note_close()
            return False
        finally:
            # Before the reply is ended: what the client sends after that is its next request, not the watcher's.
            watcher.cancel()
            with suppress(asyncio.CancelledError):
                await watcher
        if complete:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return complete

    def _next_reply(self, path: str) -> Reply:
        replies = self._replies.get(path)
        if not replies:
            known = ", ".join(sorted(self._replies)) or "none"
            body = f"no reply was set for {path!r}; known paths: {known}".encode()
            return Reply(body, status=404, content_type="text/plain")
        return replies.popleft() if len(replies) > 1 else replies[0]


async def _read_request(reader: asyncio.StreamReader, number: int) -> ReplayedRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    method, target, _version = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if "chunked" in headers.get("transfer-encoding", ""):
        body = await _read_chunks(reader)
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return ReplayedRequest(method, target.partition("?")[0], headers, body, number)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")
    return body


async def _watch(reader: asyncio.StreamReader, request: ReplayedRequest) -> None:
    """Note when the client closes its side. Clients send nothing while they read a reply, so any byte is the end."""
    with suppress(ConnectionError):
        await reader.read(1)
    request.note_close()


async def _send(writer: asyncio.StreamWriter, reply: Reply, watcher: asyncio.Future[None], client: ClientEnd) -> bool:
    """Send all but the end of a reply; return false if it stalled or was dropped instead."""
    head = _head(reply)
    for piece in reply.pieces():
        writer.write(b"%b%x\r\n%b\r\n" % (head, len(piece), piece))
        await writer.drain()
        head = b""
        if reply.cuts:
            await client.has_read()
    writer.write(head)
    if reply.stall_at is not None:
        await watcher
        return False
    if reply.drop_at is not None:
        await client.has_read()  # an abort may overtake what was sent
        writer.transport.abort()
        return False
    return True


def _head(reply: Reply) -> bytes:
    try:
        phrase = HTTPStatus(reply.status).phrase
    except ValueError:
        phrase = "Unknown"
    headers = {"content-type": reply.content_type, "transfer-encoding": "chunked", **reply.headers}
    lines = [f"HTTP/1.1 {reply.status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
