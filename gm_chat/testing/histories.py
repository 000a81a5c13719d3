"""Conversations and tools for tests of provider adapters: the ordinary, and what databases really hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gm_chat.providers.base import Message, ToolCallEvent, ToolDefinition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["HISTORIES", "QUESTION", "TOOLS"]

QUESTION: Final = [Message("system", "Be brief."), Message("user", "Which parts are there?")]
TOOLS: Final = [
    ToolDefinition(
        "query",
        "Read rows of a manager.",
        {
            "type": "object",
            "properties": {
                "manager": {"type": "string"},
                "fields": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                "filters": {"type": "object", "additionalProperties": True},
            },
            "required": ["manager"],
            "additionalProperties": False,
        },
    )
]


def _call(id: str, name: str = "query", **args: Any) -> ToolCallEvent:
    return ToolCallEvent(id, name, args)


def _result(id: str, value: str, name: str = "query") -> Message:
    return Message("tool", value, tool_call_id=id, tool_name=name)


_TWO_CALLS: Final = Message("assistant", "", (_call("a", manager="Part"), _call("b", manager="Größe 🎉")))

HISTORIES: Final[Mapping[str, Sequence[Message]]] = {
    "a question": QUESTION,
    "two answered calls": [*QUESTION, _TWO_CALLS, _result("a", "[1]"), _result("b", "[2]"), Message("assistant", "3")],
    "results in another order": [*QUESTION, _TWO_CALLS, _result("b", "[2]"), _result("a", "[1]")],
    "an interrupted call": [*QUESTION, _TWO_CALLS, _result("a", "[1]"), Message("user", "And now?")],
    "two calls with one id": [
        *QUESTION,
        Message("assistant", "", (_call("a"), _call("a"))),
        _result("a", "1"),
        _result("a", "2"),
    ],
    "one id in two rounds": [
        *QUESTION,
        Message("assistant", "", (_call("a", manager="Part"),)),
        _result("a", "1"),
        Message("assistant", "", (_call("a", manager="Order"),)),
        _result("a", "2"),
    ],
    "ids of another provider": [
        *QUESTION,
        Message("assistant", "", (_call(""), _call("x" * 200))),
        _result("", "1"),
        _result("x" * 200, "2"),
    ],
    "text before a call": [*QUESTION, Message("assistant", "I look.", (_call("a"),)), _result("a", "null")],
    "empty texts": [Message("system", ""), Message("user", "Hi"), Message("assistant", " "), Message("user", "Well?")],
    "an empty result": [*QUESTION, Message("assistant", "", (_call("a"),)), _result("a", "")],
    "two users in a row": [*QUESTION, Message("user", "And which orders?")],
    "two systems in a row": [Message("system", "Be brief."), Message("system", "Earlier: hello."), QUESTION[1]],
    "a result without its call": [Message("user", "Hi"), _result("gone", "[1]"), Message("user", "Well?")],
}
"""Histories as a database may hold them. Each of their prefixes must become a valid request."""
