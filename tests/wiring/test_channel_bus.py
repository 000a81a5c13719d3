"""The bus over real Redis servers, by both of channels_redis' layers."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import async_to_sync
from channels.layers import channel_layers
from testproject.redis_server import PrivateRedis, required_module, required_redis

from gm_chat.engine.bus import SILENCE
from gm_chat.wiring import channel_bus as module
from gm_chat.wiring import get_runtime, reset_runtime
from gm_chat.wiring.channel_bus import ChannelBus, channel_bus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

required_module("channels_redis")

LAYERS = ["channels_redis.core.RedisChannelLayer", "channels_redis.pubsub.RedisPubSubChannelLayer"]


@pytest.fixture(params=LAYERS, ids=["core", "pubsub"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def layers(backend: str, settings: Any) -> None:
    configure(settings, backend, required_redis())


@pytest.fixture
def private(backend: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[PrivateRedis]:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.1)
    monkeypatch.setattr(module, "EXCHANGE_SECONDS", 0.5)
    with PrivateRedis() as server:
        configure(settings, backend, server.url)
        yield server


def configure(settings: Any, backend: str, url: str) -> None:
    config = {"hosts": [url], "prefix": f"gm_chat_test_{os.getpid()}"}
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend, "CONFIG": config}}


class Ears:
    """What a process hears of a turn; ``buses`` are left when the test ends."""

    def __init__(self) -> None:
        self.announced: asyncio.Queue[int] = asyncio.Queue()
        self.requested: asyncio.Queue[None] = asyncio.Queue()


async def heard(queue: asyncio.Queue[Any], again: Callable[[], None], seconds: float = 10) -> Any:
    """The next message; it is sent over and over, since one that comes before the other end listens is lost."""
    async with asyncio.timeout(seconds):
        while True:
            again()
            with suppress(TimeoutError):
                async with asyncio.timeout(0.2):
                    return await queue.get()


@pytest.fixture
async def ends() -> AsyncIterator[list[ChannelBus]]:
    """Two processes' ends."""
    buses = [bus for bus in (channel_bus(), channel_bus()) if isinstance(bus, ChannelBus)]
    assert len(buses) == 2
    yield buses
    for bus in buses:
        await bus.aclose()
    assert [task for task in asyncio.all_tasks() if "_Station" in repr(task)] == []


@pytest.mark.usefixtures("layers")
class TestMessages:
    async def test_reach_the_followers_of_the_turn_and_nobody_else(self, ends: list[ChannelBus]) -> None:
        a, b = ends
        ears, others = Ears(), Ears()
        with b.on_announced("t1", ears.announced.put_nowait), b.on_announced("t2", others.announced.put_nowait):
            assert await heard(ears.announced, lambda: a.announce("t1", 7)) == 7
            assert await heard(others.announced, lambda: a.announce("t2", 8)) == 8
            assert 8 not in drained(ears.announced)

    async def test_reach_whoever_runs_the_turn(self, ends: list[ChannelBus]) -> None:
        a, b = ends
        ears, others = Ears(), Ears()
        with (
            a.on_requested("t1", lambda: ears.requested.put_nowait(None)),
            a.on_requested("t2", lambda: others.requested.put_nowait(None)),
        ):
            await heard(ears.requested, lambda: b.request("t1"))
        assert others.requested.empty()

    async def test_take_any_id(self, ends: list[ChannelBus]) -> None:
        a, b = ends
        for turn_id in ("", "Ä !", "t" * 500, "\x00"):
            ears = Ears()
            with b.on_announced(turn_id, ears.announced.put_nowait):
                assert await heard(ears.announced, lambda id=turn_id: a.announce(id, 1)) == 1

    async def test_a_burst_comes_to_its_newest_word(self, ends: list[ChannelBus]) -> None:
        a, b = ends
        ears = Ears()
        with b.on_announced("t1", ears.announced.put_nowait):
            await heard(ears.announced, lambda: a.announce("t1", 1))
            for seq in range(2, 1002):
                a.announce("t1", seq)
            async with asyncio.timeout(5):
                while (seq := await ears.announced.get()) < 1001:
                    assert seq == 1

    async def test_come_no_more_after_the_block(self, ends: list[ChannelBus]) -> None:
        a, b = ends
        ears = Ears()
        with b.on_announced("t1", ears.announced.put_nowait):
            await heard(ears.announced, lambda: a.announce("t1", 1))
        drained(ears.announced)
        with b.on_announced("t1", (again := Ears()).announced.put_nowait):
            await heard(again.announced, lambda: a.announce("t1", 2))
        assert ears.announced.empty()

    def test_every_event_loop_has_an_end_of_its_own(self) -> None:
        """As under WSGI, and beside the loop of the project's own consumers."""
        bus = channel_bus()
        results: list[int] = []

        async def follow(number: int) -> int:
            ears = Ears()
            with bus.on_announced(f"t{number}", ears.announced.put_nowait):
                seq: int = await heard(ears.announced, lambda: bus.announce(f"t{number}", number))
            await bus.aclose()
            return seq

        threads = [threading.Thread(target=lambda n=n: results.append(asyncio.run(follow(n)))) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(results) == [0, 1, 2, 3]

    def test_an_event_loop_that_ends_is_left_in_order(self, caplog: pytest.LogCaptureFixture) -> None:
        bus = channel_bus()

        async def use() -> None:
            ears = Ears()
            with bus.on_announced("t1", ears.announced.put_nowait):
                await heard(ears.announced, lambda: bus.announce("t1", 1))
                bus.announce("t1", 2)

        for _ in range(2):
            asyncio.run(use())
        assert caplog.text == ""


def drained(queue: asyncio.Queue[int]) -> list[int]:
    return [queue.get_nowait() for _ in range(queue.qsize())]


class TestGroups:
    """In Redis, where channels_redis' first layer keeps them."""

    @pytest.fixture
    def backend(self) -> str:
        return LAYERS[0]

    @staticmethod
    def keys(server: PrivateRedis) -> dict[str, int]:
        import redis

        with redis.Redis.from_url(server.url, decode_responses=True) as client:
            return {key.rpartition(":")[2]: client.zcard(key) for key in client.keys("*:group:*")}

    async def test_are_left_when_there_is_nothing_to_hear_any_more(
        self, private: PrivateRedis, ends: list[ChannelBus]
    ) -> None:
        a, b = ends
        ears = Ears()
        with b.on_announced("t1", ears.announced.put_nowait):
            await heard(ears.announced, lambda: a.announce("t1", 1))
            assert list(self.keys(private).values()) == [1]
        async with asyncio.timeout(5):
            while self.keys(private):  # noqa: ASYNC110 - a server
                await asyncio.sleep(0.02)

    async def test_are_not_joined_for_a_turn_that_ends_at_once(
        self, private: PrivateRedis, ends: list[ChannelBus], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        a, _ = ends
        monkeypatch.setattr(module, "JOIN_SECONDS", 0.1)
        for _ in range(3):
            with a.on_requested("t1", lambda: None):
                await asyncio.sleep(0)
        await asyncio.sleep(0.3)
        assert self.keys(private) == {}
        assert a._stations[asyncio.get_running_loop()]._worker is None
        with a.on_requested("t1", lambda: None):
            await asyncio.sleep(0.3)
        assert self.keys(private) == {"gm_chat.runners": 1}
        await a.aclose()
        assert self.keys(private) == {}

    @pytest.mark.parametrize("as_under_wsgi", [False, True])
    def test_are_left_by_an_event_loop_that_ends(
        self, private: PrivateRedis, monkeypatch: pytest.MonkeyPatch, as_under_wsgi: bool
    ) -> None:
        monkeypatch.setattr(module, "JOIN_SECONDS", 0.01)
        monkeypatch.setattr(module, "LEAVE_SECONDS", 10.0)  # on a busy machine the second that it has may be too short
        bus, seen = channel_bus(), []

        async def run() -> None:
            with bus.on_requested("t1", lambda: None):
                async with asyncio.timeout(5):
                    while not self.keys(private):  # noqa: ASYNC110 - a server
                        await asyncio.sleep(0.02)
                seen.append(self.keys(private))

        if as_under_wsgi:
            async_to_sync(run)()
        else:
            asyncio.run(run())
        assert seen == [{"gm_chat.runners": 1}]
        assert self.keys(private) == {}


class TestABrokenServer:
    async def test_is_told_once_and_found_again(
        self, private: PrivateRedis, ends: list[ChannelBus], caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, logger="gm_chat")
        a, b = ends
        ears, wishes = Ears(), Ears()
        with (
            b.on_announced("t1", ears.announced.put_nowait),
            a.on_requested("t1", lambda: wishes.requested.put_nowait(None)),
        ):
            await heard(ears.announced, lambda: a.announce("t1", 1))
            await heard(wishes.requested, lambda: b.request("t1"))
            private.kill()
            drained(ears.announced)
            for seq in range(10):
                a.announce("t1", seq)
                b.request("t1")
                await asyncio.sleep(0.05)
            assert ears.announced.empty()
            private.start()
            await heard(ears.announced, lambda: a.announce("t1", 20))
            await heard(wishes.requested, lambda: b.request("t1"))
        told = [record for record in caplog.records if record.name.startswith("gm_chat")]
        for bus in ends:
            assert isinstance(bus, ChannelBus)
        assert 1 <= sum("fails" in record.message for record in told) <= len(ends)
        assert sum("works again" in record.message for record in told) <= len(ends)

    async def test_that_hangs_keeps_nobody(self, private: PrivateRedis, ends: list[ChannelBus]) -> None:
        a, b = ends
        ears = Ears()
        with b.on_announced("t1", ears.announced.put_nowait):
            await heard(ears.announced, lambda: a.announce("t1", 1))
            private.hang()
            async with asyncio.timeout(5):  # a second each to leave, and nothing before
                for seq in range(1000):
                    a.announce("t1", seq)
                    b.request("t1")
                for bus in ends:
                    await bus.aclose()

    async def test_that_was_never_there(
        self, backend: str, settings: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "RETRY_SECONDS", 0.05)
        configure(settings, backend, f"redis://127.0.0.1:{PrivateRedis().port}/0")
        bus = channel_bus()
        with bus.on_announced("t1", lambda _: None):
            for seq in range(10):
                bus.announce("t1", seq)
                await asyncio.sleep(0.03)
        await bus.aclose()
        (said,) = [record.message for record in caplog.records if record.name.startswith("gm_chat")]
        assert "CHANNEL_LAYERS" in said


class TestSettings:
    @pytest.mark.parametrize(
        "configured",
        [None, {}, {"other": {"BACKEND": LAYERS[0]}}, {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}],
    )
    def test_without_a_layer_between_processes_there_is_silence(self, configured: Any, settings: Any) -> None:
        settings.CHANNEL_LAYERS = configured or {}
        if configured is None:
            del settings.CHANNEL_LAYERS
        assert channel_bus() is SILENCE

    def test_the_documented_layer_will_do(self, settings: Any) -> None:
        text = (Path(__file__).resolve().parents[2] / "docs" / "transports.md").read_text()
        (code,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "CHANNEL_LAYERS" in block]
        exec(code, documented := {})  # noqa: S102 - our own
        settings.CHANNEL_LAYERS = documented["CHANNEL_LAYERS"]
        bus = channel_bus()
        assert isinstance(bus, ChannelBus)
        kind = type(bus._make_layer())
        assert f"{kind.__module__}.{kind.__qualname__}" in LAYERS

    def test_the_runner_gets_the_projects_layer(self, settings: Any) -> None:
        settings.CHANNEL_LAYERS = {"default": {"BACKEND": LAYERS[0]}}
        reset_runtime()
        assert isinstance(get_runtime().runner._bus, ChannelBus)
        settings.CHANNEL_LAYERS = {}
        assert get_runtime().runner._bus is SILENCE

    async def test_a_backend_that_cannot_be_imported_is_told(
        self, settings: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        settings.CHANNEL_LAYERS = {"default": {"BACKEND": "nothing.Here"}}
        bus = channel_bus()
        bus.request("t1")
        async with asyncio.timeout(5):
            while "nothing.Here" not in caplog.text:  # noqa: ASYNC110 - the log
                await asyncio.sleep(0.01)
        await bus.aclose()

    def test_the_project_s_own_layer_stays_its_own(self, settings: Any) -> None:
        settings.CHANNEL_LAYERS = {"default": {"BACKEND": LAYERS[0]}}
        bus = channel_bus()
        assert isinstance(bus, ChannelBus)
        assert bus._make_layer() is not channel_layers["default"]
