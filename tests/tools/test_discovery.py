from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from testproject.calling import call

from gm_chat.encoding import to_json
from gm_chat.plugin import ToolError
from gm_chat.tools import find_path, get_manager_schema, search_managers

if TYPE_CHECKING:
    from collections.abc import Callable

    from gm_chat.plugin import ToolContext

    Contexts = Callable[..., ToolContext]


def test_search_gives_summaries(context_for: Contexts) -> None:
    found = call(search_managers, {"query": "parts"}, context_for("staff"))
    assert len(found) <= 10
    first = found[0]
    assert list(first) == ["manager", "description", "fields", "relations", "filters"]
    assert first["manager"] == "PartManager"
    assert {"number", "price", "gross"} <= set(first["fields"])
    assert {"name": "material", "target": "MaterialManager"} in first["relations"]
    assert {"name", "name__icontains", "price__gte"} <= set(first["filters"])


@pytest.mark.parametrize("query", ["", "   ", "qqqqqqqq"])
def test_search_without_a_hit_gives_nothing(query: str, context_for: Contexts) -> None:
    assert call(search_managers, {"query": query}, context_for("staff")) == []


def test_search_shows_an_actor_only_what_it_may_see(context_for: Contexts) -> None:
    assert call(search_managers, {"query": "parts"}, context_for(None)) == []
    with pytest.raises(ToolError, match="longer than"):
        call(search_managers, {"query": "x" * 3_000}, context_for("staff"))


def test_schema_is_a_richer_summary(context_for: Contexts) -> None:
    schema: Any = call(get_manager_schema, {"manager": "PartManager"}, context_for("staff"))
    summary = (call(search_managers, {"query": "PartManager"}, context_for("staff")))[0]
    assert schema["fields"] == summary["fields"]
    assert set(schema["filters"]) > set(summary["filters"])
    assert schema["field_details"]["price"] == {"type": "decimal", "description": "net, in euro", "nullable": True}
    assert schema["field_details"]["status"]["choices"][1] == {"value": "released", "label": "Released"}
    assert {"name": "tags", "target": "TagManager", "many": True} in schema["relations"]
    create = schema["mutations"][0]
    assert create["name"] == "createPart"
    inputs = {item["name"]: item for item in create["inputs"]}
    assert inputs["material"]["id_of"] == "MaterialManager"
    assert inputs["tags"]["ids_of"] == "TagManager"
    assert to_json(schema)


def test_schema_of_unknown_and_hidden_is_null(context_for: Contexts) -> None:
    assert call(get_manager_schema, {"manager": "NoManager"}, context_for("staff")) is None
    assert call(get_manager_schema, {"manager": "PaymentManager"}, context_for("staff")) is None
    assert call(get_manager_schema, {"manager": "PartManager"}, context_for(None)) is None
    hidden: Any = call(get_manager_schema, {"manager": "EmployeeManager"}, context_for("plain"))
    assert "salary" not in to_json(hidden)


def test_paths(context_for: Contexts) -> None:
    def path(start: str, end: str, **more: Any) -> Any:
        return call(find_path, {"from_manager": start, "to_manager": end, **more}, context_for("staff"))

    assert path("OrderLineManager", "MaterialManager") == ["part", "material"]
    assert path("order_line", "material") == ["part", "material"]
    assert path("PartManager", "PartManager") == []
    assert path("PartManager", "EmployeeManager") is None
    several = path("OrderLineManager", "MaterialManager", alternatives=True)
    assert several[0]["path"] == ["part", "material"]
    assert several[0]["why"] == "OrderLineManager -> part -> PartManager -> material -> MaterialManager"
    assert (path("PartManager", "PartManager", alternatives=True))[0] == {"path": [], "why": "PartManager itself"}
    with pytest.raises(ToolError, match="alternatives"):
        path("PartManager", "TagManager", alternatives="yes")
    with pytest.raises(ToolError) as caught:
        path("PartManager", "MateralManager")
    assert caught.value.details["allowed"][0] == "MaterialManager"
