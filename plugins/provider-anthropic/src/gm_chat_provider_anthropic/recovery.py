"""What to leave out of a request that was refused for it. Pure.

Which models and servers take a schema for the answer, a forced call or a thought of an earlier answer differs, and no
table of model names would stay true. What they refuse is optional: without it there is still an answer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LASTING", "without_refused"]

_REFUSED: Final[Mapping[str, re.Pattern[str]]] = {
    "output_config": re.compile(r"output_config|output_format|structured output|json_schema|grammar", re.IGNORECASE),
    "tool_choice": re.compile(r"tool_choice|forc\w+ tool|tool use is forced", re.IGNORECASE),
    "thinking": re.compile(r"thinking|signature", re.IGNORECASE),
}
"""What can be left out, and how a refusal speaks of it."""

LASTING: Final = frozenset({"output_config", "tool_choice"})
"""What a model refuses always. A thought may just have been moved away from what it was a thought about."""


def without_refused(body: Mapping[str, Any], refusal: str) -> tuple[str, dict[str, Any]] | None:
    """Return what ``refusal`` objects to, and ``body`` without it; ``None`` if there is nothing to leave out."""
    for name, pattern in _REFUSED.items():
        if pattern.search(refusal):
            shorter = without(body, name)
            if shorter != body:
                return name, shorter
    return None


def without(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return ``body`` without the key ``name``, and without "thinking" also without the thoughts in its messages.

    Of the choices of a tool only the forced call goes: "none" is what makes a request one for an answer.
    """
    if name == "tool_choice" and body.get(name) == {"type": "none"}:
        return dict(body)
    shorter = {key: value for key, value in body.items() if key != name}
    if name == "thinking":
        shorter["messages"] = [
            {**message, "content": [block for block in message["content"] if "thinking" not in block["type"]]}
            for message in body["messages"]
        ]
    return shorter
