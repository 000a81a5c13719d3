"""The sink: one event, one line."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LoggingSink", "line_of"]


def line_of(event: Mapping[str, Any]) -> str:
    """The event as one line of ASCII JSON, its keys in their order."""
    return json.dumps(dict(event), separators=(",", ":"))


class LoggingSink:
    """Logs each event as JSON at one level.

    ``emit`` calls the logger directly: gm-chat runs sinks in a thread of their own, and a further hop would only
    lose the events of a process that is ending.
    """

    name = "audit_logging"
    required = False

    def __init__(self, logger: str, level: int) -> None:
        """Name the logger and the level of every line."""
        self._logger = logging.getLogger(logger)
        self._level = level

    async def start(self) -> None:
        """Nothing to open: handlers belong to the project's logging configuration."""

    async def emit(self, event: Mapping[str, Any]) -> None:
        """Log the event as one line of ASCII, its keys in their order."""
        if self._logger.isEnabledFor(self._level):
            self._logger.log(self._level, "%s", line_of(event))

    async def aclose(self) -> None:
        """Nothing to close."""
