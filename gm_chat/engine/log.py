"""The append-only log of one turn's events, and its readers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from gm_chat.engine.events import ConfirmMutation, Event, LoggedEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence

__all__ = ["EventLog"]


class EventLog:
    """Events of one turn in order, numbered from 1. Any number of readers, each from where it likes.

    Readers and writer share one event loop, except that a finished log can be read from anywhere. A turn that is
    taken up after a pause gets a new log, which begins with the ``events`` of the old one.
    """

    def __init__(self, turn_id: str, events: Iterable[Event] = ()) -> None:
        """Start empty, or with what came before a pause."""
        self.turn_id = turn_id
        self._events = [LoggedEvent(turn_id, seq, event) for seq, event in enumerate(events, 1)]
        self._began_with = len(self._events)
        self._grown = asyncio.Event()
        self._finished = asyncio.Event()

    def __len__(self) -> int:
        """The number of events, which is the ``seq`` of the last one."""
        return len(self._events)

    @property
    def events(self) -> Sequence[Event]:
        """The events so far, as they were added."""
        return [logged.event for logged in self._events]

    @property
    def is_finished(self) -> bool:
        """Whether the last event ended the stream: done, failed, or paused for a confirmation."""
        return len(self._events) > self._began_with and self._events[-1].is_last

    @property
    def is_paused(self) -> bool:
        """Whether the stream ended for a confirmation."""
        return self.is_finished and isinstance(self._events[-1].event, ConfirmMutation)

    def append(self, event: Event) -> LoggedEvent:
        """Add an event and wake the readers."""
        if self.is_finished:
            raise RuntimeError(f"turn {self.turn_id!r} has ended: {event!r} cannot follow {self._events[-1].event!r}")
        logged = LoggedEvent(self.turn_id, len(self._events) + 1, event)
        self._events.append(logged)
        # Each waiter holds the event that it waits for; a fresh one replaces it, so nobody has to clear it.
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()
        if logged.is_last:
            self._finished.set()
        return logged

    async def read(self, after_seq: int = 0) -> AsyncGenerator[LoggedEvent, None]:
        """Yield the events with a ``seq`` above ``after_seq``, past ones first, up to the one that ends the stream."""
        position = _checked(after_seq)
        while True:
            while position < len(self._events):
                logged = self._events[position]
                position += 1
                yield logged
            if self.is_finished:
                return
            await self._grown.wait()

    async def collect(self, after_seq: int = 0) -> Sequence[LoggedEvent]:
        """Wait for the event that ends the stream; return those with a ``seq`` above ``after_seq``, all at once."""
        position = _checked(after_seq)
        await self._finished.wait()
        return self._events[position:]


def _checked(after_seq: int) -> int:
    if after_seq < 0:
        raise ValueError(f"after_seq must be 0 or a seq that was received, got {after_seq!r}")
    return after_seq
