"""Checks that every tool makes of its arguments: a model may send anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from gm_chat.managers.spelling import nearest, shown
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from gm_chat.plugin import ToolDefinition

__all__ = ["checked", "flag", "text"]

MAX_TEXT: Final = 2_000


def checked(args: Any, definition: ToolDefinition, *, also: tuple[str, ...] = ()) -> Mapping[str, Any]:
    """The arguments, if they are an object with no key that the tool does not know and none missing.

    ``also`` are keys that the tool takes without advertising them.
    """
    known = [*definition.input_schema["properties"], *also]
    tool = definition.name
    if not isinstance(args, Mapping):
        raise ToolError("invalid_argument", f"{tool} takes an object of arguments, got {shown(args)}", allowed=known)
    for key in args:
        if key not in known:
            raise ToolError(
                "invalid_argument", f"{tool} takes no argument {shown(key)}", allowed=nearest(str(key)[:80], known)
            )
    for key in definition.input_schema.get("required", ()):
        if key not in args:
            raise ToolError("invalid_argument", f"{tool} needs the argument {key!r}", allowed=known)
    return args


def text(args: Mapping[str, Any], name: str) -> str:
    """An argument that must be text."""
    value = args.get(name)
    if not isinstance(value, str):
        raise ToolError("invalid_argument", f"{name} must be text, got {shown(value)}")
    if len(value) > MAX_TEXT:
        raise ToolError("too_large", f"{name} is longer than {MAX_TEXT} characters")
    return value


def flag(args: Mapping[str, Any], name: str) -> bool:
    """An argument that may be left out and is true or false."""
    value = args.get(name, False)
    if not isinstance(value, bool):
        raise ToolError("invalid_argument", f"{name} must be true or false without quotes, got {shown(value)}")
    return value
