"""The audit trail: sanitized events out to the sinks, without a turn waiting for anyone but a required sink.

All sinks live on one event loop in a thread of their own. A sink that blocks or hangs therefore never touches a turn,
a client that a sink holds never sees a second loop, and WSGI, where each turn has a short-lived loop, needs nothing
special. The rejected alternative, tasks on the turn's own loop, lets one blocking ``emit`` stop every turn of a worker.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gm_chat import audit
from gm_chat.plugin.errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence

    from gm_chat.plugin.context import TurnContext
    from gm_chat.plugin.protocols import AuditSink

__all__ = ["CLOSE_SECONDS", "QUEUE_SIZE", "SINK_SECONDS", "AuditError", "AuditTrail"]

QUEUE_SIZE: Final = 1000
"""Events that may wait for one sink; what comes on top is dropped and counted."""

SINK_SECONDS: Final = 5.0
"""What a sink may take for one event, starting included."""

CLOSE_SECONDS: Final = 5.0
"""What all sinks together may take to empty their queues and close."""

T = TypeVar("T")
logger = logging.getLogger(__name__)


class AuditError(PluginError):
    """A required sink did not take an event: the audited thing must not happen."""


class AuditTrail:
    """Cleans events by the policy and hands each to every sink, in order.

    The methods that record return at once for ordinary sinks. For required ones they wait, and raise
    :class:`AuditError` if one does not take the event in time. A sink is required if it says so itself, or if
    ``required`` names it. A name that no sink has closes the trail: as long as anything is to be audited, no message
    is accepted and no tool runs. So a required sink whose plugin is refused, or not installed, is missed.
    """

    def __init__(
        self,
        sinks: Sequence[AuditSink],
        policy: audit.AuditPolicy,
        *,
        required: Collection[str] = (),
        queue_size: int = QUEUE_SIZE,
        sink_seconds: float = SINK_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Prepare the trail; the thread and the sinks start with the first event."""
        self.policy = policy
        self._now = now
        self._worker = _Worker()
        self._channels = [
            _Channel(sink, queue_size, sink_seconds, self._worker, required=sink.required or sink.name in required)
            for sink in sinks
        ]
        self._missing = sorted(set(required) - {sink.name for sink in sinks})

    @property
    def dropped(self) -> Mapping[str, int]:
        """For each sink the events that it never got, because its queue was full or it failed."""
        return {channel.sink.name: channel.dropped for channel in self._channels}

    async def user_message(self, context: TurnContext) -> None:
        """Record an accepted message; await it before anything is done about it."""
        self._refuse_if_one_is_missing()
        if self._channels and self.policy.messages:
            await self._record(audit.user_message_event(context, self.policy, at=self._now()))

    async def assistant_message(self, context: TurnContext, content: str) -> None:
        """Record what the assistant said, if it said anything."""
        if self._channels and self.policy.messages and content:
            await self._record(audit.assistant_message_event(context, content, self.policy, at=self._now()))

    async def tool_call(
        self,
        context: TurnContext,
        name: str,
        args: Mapping[str, Any],
        *,
        call_id: str | None = None,
        approved: bool = False,
    ) -> None:
        """Record a tool call; await it before the tool runs. ``approved``: its user has seen and allowed it."""
        self._refuse_if_one_is_missing()
        if self._channels and self.policy.tools:
            event = audit.tool_call_event(context, name, args, self.policy, at=self._now(), call_id=call_id)
            await self._record({**event, "approved": True} if approved else event)

    async def tool_result(self, context: TurnContext, name: str, result: Any, *, call_id: str | None = None) -> None:
        """Record a tool's result."""
        if self._channels and self.policy.tools:
            await self._record(
                audit.tool_result_event(context, name, result, self.policy, at=self._now(), call_id=call_id)
            )

    @property
    def hears_planned(self) -> bool:
        """Whether anybody is told of planned turns' diagnostics."""
        return bool(self._channels) and self.policy.tools

    def planned(self, event: Mapping[str, Any], context: TurnContext | None = None) -> None:
        """Record an event of ``gm_chat.planned_audit``, of the turn where there is one.

        Diagnostics never wait, not even for a required sink.
        """
        if self.hears_planned:
            told = event if context is None else audit.planned_event(context, event, at=self._now())
            self._offer(self.policy.redact(told))

    async def flush(self) -> None:
        """Return when every event recorded so far was taken or given up."""
        if self._worker.is_running:
            await asyncio.wrap_future(self._worker.run(self._drain()))

    async def aclose(self) -> None:
        """Flush, close the sinks and end the thread. A later event starts them again."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """The same for code without an event loop; runs by itself when the process ends.

        Takes at most :data:`CLOSE_SECONDS`: what a sink has not taken by then is lost, and logged.
        """
        atexit.unregister(self.close)
        if not self._worker.is_running:
            return
        try:
            self._worker.run(self._close_sinks()).result(CLOSE_SECONDS)
        except TimeoutError:
            logger.error("audit sinks did not finish within %s s; events that still waited are lost", CLOSE_SECONDS)
        self._worker.stop()

    def _refuse_if_one_is_missing(self) -> None:
        if self._missing and self.policy.messages:
            names = ", ".join(map(repr, self._missing))
            raise AuditError(
                f"audit['required'] names {names}, and no such audit sink is there, so that what it would have "
                "recorded is refused. 'manage.py check' says what to type"
            )

    async def _record(self, event: Mapping[str, Any]) -> None:
        for channel, delivery in self._offer(event):
            if channel.required:
                await channel.taken(delivery)

    def _offer(self, event: Mapping[str, Any]) -> list[tuple[_Channel, Future[BaseException | None]]]:
        if not self._worker.is_running:
            atexit.register(self.close)
        return [(channel, channel.offer(event)) for channel in self._channels]

    async def _drain(self) -> None:
        await asyncio.gather(*(channel.drained() for channel in self._channels))

    async def _close_sinks(self) -> None:
        await asyncio.gather(*(channel.aclose() for channel in self._channels))


class _Worker:
    """One thread with one event loop, started on demand, and again after a fork or a stop."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_running(self) -> bool:
        """Whether the thread lives in this process."""
        return self._thread is not None and self._thread.is_alive()

    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that runs in the thread."""
        with self._lock:
            if self._loop is None or not self.is_running:
                runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
                self._loop = runner.get_loop()
                self._thread = threading.Thread(target=_serve, args=(runner,), name="gm-chat-audit", daemon=True)
                self._thread.start()
            return self._loop

    def run(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine in the thread, after those that were started before."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop())

    def stop(self) -> None:
        """End the thread, unless a sink blocks it: then it dies with the process."""
        with self._lock:
            if self._loop is not None and self._thread is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join(timeout=1)
            self._loop = self._thread = None


def _serve(runner: asyncio.Runner) -> None:
    with runner:  # cancels what is left and closes the loop
        runner.get_loop().run_forever()


class _Channel:
    """The way to one sink: an order, a bound, a time limit and a count of what was lost.

    Deliveries are tasks that queue up at a fair lock. All of its state belongs to one loop; a new loop (after a fork,
    after closing) begins afresh.
    """

    def __init__(self, sink: AuditSink, limit: int, seconds: float, worker: _Worker, *, required: bool) -> None:
        """Prepare the way to ``sink`` for at most ``limit`` waiting events."""
        self.sink = sink
        self.required = required
        self.dropped = 0
        self._limit = limit
        self._seconds = seconds
        self._worker = worker
        self._guard = threading.Lock()
        self._begin(None)

    def _begin(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._loop = loop
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._started = False

    def offer(self, event: Mapping[str, Any]) -> Future[BaseException | None]:
        """Queue an event, from any thread; the future tells how its delivery ended."""
        loop = self._worker.loop()
        with self._guard:
            if loop is not self._loop:
                self._begin(loop)
            if self._waiting < self._limit:
                self._waiting += 1
                return self._worker.run(self._deliver(event))
        full = asyncio.QueueFull(f"{self._limit} events wait already")
        self._lose(full)
        refused: Future[BaseException | None] = Future()
        refused.set_result(full)
        return refused

    async def taken(self, delivery: Future[BaseException | None]) -> None:
        """Wait for a required sink. The delivery itself goes on if the waiting turn is cancelled."""
        try:
            async with asyncio.timeout(self._seconds):
                error = await asyncio.shield(asyncio.wrap_future(delivery))
        except TimeoutError as late:
            error = late
        if error is not None:
            raise AuditError(
                f"the required audit sink {self.sink.name!r} did not take an event "
                f"({type(error).__name__}: {error}), so that what it would have recorded is refused"
            ) from error

    async def drained(self) -> None:
        """Wait for the deliveries that were offered before."""
        async with self._turn:
            return

    async def aclose(self) -> None:
        """Close the sink after the deliveries that were offered before."""
        async with self._turn:
            if self._started:
                self._started = False
                try:
                    async with asyncio.timeout(self._seconds):
                        await self.sink.aclose()
                except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code; the other sinks must be closed too
                    logger.warning("audit sink %r failed to close: %r", self.sink.name, error)

    async def _deliver(self, event: Mapping[str, Any]) -> BaseException | None:
        try:
            async with self._turn, asyncio.timeout(self._seconds):
                if not self._started:
                    await self.sink.start()
                    self._started = True
                await self.sink.emit(event)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code; SystemExit would end the thread
            self._lose(error)
            return error
        finally:
            with self._guard:
                self._waiting -= 1
        return None

    def _lose(self, error: BaseException) -> None:
        with self._guard:
            self.dropped += 1
            count = self.dropped
        if count == 1 or count % 100 == 0:  # a sink that is down must not flood the log
            logger.error("audit sink %r lost an event, %d so far: %r", self.sink.name, count, error)
