"""What a stream gives, whole, cut anywhere, without its end, and as servers in the field have sent it."""
# ruff: noqa: S101 - these are tests, although they ship: assert is how pytest explains a failure

from __future__ import annotations

import logging
import random
import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import pytest

from gm_chat.providers.base import (
    DoneEvent,
    Message,
    ProviderIncompleteError,
    TextChunkEvent,
    ToolCallEvent,
)
from gm_chat.testing.histories import QUESTION, TOOLS
from gm_chat.testing.provider_contract.base import (
    ContractBase,
    Recording,
    check_meaning,
    collect,
    outcome,
    summary,
)
from gm_chat.testing.replay import ReplayServer, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gm_chat.providers.base import ChatEvent
    from gm_chat.testing.wire_cases import WireCase

__all__ = ["StreamContract"]

RECORDINGS: Final = ("text", "tool_call", "parallel_calls", "cut_off")
PAIRS: Final = 300
"""How many pairs of positions a recording is cut at into three."""


class StreamContract(ContractBase):
    """The meaning of a stream depends on its bytes alone, and a stream without its end has none."""

    @pytest.mark.asyncio
    @pytest.mark.parametrize("name", RECORDINGS)
    async def test_a_recording_gives_its_meaning(self, name: str) -> None:
        """Text, calls in order with decoded arguments and ids, then one DoneEvent with the usage."""
        recording = self._recording(name)
        async with self.serving(self.replying(recording)) as (_, provider):
            events = await collect(provider, tools=TOOLS)
        check_meaning(
            events,
            text=recording.text,
            calls=recording.calls,
            errors=recording.errors,
            finish="length" if recording.errors else "tool_calls" if recording.calls else "stop",
            usage=recording.usage,
        )
        ids = [event.id for event in events if isinstance(event, ToolCallEvent)]
        assert len(set(ids)) == len(ids)
        done = events[-1]
        assert isinstance(done, DoneEvent)
        assert done.usage.reported == (recording.usage is not None)

    @pytest.mark.asyncio
    @pytest.mark.parametrize("name", RECORDINGS)
    @pytest.mark.parametrize("pieces", [pytest.param(2, marks=pytest.mark.exhaustive), 3])
    async def test_bytes_may_be_cut_anywhere(self, name: str, pieces: int) -> None:
        """The same events whether the bytes come in one read or in several, cut at every position, or pair of them.

        The server sends a piece when the one before was read, so that the client cannot find two in one read.
        """
        recording = self._recording(name)
        async with self.serving(self.replying(recording)) as (server, provider):
            expected = summary(await collect(provider))
            for cuts in _cuts(recording.body, pieces):
                server.reply(self.path, self.replying(recording, cuts=cuts))
                assert summary(await collect(provider)) == expected, f"cut at {cuts}"

    @pytest.mark.asyncio
    @pytest.mark.parametrize("name", ["text", "tool_call"])
    async def test_a_stream_without_its_end_is_incomplete(self, name: str) -> None:
        """Whatever the server leaves out at the end, no call comes out and the error says so."""
        recording = self._recording(name)
        end = self.end_of(recording)
        for length in [*range(0, end, max(1, end // 10)), end]:
            async with self.serving(self.replying(Recording(recording.body[:length]))) as (_, provider):
                events, error = await outcome(provider)
            assert isinstance(error, ProviderIncompleteError), f"cut after {length} bytes: {error!r}"
            assert all(isinstance(event, TextChunkEvent) for event in events)

    @pytest.mark.asyncio
    async def test_a_broken_connection_is_incomplete(self) -> None:
        """So is a stream whose connection breaks."""
        reply = self.replying(self.tool_call, drop_at=self.end_of(self.tool_call))
        async with self.serving(reply) as (_, provider):
            events, error = await outcome(provider)
        assert isinstance(error, ProviderIncompleteError)
        assert not events

    @pytest.mark.asyncio
    async def test_a_page_is_incomplete(self) -> None:
        """A login page or a proxy's notice with status 200 is not taken for an empty answer."""
        page = Reply(b"<!doctype html>\n<html><body>Please log in</body></html>\n", content_type="text/html")
        async with self.serving(page) as (_, provider):
            events, error = await outcome(provider)
        assert isinstance(error, ProviderIncompleteError)
        assert not events

    @pytest.mark.asyncio
    async def test_a_wire_case(self, wire_case: WireCase, caplog: pytest.LogCaptureFixture) -> None:
        """What somebody's server has sent means what the case says, or is the error that it says."""
        reply = Reply(
            wire_case.body,
            status=wire_case.status,
            content_type=wire_case.content_type or self.content_type,
            headers=wire_case.headers,
            drop_at=len(wire_case.body) if wire_case.breaks else None,
        )
        async with self.serving(reply, **wire_case.config) as (server, provider):
            if wire_case.failure:
                events, error = await outcome(provider)
                assert type(error) in wire_case.failure, repr(error)
                assert "".join(_texts(events)) == wire_case.text
                low, high = wire_case.retry_after or (None, None)
                assert error.retry_after is None if low is None else low <= (error.retry_after or 0) <= (high or 0)
                return
            asked = QUESTION if wire_case.question is None else [Message("user", wire_case.question)]
            events = await collect(provider, asked, TOOLS)
            check_meaning(
                events,
                text=wire_case.text,
                calls=wire_case.calls,
                errors=wire_case.errors,
                finish=wire_case.finish,
                usage=wire_case.usage,
            )
            told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
            assert bool(told) == (wire_case.warning is not None), told
            assert all(re.search(wire_case.warning or "", message) for message in told), told
            await self._check_what_returns(wire_case, events, server)

    async def _check_what_returns(self, case: WireCase, events: Sequence[ChatEvent], server: ReplayServer) -> None:
        """Fail unless the next request is valid and holds, unchanged, what the service wants back."""
        server.reply(self.path, self.replying(self.text))
        await collect(self.build(server.url), [*QUESTION, *_messages(events), Message("user", "And?")], TOOLS)
        body = server.requests[-1].json()
        self.check_request(body)
        for wanted in case.returns:
            assert any(_holds(value, wanted) for value in _values(body)), f"{wanted!r} is not in {body!r}"

    def _recording(self, name: str) -> Recording:
        recording: Recording | None = getattr(self, name)
        if recording is None:
            pytest.skip(f"no recording {name!r}")
        return recording


def _cuts(body: bytes, pieces: int) -> Iterator[tuple[int, ...]]:
    """Yield every position for two pieces, sampled pairs of them for three."""
    if pieces == 2:
        yield from ((cut,) for cut in range(1, len(body)))
        return
    sample = random.Random(body)  # noqa: S311 - the same sample for the same bytes
    yield from (tuple(sorted(sample.sample(range(1, len(body)), 2))) for _ in range(PAIRS))


def _texts(events: Sequence[ChatEvent]) -> list[str]:
    return [event.content for event in events if isinstance(event, TextChunkEvent)]


def _messages(events: Sequence[ChatEvent]) -> Iterator[Message]:
    """What the engine stores of a stream, and sends to the same provider the next time."""
    calls = tuple(event for event in events if isinstance(event, ToolCallEvent))
    done = next(event for event in events if isinstance(event, DoneEvent))
    yield Message("assistant", "".join(_texts(events)), calls, metadata=done.metadata)
    for call in calls:
        yield Message("tool", '{"data":[]}', tool_call_id=call.id, tool_name=call.name, tool_result={"data": []})


def _values(value: Any) -> Iterator[Any]:
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inner:
        yield from _values(item)


def _holds(value: Any, wanted: Any) -> bool:
    """Whether ``value`` is ``wanted`` or that and more: further keys of objects, items around those of lists."""
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(key in value and _holds(value[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        if not isinstance(value, list):
            return False
        starts = range(len(value) - len(wanted) + 1)
        return any(all(map(_holds, islice(value, start, None), wanted)) for start in starts)
    return bool(value == wanted)
