"""A light look at a tool's arguments: top-level presence and types of its JSON Schema, nothing deeper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["mismatch"]

_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": (list, tuple),
    "object": Mapping,
    "null": type(None),
}


def mismatch(schema: Mapping[str, Any], args: Mapping[str, Any]) -> str | None:
    """Say, in words for the model, which argument does not fit ``schema``; ``None`` if none is seen to."""
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in args:
            return f"the argument {name!r} is missing"
    for name, value in args.items():
        if name not in properties:
            if schema.get("additionalProperties") is False:
                return f"there is no argument {name!r}; allowed: {', '.join(properties)}"
            continue
        expected = properties[name].get("type")
        names = [expected] if isinstance(expected, str) else list(expected or ())
        if names and not any(_is_a(value, name) for name in names):
            return f"the argument {name!r} must be of type {' or '.join(names)}, got {value!r}"
    return None


def _is_a(value: object, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES.get(name, object))
