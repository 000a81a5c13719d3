"""From JSON Schema to the part of it that Gemini documents.

What it does not document is refused by some models and ignored by others; both tools' parameters and answers' formats
go through here. Where a condition is lost, the tool still checks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["gemini_schema"]

_PLAIN: Final = (
    "$id",
    "$anchor",
    "$ref",
    "type",
    "description",
    "enum",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "required",
    "propertyOrdering",
)
_SCHEMA: Final = ("items", "additionalProperties")
_SCHEMAS: Final = ("anyOf", "prefixItems")
_NAMED: Final = ("$defs", "properties")
_FORMATS: Final = frozenset({"date", "date-time", "time"})


def gemini_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of ``schema`` Gemini reads, in the order of ``schema``'s own keys.

    ``oneOf`` becomes ``anyOf``, ``const`` an ``enum`` of one, an ``allOf`` of one that one, an OpenAPI ``nullable`` the
    type "null". All else that Gemini does not document is left out: ``minProperties``, ``pattern``, most formats.
    """
    read: dict[str, Any] = {}
    for key, value in schema.items():
        match key, value:
            case ("allOf", [Mapping() as only]):
                read.update(gemini_schema(only))
            case ("const", _):
                read["enum"] = [value]
            case ("oneOf", list()):
                read["anyOf"] = [_translated(item) for item in value]
            case ("format", str()) if value in _FORMATS:
                read[key] = value
            case _ if key in _PLAIN:
                read[key] = value
            case _ if key in _SCHEMA:
                read[key] = _translated(value)
            case (_, list()) if key in _SCHEMAS:
                read[key] = [_translated(item) for item in value]
            case (_, Mapping()) if key in _NAMED:
                read[key] = {name: _translated(item) for name, item in value.items()}
    if schema.get("nullable") is True and isinstance(schema.get("type"), str):
        read["type"] = [schema["type"], "null"]
    return read


def _translated(value: Any) -> Any:
    return gemini_schema(value) if isinstance(value, Mapping) else value
