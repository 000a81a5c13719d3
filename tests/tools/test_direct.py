from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from testproject.calling import call
from testproject.desk import whole_view

from gm_chat.plugin import ToolError
from gm_chat.tools import direct_tools
from gm_chat.tools.direct import tool_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from gm_chat.plugin import ToolContext


@pytest.mark.parametrize(
    "manager",
    ["PartManager", "X" * 58, "X" * 59, "Ä", "Ö", "a b", "a_b", "\ud800", "Very" * 30 + "A", "Very" * 30 + "B"],
)
def test_names_are_usable_everywhere_and_stable(manager: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool_name(manager))
    assert tool_name(manager) == tool_name(manager)


def test_names_are_unique() -> None:
    managers = ["Ä", "Ö", "_", "a b", "a_b", "a-b", "Very" * 30 + "A", "Very" * 30 + "B"]
    assert len({tool_name(manager) for manager in managers}) == len(managers)
    assert tool_name("PartManager") == "query_PartManager"


def test_one_tool_for_each_visible_manager() -> None:
    view = whole_view()
    tools = direct_tools(view)
    assert [spec.definition.name for spec in tools] == [f"query_{info.name}" for info in view]
    part = next(spec for spec in tools if spec.definition.name == "query_PartManager")
    assert "manager" not in part.definition.input_schema["properties"]
    assert part.definition.input_schema["required"] == ["fields"]
    for word in ("Designed or purchased", "lead_time", "material (MaterialManager)"):
        assert word in part.definition.description


def test_a_view_has_the_same_tools_in_each_turn() -> None:
    view, other = whole_view(), whole_view()
    assert direct_tools(view) is direct_tools(view)
    assert direct_tools(other) is not direct_tools(view)


def test_they_run_as_query_does(context_for: Callable[..., ToolContext]) -> None:
    context = context_for("staff")
    tool: Any = next(spec for spec in direct_tools(whole_view()) if spec.definition.name == "query_TagManager")
    assert (call(tool, {"fields": ["name"], "limit": 1}, context))["total_count"] == 6
    with pytest.raises(ToolError, match="'manager'"):
        call(tool, {"manager": "PartManager", "fields": ["name"]}, context)
    with pytest.raises(ToolError, match="'fields'"):
        call(tool, {}, context)
