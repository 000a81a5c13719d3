"""A language model that costs nothing: it answers at once, and asks for one page of parts where the text says so.

On servers that plan it plays every role, by what it is given: a planner and a synthesizer hold no tools, and the form
that they are asked for is named in their instructions.
"""

from __future__ import annotations

import itertools
import json
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
_EVIDENCE: Final = ["t1:query:1"]
_PLAN: Final = {
    "intent": "read",
    "tasks": [
        {
            "task_id": "t1",
            "objective": "Part",
            "depends_on": [],
            "requirements": [
                {"requirement_id": "r1", "kind": "query", "description": "Part", "operation": None},
            ],
            "completion_criteria": ["r1"],
            "routing_features": [],
        }
    ],
}


class BenchProvider:
    """Its whole state is a count of its calls, for the process."""

    calls = 0

    def __init__(self, config: object = None) -> None:
        """Take any configuration, and none."""

    async def complete(self, messages: list[Any], tools: list[Any]) -> AsyncIterator[Any]:
        """Ask for data if the last message is a question about it, else answer in three pieces."""
        type(self).calls += 1
        last = messages[-1]
        if _settings.TURNBENCH_PLANNED:
            # The one shows evidence as tools' results, the other in what it asks.
            known = any(_EVIDENCE[0] in message.content for message in messages if message.role != "system")
            asks = bool(tools) and not known
            if not asks:
                yield _events.TextChunkEvent(json.dumps(_written(messages, tools)))
        else:
            asks = last.role == "user" and last.content.startswith("query")
        if asks:
            value = SLOW_FILTER if last.content.endswith("slowly") else "bolt"
            args = {"manager": "Part", "fields": _FIELDS, "filters": {"name__icontains": value}, "limit": 10}
            yield _events.ToolCallEvent(f"call-{next(_ids)}", "query", args)
        elif not _settings.TURNBENCH_PLANNED:
            for piece in _ANSWER:
                yield _events.TextChunkEvent(piece)
        yield _events.DoneEvent(_events.TokenUsage(100, 10))


def _written(messages: list[Any], tools: list[Any]) -> dict[str, Any]:
    """What a planned role writes: an executor that has its rows, a planner, or a synthesizer."""
    if tools:
        return {"action": "complete", "evidence_ids": _EVIDENCE}
    told = " ".join(message.content for message in messages)
    return _PLAN if "routing_features" in told else {"answer": "".join(_ANSWER), "evidence_ids": _EVIDENCE}
