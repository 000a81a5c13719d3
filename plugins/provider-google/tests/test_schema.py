"""JSON Schemas as tools have them, and what Gemini gets to read of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from gm_chat_provider_google.schema import gemini_schema

TEXT = {"type": "string"}


@pytest.mark.parametrize(
    "schema",
    [
        {
            "type": "object",
            "properties": {
                "manager": {"type": "string", "description": "a manager's name"},
                "fields": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "anyOf": [
                            {"type": "string"},
                            {"type": "object", "additionalProperties": {"type": "array", "items": TEXT, "minItems": 1}},
                        ]
                    },
                },
                "filters": {"type": "object", "additionalProperties": True},
                "limit": {"type": ["integer", "null"], "minimum": 1, "maximum": 200},
                "when": {"type": "string", "format": "date-time"},
            },
            "required": ["manager", "fields"],
            "additionalProperties": False,
        },
        {"$ref": "#/$defs/node", "$defs": {"node": {"type": "array", "items": {"$ref": "#/$defs/node"}}}},
        {"type": "array", "prefixItems": [{"enum": ["a", "b"]}, {"enum": [1, 2]}], "maxItems": 2},
        {},
    ],
)
def test_what_gemini_documents_is_left_as_it_is(schema: dict[str, Any]) -> None:
    assert gemini_schema(schema) == schema
    assert list(gemini_schema(schema)) == list(schema)


@pytest.mark.parametrize(
    ("schema", "read"),
    [
        ({"oneOf": [TEXT, {"const": 7}]}, {"anyOf": [TEXT, {"enum": [7]}]}),
        ({"const": None}, {"enum": [None]}),
        ({"allOf": [{"$ref": "#/$defs/a"}], "description": "d"}, {"$ref": "#/$defs/a", "description": "d"}),
        ({"allOf": [TEXT, {"minLength": 1}], "description": "d"}, {"description": "d"}),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": False}, TEXT),
        ({"type": "string", "format": "uuid"}, TEXT),
        ({"type": "string", "pattern": "^a", "minLength": 1, "maxLength": 2}, TEXT),
        ({"type": "number", "exclusiveMinimum": 0, "multipleOf": 2, "default": 4}, {"type": "number"}),
        ({"type": "array", "items": TEXT, "uniqueItems": True}, {"type": "array", "items": TEXT}),
        (
            {"type": "object", "minProperties": 1, "patternProperties": {"^a": TEXT}, "propertyNames": TEXT},
            {"type": "object"},
        ),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "T", "examples": [1], "not": TEXT}, {}),
        ({"if": TEXT, "then": TEXT, "else": TEXT, "unknown": 1}, {}),
        # rubbish is nobody's keyword
        ({"properties": [], "anyOf": {}, "format": 7}, {}),
    ],
)
def test_what_it_does_not_is_said_otherwise_or_left_out(schema: dict[str, Any], read: dict[str, Any]) -> None:
    before = copy.deepcopy(schema)
    outer = {"type": "object", "properties": {"x": {"items": schema}}, "$defs": {"y": {"anyOf": [schema]}}}
    assert gemini_schema(schema) == read
    assert gemini_schema(outer) == {
        "type": "object",
        "properties": {"x": {"items": read}},
        "$defs": {"y": {"anyOf": [read]}},
    }
    assert schema == before


def test_fields_may_be_called_like_keywords() -> None:
    names = ("pattern", "format", "title", "const", "type", "$ref", "nullable", "allOf")
    schema = {"type": "object", "properties": dict.fromkeys(names, TEXT)}
    assert gemini_schema(schema) == schema
