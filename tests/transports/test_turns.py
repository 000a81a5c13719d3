from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from gm_chat.engine import TurnRunner
from gm_chat.engine.events import Done, TextChunk
from gm_chat.loops import legacy_loop
from gm_chat.testing.scripted import ScriptedProvider
from gm_chat.testing.services import MemoryServices, ask
from gm_chat.transports.turns import follow


@pytest.fixture
def services() -> MemoryServices:
    return MemoryServices()


async def test_a_turn_that_is_followed_to_its_end_is_not_cancelled(services: MemoryServices) -> None:
    with ScriptedProvider.playing(["Hi"]):
        seen = [logged.event async for logged in follow(TurnRunner(services, legacy_loop), ask())]
    assert seen[0] == TextChunk("Hi")
    assert isinstance(seen[-1], Done)
    assert [outcome.state for outcome in services.observer.outcomes] == ["done"]


async def test_who_stops_listening_cancels_the_turn(services: MemoryServices) -> None:
    with ScriptedProvider.playing(["Hi", 60]) as script:
        async with aclosing(follow(TurnRunner(services, legacy_loop), ask())) as events:
            await anext(events)
        assert script.open_streams == 0
    assert [outcome.state for outcome in services.observer.outcomes] == ["cancelled"]


async def test_who_is_cancelled_cancels_the_turn(services: MemoryServices) -> None:
    async def listen() -> None:
        async for _ in follow(TurnRunner(services, legacy_loop), ask()):
            pass

    with ScriptedProvider.playing([60]) as script:
        listener = asyncio.create_task(listen())
        while not script.open_streams:  # noqa: ASYNC110 - the script has no event to wait for
            await asyncio.sleep(0.01)
        listener.cancel()
        await asyncio.wait({listener})
        assert script.open_streams == 0
    assert listener.cancelled()
