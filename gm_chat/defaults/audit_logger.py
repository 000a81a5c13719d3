"""The audit sink behind the setting ``audit.logger``. (Specification: "Audit settings".)"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from gm_chat.persistence.threads import OwnThread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["LoggerSink"]


class LoggerSink:
    """Gives each sanitized event to one callable, plain or async.

    A plain one runs in a thread of its own, so that it may write the event with the ORM, and block nobody but itself.
    """

    name = "logger"
    required = False

    def __init__(self, log: Callable[[Mapping[str, Any]], object]) -> None:
        """Take the callable; it receives one mapping per event."""
        self._log = log
        self._thread = OwnThread()

    async def start(self) -> None:
        """Nothing to open."""

    async def emit(self, event: Mapping[str, Any]) -> None:
        """Call it, and await what it returns if that can be awaited."""
        result = await self._thread.run(self._log, event)
        if inspect.isawaitable(result):
            await result

    async def aclose(self) -> None:
        """Nothing to close."""
