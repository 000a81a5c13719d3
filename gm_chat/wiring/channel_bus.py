"""The engine's :class:`~gm_chat.engine.bus.TurnBus` over the project's channel layer.

Each event loop gets a layer of its own, made from the same settings: a layer receives on one loop at a time, and the
project's consumers share the capacity of theirs with nobody. Whoever runs turns is in one group, the followers of a
turn are in another one: a turn that nobody follows elsewhere sends nothing and joins nothing.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import logging
import threading
from collections import defaultdict
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from channels import DEFAULT_CHANNEL_LAYER  # type: ignore[import-untyped]  # it has no type hints
from channels.layers import channel_layers  # type: ignore[import-untyped]  # as above

from gm_chat.engine.bus import SILENCE
from gm_chat.engine.pulse import PULSE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from gm_chat.engine.bus import TurnBus

    Heard = Callable[[int], None]

__all__ = ["ChannelBus", "channel_bus"]

JOIN_SECONDS: Final = PULSE_SECONDS
"""How long a turn runs before its event loop joins those who run turns: most are over by then, and under WSGI their
loops too.
"""

EXCHANGE_SECONDS: Final = 2.0
"""What sending and joining may take before the layer counts as broken."""

RETRY_SECONDS: Final = 2.0
"""How long a broken layer is left alone; what would be sent meanwhile is dropped."""

REFRESH_SECONDS: Final = 60.0
"""Between two times of joining the groups: memberships run out, and a server that was emptied knows of none."""

LEAVE_SECONDS: Final = 1.0

WAIT_SECONDS: Final = 3
"""How long channels_redis' first layer waits at a time. Its own 5 s are what its client (from redis 8 on) gives a read
by default: a layer that hears nothing would fail.
"""

ANNOUNCED: Final = "gm_chat.announced"
REQUESTED: Final = "gm_chat.requested"
RUNNERS: Final = "gm_chat.runners"
IN_MEMORY: Final = "channels.layers.InMemoryChannelLayer"

logger = logging.getLogger(__name__)


def channel_bus(alias: str = DEFAULT_CHANNEL_LAYER) -> TurnBus:
    """The bus over ``CHANNEL_LAYERS[alias]``: a silent one if there is none, or one that ends with the process."""
    configured = channel_layers.configs.get(alias)
    if not configured or configured.get("BACKEND") == IN_MEMORY:
        return SILENCE
    return ChannelBus(partial(channel_layers.make_backend, alias))


class ChannelBus:
    """See :class:`~gm_chat.engine.bus.TurnBus`. Work is done in tasks of its own; no turn waits for it.

    While the layer fails, the log says so once, and everybody finds in the store what they are not told.
    """

    reaches_others: Final = True

    def __init__(self, make_layer: Callable[[], Any]) -> None:
        """``make_layer()`` gives a new channel layer; it is called in a thread, since it may import a client."""
        self._make_layer = make_layer
        self._trouble = _Trouble()
        self._stations: dict[asyncio.AbstractEventLoop, _Station] = {}
        self._lock = threading.Lock()

    def announce(self, turn_id: str, seq: int) -> None:
        """Tell the group of the turn's followers."""
        self._station().send(_followers(turn_id), {"type": ANNOUNCED, "turn_id": turn_id, "seq": seq})

    def request(self, turn_id: str) -> None:
        """Tell the group of those who run turns."""
        self._station().send(RUNNERS, {"type": REQUESTED, "turn_id": turn_id})

    def on_announced(self, turn_id: str, heard: Heard) -> AbstractContextManager[None]:
        """Join the followers of the turn."""
        return self._station().following(turn_id, heard)

    def on_requested(self, turn_id: str, heard: Callable[[], None]) -> AbstractContextManager[None]:
        """Listen among those who run turns. An event loop joins them with its first turn that takes a while."""
        return self._station().running(turn_id, lambda _: heard())

    async def aclose(self) -> None:
        """Send what is left, and leave all groups."""
        with self._lock:
            station = self._stations.pop(asyncio.get_running_loop(), None)
        if station is not None:
            await station.aclose()

    def _station(self) -> _Station:
        loop = asyncio.get_running_loop()
        with self._lock:
            station = self._stations.get(loop)
            if station is None:
                for closed in [known for known in self._stations if known.is_closed()]:
                    del self._stations[closed]
                station = self._stations[loop] = _Station(self._make_layer, self._trouble, loop)
            return station


def _followers(turn_id: str) -> str:
    """The name of a turn's group. Layers allow few characters in it, and a turn's id is any text."""
    return f"gm_chat.turn.{hashlib.sha256(turn_id.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"


class _Station:
    """One event loop's end of the bus. All of it is called in that loop."""

    def __init__(self, make_layer: Callable[[], Any], trouble: _Trouble, loop: asyncio.AbstractEventLoop) -> None:
        self._make_layer = make_layer
        self._trouble = trouble
        self._loop = loop
        self._layer: Any = None
        self._channel: str | None = None
        self._listeners: defaultdict[tuple[str, str], list[Heard]] = defaultdict(list)
        self._runs_turns = self._is_leaving = False
        self._joined: set[str] = set()
        self._outbox: dict[tuple[str, str], dict[str, Any]] = {}
        self._due = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None
        self._ear: asyncio.Task[None] | None = None

    def send(self, group: str, message: dict[str, Any]) -> None:
        # The newest word on a turn replaces one that has not gone out yet.
        self._outbox[group, message["turn_id"]] = message
        self._work()

    @contextmanager
    def following(self, turn_id: str, heard: Heard) -> Iterator[None]:
        try:
            with self._listening(ANNOUNCED, turn_id, heard):
                self._work()
                yield
        finally:
            self._work()

    @contextmanager
    def running(self, turn_id: str, heard: Heard) -> Iterator[None]:
        joining = None if self._runs_turns else self._loop.call_later(JOIN_SECONDS, self._join_runners)
        try:
            with self._listening(REQUESTED, turn_id, heard):
                yield
        finally:
            if joining is not None:
                joining.cancel()

    async def aclose(self) -> None:
        await _end(self._worker, patience=LEAVE_SECONDS)

    def _join_runners(self) -> None:
        self._runs_turns = True
        self._work()

    @contextmanager
    def _listening(self, kind: str, turn_id: str, heard: Heard) -> Iterator[None]:
        self._listeners[kind, turn_id].append(heard)
        try:
            yield
        finally:
            self._listeners[kind, turn_id].remove(heard)
            if not self._listeners[kind, turn_id]:
                del self._listeners[kind, turn_id]

    def _work(self) -> None:
        """See to it that the worker looks at what there is to do; one that has ended, with its loop, stays so."""
        self._due.set()
        if self._worker is None:
            self._worker = self._start(self._serve())

    def _start(self, work: Any) -> asyncio.Task[None]:
        # It outlives the request that needs it first, and is none of that request's context.
        return self._loop.create_task(work, context=contextvars.Context())

    async def _serve(self) -> None:
        try:
            while _goes_on():
                await self._rest()
                try:
                    async with asyncio.timeout(EXCHANGE_SECONDS):
                        await self._exchange()
                except Exception as error:  # noqa: BLE001 (whatever a layer raises; nobody depends on it)
                    await self._recover(error)
                    self._outbox.clear()
        finally:
            await self._leave()

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(REFRESH_SECONDS):
                await self._due.wait()
        except TimeoutError:
            self._joined.clear()
        self._due.clear()

    async def _exchange(self) -> None:
        """Join and leave groups as the listeners need it, then send what is to be sent."""
        wanted = self._wanted()
        messages = [(group, message) for (group, _), message in self._outbox.items()]
        self._outbox.clear()
        if self._layer is None and (wanted or messages):
            self._layer = await asyncio.to_thread(self._make_layer)
            if hasattr(self._layer, "brpop_timeout"):
                self._layer.brpop_timeout = WAIT_SECONDS
        if self._channel is None and wanted:
            self._channel = await self._layer.new_channel()
            self._ear = self._start(self._listen())
        for group in wanted - self._joined:
            await self._layer.group_add(group, self._channel)
            self._joined.add(group)
        for group in self._joined - wanted:
            await self._layer.group_discard(group, self._channel)
            self._joined.discard(group)
        await asyncio.gather(*(self._layer.group_send(group, message) for group, message in messages))
        if messages:
            self._trouble.is_over()

    def _wanted(self) -> set[str]:
        if self._is_leaving:
            return set()
        wanted = {_followers(turn_id) for kind, turn_id in self._listeners if kind == ANNOUNCED}
        return wanted | {RUNNERS} if self._runs_turns else wanted

    async def _listen(self) -> None:
        while _goes_on():
            try:
                message = await self._layer.receive(self._channel)
            except Exception as error:  # noqa: BLE001 (as above)
                await self._recover(error)
            else:
                self._trouble.is_over()
                self._dispatch(message)

    def _dispatch(self, message: Any) -> None:
        match message:
            case {"type": str(kind), "turn_id": str(turn_id)}:
                seq = message.get("seq")
                for heard in tuple(self._listeners.get((kind, turn_id), ())):
                    heard(seq if isinstance(seq, int) else 0)

    async def _recover(self, error: Exception) -> None:
        self._trouble.begins(error)
        await asyncio.sleep(RETRY_SECONDS)
        self._joined.clear()  # the server may have forgotten
        self._due.set()

    async def _leave(self) -> None:
        await _end(self._ear, patience=LEAVE_SECONDS / 4)
        if self._layer is None:
            return
        self._is_leaving = True
        with suppress(Exception):
            async with asyncio.timeout(LEAVE_SECONDS):
                await self._exchange()


def _goes_on() -> bool:
    """Whether the current task was not cancelled: ``wait_for()``, which clients use, may swallow that up to 3.11."""
    task = asyncio.current_task()
    return task is None or not task.cancelling()


async def _end(task: asyncio.Task[None] | None, *, patience: float) -> None:
    """Cancel a task, and again whenever it has not come to its end in ``patience`` seconds."""
    if task is None or task.done():
        return
    if not task.cancelling():
        task.cancel()
    while not (await asyncio.wait({task}, timeout=patience))[0]:
        task.cancel()


class _Trouble:
    """Says once that the layer fails, and once that it works again."""

    def __init__(self) -> None:
        self._is_on = False

    def begins(self, error: Exception) -> None:
        if not self._is_on:
            self._is_on = True
            logger.warning(
                "The channel layer (CHANNEL_LAYERS) fails: %s: %s. Processes now learn of each other's turns by looking"
                " into the database, a little later.",
                type(error).__name__,
                error,
            )

    def is_over(self) -> None:
        if self._is_on:
            self._is_on = False
            logger.info("The channel layer works again.")
