from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Permission
from testproject.calling import call
from testproject.catalogs import shop

from gm_chat.encoding import to_json
from gm_chat.managers import registry
from gm_chat.managers.api import FieldInfo, ManagerInfo, ManagerVisibility, RelationInfo, Visibility
from gm_chat.managers.index import SchemaIndex
from gm_chat.managers.service import DataService
from gm_chat.managers.source import DjangoModelSource
from gm_chat.planned.catalog import load_manager_catalog
from gm_chat.plugin import ToolError
from gm_chat.tools import find_path, get_manager_schema, search_managers

if TYPE_CHECKING:
    from collections.abc import Callable

    from gm_chat.managers.api import ManagerView
    from gm_chat.plugin import Actor, ToolContext

    Contexts = Callable[..., ToolContext]


class OneView:
    """A manager service in which everybody sees the same managers, whole."""

    def __init__(self, infos: list[ManagerInfo]) -> None:
        index = SchemaIndex.build(infos)
        rights = {
            info.name: ManagerVisibility(
                frozenset(item.name for item in info.fields),
                frozenset(item.name for item in info.relations),
                frozenset(),
            )
            for info in infos
        }
        self._view = index.view(Visibility("all", rights))

    async def view(self, actor: Actor) -> ManagerView:
        return self._view


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


# --- a catalog's words ------------------------------------------------------------------------------------------


def told(context: ToolContext, source: Any = shop) -> ToolContext:
    """The same context in a project with a catalog."""
    django = DjangoModelSource(registry.bindings())
    catalog = load_manager_catalog(source, registry.bindings())
    return replace(context, managers=DataService(SchemaIndex.build(django.describe(), catalog), [django]))


def test_search_finds_by_the_catalog_s_words(context_for: Contexts) -> None:
    for query in ("component", "componets", "spare parts"):
        assert call(search_managers, {"query": query}, told(context_for("staff")))[0]["manager"] == "PartManager"


def test_search_says_when_to_use_those_that_are_mistaken_for_one_another(context_for: Contexts) -> None:
    found = call(search_managers, {"query": "parts and materials"}, told(context_for("staff")))
    uses = {item["manager"]: item.get("use_when") for item in found}
    assert uses["PartManager"] == "The question concerns designed or purchased components."
    assert uses["MaterialManager"] == "The question concerns what something is made of."
    assert {use for name, use in uses.items() if name not in ("PartManager", "MaterialManager")} <= {None}
    alone = call(search_managers, {"query": "alloys"}, told(context_for("staff")))
    assert [item["manager"] for item in alone] == ["MaterialManager"]
    assert "use_when" not in alone[0]  # there is nothing to choose from


def test_the_schema_tells_what_the_catalog_says(context_for: Contexts) -> None:
    schema: Any = call(get_manager_schema, {"manager": "PartManager"}, told(context_for("staff")))
    assert {"component", "spare part"} <= set(schema["aliases"])
    assert schema["use_when"] == "The question concerns designed or purchased components."
    assert schema["distinguish_from"] == {"MaterialManager": "The question concerns what something is made of."}
    plain: Any = call(get_manager_schema, {"manager": "TagManager"}, told(context_for("staff")))
    assert not {"aliases", "use_when", "distinguish_from"} & plain.keys()


def test_a_catalog_says_nothing_of_managers_that_the_actor_does_not_see(
    context_for: Contexts, users: dict[str, Any]
) -> None:
    users["plain"].user_permissions.set(Permission.objects.filter(codename="view_part"))
    context = told(context_for("plain"))
    without = told(context_for("plain"), {"PartManager": {**shop()["PartManager"], "distinguish_from": []}})
    for query in ("alloy", "substance", "aloy", "parts and materials", "component", "what something is made of"):
        found = call(search_managers, {"query": query}, context)
        assert found == call(search_managers, {"query": query}, without)
        assert "Material" not in to_json(found)
    schema: Any = call(get_manager_schema, {"manager": "PartManager"}, context)
    assert schema == call(get_manager_schema, {"manager": "PartManager"}, without)
    assert {"component", "spare part"} <= set(schema["aliases"])
    assert "distinguish_from" not in schema


def test_a_path_tells_what_it_leads_through(context_for: Contexts) -> None:
    user = FieldInfo(name="id", type="integer")
    author = "who wrote it, and who is asked about it when something in it is not clear to the readers"
    spokes = [
        ManagerInfo(
            name=f"Record{number}Manager",
            description="",
            fields=(user,),
            relations=(
                RelationInfo(name="author", target="UserManager", many=False, description=author),
                *([RelationInfo(name="part_of", target="Record1Manager", many=False)] if number == 0 else []),
            ),
        )
        for number in range(30)
    ]
    reverse = tuple(RelationInfo(name=f"records{n}", target=f"Record{n}Manager", many=True) for n in range(30))
    hub = ManagerInfo(name="UserManager", description="", fields=(user,), relations=reverse)
    context = replace(context_for("staff"), managers=OneView([*spokes, hub]))

    def paths(start: str, end: str) -> Any:
        return call(find_path, {"from_manager": start, "to_manager": end, "alternatives": True}, context)

    about = "UserManager: who wrote it, and who is asked about it when something in…"
    assert paths("Record0Manager", "Record1Manager") == [
        {"path": ["part_of"], "why": "each Record0Manager has one part_of (Record1Manager)"}
    ]
    assert paths("Record2Manager", "UserManager") == [
        {"path": ["author"], "why": f"each Record2Manager has one author ({about})"}
    ]
    assert paths("Record2Manager", "Record1Manager")[0] == {
        "path": ["author", "records1"],
        "why": f"each Record2Manager has one author ({about}), each with many records1 (Record1Manager)"
        "; it goes through UserManager, to which most others are related too",
    }


def test_paths(context_for: Contexts) -> None:
    def path(start: str, end: str, **more: Any) -> Any:
        return call(find_path, {"from_manager": start, "to_manager": end, **more}, context_for("staff"))

    assert path("OrderLineManager", "MaterialManager") == ["part", "material"]
    assert path("order_line", "material") == ["part", "material"]
    assert path("PartManager", "PartManager") == []
    assert path("PartManager", "EmployeeManager") is None
    several = path("OrderLineManager", "MaterialManager", alternatives=True)
    assert several[0]["path"] == ["part", "material"]
    assert several[0]["why"] == (
        "each OrderLineManager has one part (PartManager), each with one material (MaterialManager)"
    )
    assert (path("PartManager", "PartManager", alternatives=True))[0] == {"path": [], "why": "PartManager itself"}
    with pytest.raises(ToolError, match="alternatives"):
        path("PartManager", "TagManager", alternatives="yes")
    with pytest.raises(ToolError) as caught:
        path("PartManager", "MateralManager")
    assert caught.value.details["allowed"][0] == "MaterialManager"
