"""The replay server, seen by a client that nobody else's library helps."""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from gm_chat.testing.replay import ReplayServer, Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def connected(server: ReplayServer) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, port = server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.close()


def post(path: str = "/chat", body: bytes = b"{}") -> bytes:
    return b"POST %b HTTP/1.1\r\nHost: x\r\nX-Key: a:b\r\nContent-Length: %d\r\n\r\n%b" % (
        path.encode(),
        len(body),
        body,
    )


async def chunk(reader: asyncio.StreamReader) -> bytes:
    size = int(await reader.readuntil(b"\n"), 16)
    return (await reader.readexactly(size + 2))[:-2]


async def whole(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    body = b""
    while piece := await chunk(reader):
        body += piece
    return head, body


async def test_a_reply_and_what_was_asked() -> None:
    async with ReplayServer() as server:
        server.reply("/chat", Reply(b"data: 1\n\n", status=429, headers={"retry-after": "3"}))
        async with connected(server) as (reader, writer):
            writer.write(post("/chat?x=1", '{"a": "ü"}'.encode()))
            head, body = await whole(reader)
    assert head.startswith("HTTP/1.1 429 Too Many Requests\r\n")
    assert "content-type: text/event-stream\r\n" in head
    assert "retry-after: 3\r\n" in head
    assert body == b"data: 1\n\n"
    (request,) = server.requests
    assert (request.method, request.path, request.headers["x-key"]) == ("POST", "/chat", "a:b")
    assert request.json() == {"a": "ü"}
    assert not request.is_closed_by_client


async def test_a_body_that_is_sent_in_chunks() -> None:
    async with ReplayServer() as server:
        server.reply("/chat", Reply(b"ok"))
        async with connected(server) as (reader, writer):
            writer.write(
                b'POST /chat HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{"\r\n5;x=y\r\na":1}\r\n0\r\n\r\n'
            )
            await whole(reader)
    assert server.requests[0].json() == {"a": 1}


async def test_replies_come_in_turn_and_the_last_repeats_on_one_connection() -> None:
    async with ReplayServer() as server:
        server.reply("/chat", Reply(b"1"), Reply(b"2"))
        async with connected(server) as (reader, writer):
            bodies = []
            for _ in range(3):
                writer.write(post())
                bodies.append((await whole(reader))[1])
        async with connected(server) as (reader, writer):
            writer.write(post())
            await whole(reader)
    assert bodies == [b"1", b"2", b"2"]
    assert [request.connection for request in server.requests] == [1, 1, 1, 2]


async def test_pieces_arrive_one_by_one() -> None:
    body = "a🎉b".encode()
    async with ReplayServer() as server:
        server.reply("/chat", Reply(body, cuts=[3, 2, 0, 99, 2]))
        async with connected(server) as (reader, writer):
            writer.write(post())
            await reader.readuntil(b"\r\n\r\n")
            pieces = [await chunk(reader) for _ in range(4)]
    assert pieces == [body[:2], body[2:3], body[3:], b""]


async def reads(server: ReplayServer, *, slow: bool = False) -> list[bytes]:
    """What each read of a client gave, up to the end of the reply, without the head and the chunks' sizes."""
    async with connected(server) as (reader, writer):
        writer.write(post())
        seen: list[bytes] = []
        while not seen or not seen[-1].endswith(b"0\r\n\r\n"):
            seen.append(await reader.read(65536))
            for _ in range(30 if slow else 0):
                await asyncio.sleep(0)
    return [re.sub(rb"(?s)^HTTP.*?\r\n\r\n|[0-9a-f]+\r\n|\r\n", b"", read) for read in seen]


@pytest.mark.parametrize("slow", [False, True])
async def test_no_two_pieces_come_in_one_read(slow: bool) -> None:
    body = "Löß 🎉!".encode()  # without what could be taken for a chunk's size
    async with ReplayServer() as server:
        for cut in range(1, len(body)):
            server.reply("/chat", Reply(body, cuts=(cut,)))
            first, second, *end = await reads(server, slow=slow)
            assert (first, b"".join([second, *end])) == (body[:cut], body[cut:])


async def test_a_client_of_another_process_gets_the_pieces_too() -> None:
    code = "import sys, urllib.request as u; sys.stdout.buffer.write(u.urlopen(u.Request(sys.argv[1], b'{}')).read())"
    async with ReplayServer() as server:
        server.reply("/chat", Reply(b"12345678", cuts=(1, 2, 7)))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, f"{server.url}/chat", stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
    assert output == b"12345678"


async def test_the_server_is_not_held_by_a_client_that_reads_nothing() -> None:
    async with ReplayServer() as server:
        server.reply("/chat", Reply(b"1" * 1000, cuts=(1,)))
        async with connected(server) as (reader, writer):
            writer.transport.pause_reading()
            writer.write(post())
            await server.wait_for_request(within=1.0)
            await asyncio.sleep(0.05)
            writer.transport.resume_reading()
            assert (await whole(reader))[1] == b"1" * 1000


@pytest.mark.parametrize("position", [0, 4])
async def test_a_stall_lasts_until_the_client_goes(position: int) -> None:
    async with ReplayServer() as server:
        server.reply("/chat", Reply(b"12345678", stall_at=position))
        async with connected(server) as (reader, writer):
            writer.write(post())
            await reader.readuntil(b"\r\n\r\n")
            if position:
                assert await chunk(reader) == b"1234"
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.05)
            (request,) = server.requests
            with pytest.raises(TimeoutError):
                await request.closed_by_client(within=0.05)
        assert await request.closed_by_client(within=1.0) < 0.5
        assert request.is_closed_by_client


async def test_a_dropped_reply_has_no_end() -> None:
    async with ReplayServer() as server:
        server.reply("/chat", Reply(b"12345678", drop_at=4))
        async with connected(server) as (reader, writer):
            writer.write(post())
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await whole(reader)
    assert not server.requests[0].is_closed_by_client


async def test_a_path_without_a_reply_says_what_there_is() -> None:
    async with ReplayServer() as server:
        server.reply("/chat", Reply())
        async with connected(server) as (reader, writer):
            writer.write(post("/char"))
            head, body = await whole(reader)
    assert head.startswith("HTTP/1.1 404 ")
    assert body == b"no reply was set for '/char'; known paths: /chat"


async def test_a_status_without_a_name() -> None:
    async with ReplayServer() as server:
        server.reply("/chat", Reply(status=529))
        async with connected(server) as (reader, writer):
            writer.write(post())
            head, _ = await whole(reader)
    assert head.startswith("HTTP/1.1 529 Unknown\r\n")


async def test_leaving_the_server_ends_what_stalls() -> None:
    async with ReplayServer() as server:
        server.reply("/chat", Reply(b"12", stall_at=1))
        async with connected(server) as (reader, writer):
            writer.write(post())
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.wait_for(server.__aexit__(None, None, None), 1.0)
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await whole(reader)


def test_a_server_that_does_not_run_has_no_address() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        _ = ReplayServer().url
