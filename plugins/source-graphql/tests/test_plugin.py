"""The plugin as the host loads it: its contract, its settings, and a project that only adds settings."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from desks import actor_of, run
from gm_chat_source_graphql import plugin
from gm_chat_source_graphql.options import Options
from testproject.shop_rows import fill_shop

from gm_chat.managers.plan import build_plan
from gm_chat.testing import make_host
from gm_chat.testing.hook_contracts import ManagerSourcesContract
from gm_chat.wiring.runtime import get_runtime


class TestManagerSources(ManagerSourcesContract):
    plugin = plugin
    name = "graphql"
    options: ClassVar[dict[str, Any]] = {"schema": "shop_schemas.with_strawberry.schema", "managers": "*"}


def test_without_settings_there_is_no_source() -> None:
    assert make_host(graphql=plugin).manager_sources == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schema": "a.b"}, "'managers' must name the lists to show"),
        ({"managers": ["parts"]}, "'schema' is missing"),
        ({"schema": "nodots", "managers": "*"}, "expected a dotted path such as"),
        ({"schema": "a.b", "managers": {"parts": {"nmae": "X"}}}, "managers.parts.nmae"),
        ({"schema": "a.b", "managers": "*", "page_size": 1}, "greater than or equal to 2"),
        ({"shcema": "a.b"}, "unknown key 'shcema'. Did you mean 'schema'?"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    host = make_host({"graphql": plugin}, options={"graphql": options}, strict=False)
    assert host.manager_sources == ()
    assert message in host.problems[0].message


def test_lists_and_stars_are_mappings() -> None:
    options = Options(schema="a.b", managers=["x"], mutations="*")  # type: ignore[arg-type]
    assert list(options.managers) == ["x"]
    assert options.mutations == {"*": None}


def test_a_project_adds_nothing_but_settings(db: None, settings: Any) -> None:
    """Beside the managers of its own models; the entry point brings the plugin in."""
    users = fill_shop()
    chosen = {"parts": {"name": "CataloguePartManager"}, "suppliers": {"name": "CatalogueSupplierManager"}}
    settings.GM_CHAT = {
        **settings.GM_CHAT,
        "plugins": {"graphql": {"schema": "shop_schemas.with_strawberry.schema", "managers": chosen}},
    }
    actor, managers = actor_of(users["plain"]), get_runtime().managers
    view = run(managers.view(actor))
    assert "CataloguePartManager" in {info.name for info in view}
    assert view.find_paths("CataloguePartManager", "CatalogueSupplierManager") == [("supplier",)]
    args = {"manager": "CataloguePartManager", "fields": ["status", "supplier__name"], "filters": {"price": "1.00"}}
    page = run(managers.query(build_plan(args, view, max_results=200), actor, deadline=None))
    assert page.total_count
    assert {row["status"] for row in page.data} <= {"released", "obsolete"}
