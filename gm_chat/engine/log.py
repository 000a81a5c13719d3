"""The append-only log of one turn's events, and its readers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from gm_chat.engine.events import ConfirmMutation, Event, LoggedEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

__all__ = ["EventLog"]


class EventLog:
    """Events of one turn in order, numbered from 1. Any number of readers, each from where it likes.

    Readers and writer share one event loop, except that a finished log can be read from anywhere.
    """

    def __init__(self, turn_id: str) -> None:
        """Start empty."""
        self.turn_id = turn_id
        self._events: list[LoggedEvent] = []
        self._grown = asyncio.Event()

    def __len__(self) -> int:
        """The number of events, which is the ``seq`` of the last one."""
        return len(self._events)

    @property
    def is_finished(self) -> bool:
        """Whether the last event ended the stream: done, failed, or paused for a confirmation."""
        return bool(self._events) and self._events[-1].is_last

    def append(self, event: Event) -> LoggedEvent:
        """Add an event and wake the readers. Only a pause may be followed by more."""
        if self.is_finished and not isinstance(self._events[-1].event, ConfirmMutation):
            raise RuntimeError(f"turn {self.turn_id!r} has ended: {event!r} cannot follow {self._events[-1].event!r}")
        logged = LoggedEvent(self.turn_id, len(self._events) + 1, event)
        self._events.append(logged)
        # Each waiter holds the event that it waits for; a fresh one replaces it, so nobody has to clear it.
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()
        return logged

    async def read(self, after_seq: int = 0) -> AsyncGenerator[LoggedEvent, None]:
        """Yield the events with a ``seq`` above ``after_seq``, past ones first, up to one that ends the stream."""
        if after_seq < 0:
            raise ValueError(f"after_seq must be 0 or a seq that was received, got {after_seq!r}")
        position = after_seq
        while True:
            while position < len(self._events):
                logged = self._events[position]
                position += 1
                yield logged
                if logged.is_last:
                    return
            if self.is_finished:
                return
            await self._grown.wait()
