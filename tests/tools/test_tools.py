"""The definitions, as models and clients rely on them: the specification's five tools, and one more."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testproject.calling import call

from gm_chat.plugin import ToolError
from gm_chat.tools import core_tools


def test_names_and_order() -> None:
    assert [spec.definition.name for spec in core_tools()] == [
        "search_managers",
        "get_manager_schema",
        "find_path",
        "query",
        "mutate",
        "aggregate",
    ]
    assert [spec.kind for spec in core_tools()] == ["read"] * 4 + ["write", "read"]


def test_inputs() -> None:
    schemas = {spec.definition.name: spec.definition.input_schema for spec in core_tools()}
    for schema in schemas.values():
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
    assert {name: (list(schema["properties"]), schema["required"]) for name, schema in schemas.items()} == {
        "search_managers": (["query"], ["query"]),
        "get_manager_schema": (["manager"], ["manager"]),
        "find_path": (["from_manager", "to_manager", "alternatives"], ["from_manager", "to_manager"]),
        "query": (["manager", "fields", "filters", "order_by", "first_per", "limit", "offset"], ["manager", "fields"]),
        "mutate": (["mutation", "input", "expected"], ["mutation", "input"]),
        "aggregate": (
            ["manager", "measures", "group_by", "filters", "having", "order_by", "fill", "limit"],
            ["manager"],
        ),
    }
    query = schemas["query"]["properties"]
    assert query["fields"]["minItems"] == 1
    assert query["limit"] == query["offset"] == {"type": "integer"}  # small models take a "minimum" for what to send


def test_they_cost_few_tokens() -> None:
    """A tokenizer counts 697 tokens for query and aggregate, 1,141 for all. They may not grow past 700."""
    sizes = {
        spec.definition.name: len(
            json.dumps([spec.definition.name, spec.definition.description, spec.definition.input_schema])
        )
        for spec in core_tools()
    }
    assert sizes["query"] + sizes["aggregate"] <= 2_340
    assert sum(sizes.values()) < 4_000


@pytest.mark.parametrize("spec", core_tools(), ids=lambda spec: spec.definition.name)
@pytest.mark.parametrize("args", [None, [], "text", {}, {"nonsense": 1}, {1: 2}])
def test_arguments_of_another_shape_are_refused(spec: Any, args: Any, context_for: Any) -> None:
    context = context_for("staff")
    with pytest.raises(ToolError) as caught:
        call(spec, args, context)
    assert caught.value.code == "invalid_argument"
    assert caught.value.details["allowed"]


@pytest.mark.parametrize("spec", core_tools(), ids=lambda spec: spec.definition.name)
def test_values_of_another_type_are_refused(spec: Any, context_for: Any) -> None:
    context = context_for("staff")
    for value in (5, None, ["x"], {"x": 1}, True):
        args = dict.fromkeys(spec.definition.input_schema["required"], value)
        with pytest.raises(ToolError):
            call(spec, args, context)
