"""What adapters share, with an SDK module of a few lines."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from gm_chat.providers.adapter import completion
from gm_chat.providers.base import (
    CallOptions,
    ChatEvent,
    DoneEvent,
    ProviderError,
    ProviderIncompleteError,
    TextChunkEvent,
    ToolCallEvent,
    ToolDefinition,
)
from gm_chat.providers.configuration import ProviderConfig
from gm_chat.providers.door import SDKDoor

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

CALL = '{"name": "query", "arguments": {}}'
TOOLS = [ToolDefinition("query", "Reads.", {})]
DONE = DoneEvent(finish_reason="stop")


class Assembler:
    def __init__(self) -> None:
        self.is_complete = False

    def feed(self, chunk: str) -> Iterable[ChatEvent]:
        self.is_complete = chunk == "end"
        return [] if self.is_complete else [TextChunkEvent(chunk)]

    def finish(self) -> list[ChatEvent]:
        return [DONE]


class Wire:
    """Plays the module behind the door: sends ``chunks``, then raises ``error``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.chunks: list[str] = []
        self.error: Exception | None = None
        self.bodies: list[Any] = []
        self.closed = 0
        module: Any = ModuleType("acme_sdk_module")
        module.stream_objects = self.stream_objects
        monkeypatch.setitem(sys.modules, "acme_sdk_module", module)
        self.door = SDKDoor("acme_sdk_module", missing=ImportError, extra="acme")

    async def stream_objects(self, config: ProviderConfig, body: Any) -> AsyncGenerator[str]:
        self.bodies.append((config, body))
        try:
            for chunk in self.chunks:
                yield chunk
            if self.error is not None:
                raise self.error
        finally:
            self.closed += 1

    def complete(self, options: CallOptions | None = None, **config: Any) -> AsyncGenerator[ChatEvent]:
        return completion(
            self.door,
            ProviderConfig(model="m", **config),
            {"n": 1},
            Assembler(),
            tools=TOOLS,
            options=options or CallOptions(),
        )


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    return Wire(monkeypatch)


async def test_it_streams_what_the_assembler_makes_of_it(wire: Wire) -> None:
    wire.chunks = ["a", "b", "end"]
    assert [event async for event in wire.complete()] == [TextChunkEvent("a"), TextChunkEvent("b"), DONE]
    assert wire.bodies == [(ProviderConfig(model="m"), {"n": 1})]


async def test_nothing_happens_before_the_first_event_is_asked_for(wire: Wire) -> None:
    wire.complete()
    assert wire.bodies == []


async def test_leaving_it_closes_the_stream(wire: Wire) -> None:
    wire.chunks = ["a", "b", "end"]
    for config in ({}, {"tool_call_format": "text"}):
        events = wire.complete(**config)
        await anext(events)
        await events.aclose()
    assert wire.closed == 2


async def test_what_is_lost_after_the_end_is_no_loss(wire: Wire) -> None:
    wire.chunks, wire.error = ["a", "end"], ProviderIncompleteError("gone")
    assert [event async for event in wire.complete()] == [TextChunkEvent("a"), DONE]


@pytest.mark.parametrize(
    ("chunks", "error"), [(["a"], ProviderIncompleteError("gone")), (["a", "end"], ProviderError("no"))]
)
async def test_other_errors_are_raised(wire: Wire, chunks: list[str], error: Exception) -> None:
    wire.chunks, wire.error = chunks, error
    events = wire.complete()
    assert await anext(events) == TextChunkEvent("a")
    with pytest.raises(type(error)):
        await anext(events)


async def test_a_call_that_is_written_as_text_is_read_only_if_that_is_asked_for(wire: Wire) -> None:
    wire.chunks = [CALL, "end"]
    assert [event async for event in wire.complete()] == [TextChunkEvent(CALL), DONE]
    _, call, done = [event async for event in wire.complete(tool_call_format="text")]
    assert isinstance(call, ToolCallEvent)
    assert done == DoneEvent(finish_reason="tool_calls")


async def test_an_answer_round_offers_no_tool(wire: Wire) -> None:
    wire.chunks = [CALL, "end"]
    events = wire.complete(CallOptions(tool_choice="none"), tool_call_format="text")
    assert [event async for event in events] == [TextChunkEvent(CALL), DONE]
