"""A language model that costs nothing: it answers at once, and asks for one page of parts where the text says so."""

from __future__ import annotations

import itertools
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["SLOW_FILTER", "BenchProvider"]

SLOW_FILTER: Final = "sleepy"
"""The filter's value that makes the data slow, see ``probes``."""

_settings: Any = settings
_events: Any = import_module(_settings.TURNBENCH_EVENTS)  # the names and arguments are the same in both projects
_ids: Final = itertools.count(1)
_FIELDS: Final = ["number", "name", "price"]
_ANSWER: Final = ("There ", "are ", "parts.")


class BenchProvider:
    """Its whole state is a count of its calls, for the process."""

    calls = 0

    def __init__(self, config: object = None) -> None:
        """Take any configuration, and none."""

    async def complete(self, messages: list[Any], tools: list[Any]) -> AsyncIterator[Any]:  # noqa: ARG002
        """Ask for data if the last message is a question about it, else answer in three pieces."""
        type(self).calls += 1
        last = messages[-1]
        if last.role == "user" and last.content.startswith("query"):
            value = SLOW_FILTER if last.content.endswith("slowly") else "bolt"
            args = {"manager": "Part", "fields": _FIELDS, "filters": {"name__icontains": value}, "limit": 10}
            yield _events.ToolCallEvent(f"call-{next(_ids)}", "query", args)
        else:
            for piece in _ANSWER:
                yield _events.TextChunkEvent(piece)
        yield _events.DoneEvent(_events.TokenUsage(100, 10))
