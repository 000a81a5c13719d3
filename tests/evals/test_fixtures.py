from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from django.apps import apps
from django.db import connections, router
from testproject.workbench import workbench

from gm_chat.engine.memory_store import MemoryTurnStore
from gm_chat.engine.ports import TurnRequest
from gm_chat.evals.fixtures import FIXTURES, django_settings, install
from gm_chat.evals.fixtures.installing import uninstall
from gm_chat.evals.fixtures.large import catalogue
from gm_chat.managers import registry
from gm_chat.plugin import Actor
from gm_chat.settings import build_settings
from gm_chat.settings.sources import Source
from gm_chat.testing.scripted import ScriptedProvider, call
from gm_chat.transports.wire import logged_object
from gm_chat.wiring import Runtime, get_runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from testproject.workbench import Workbench

    from gm_chat.evals.fixtures.installing import Fixture


@pytest.fixture(scope="module")
def toy(django_db_setup: None, django_db_blocker: Any) -> Iterator[Workbench]:
    with workbench("toy", django_db_blocker) as bench:
        yield bench


def names(result: Any) -> list[str]:
    return [row["name"] for row in result["data"]]


def test_the_toy_has_the_workshops_rows(toy: Workbench) -> None:
    materials = toy.ask("query", {"manager": "MaterialManager", "fields": ["name", "density"]})
    assert [(row["name"], row["density"]) for row in materials["data"]] == [
        ("Steel", 7.8),
        ("Aluminum", 2.7),
        ("Cobalt", 8.9),
    ]
    parts = toy.ask("query", {"manager": "PartManager", "fields": ["name", "material__name"]})
    assert [(row["name"], row["material"]["name"]) for row in parts["data"]] == [
        ("Bolt", "Steel"),
        ("Bearing", "Aluminum"),
        ("Gear", "Cobalt"),
    ]
    projects = toy.ask("query", {"manager": "ProjectManager", "fields": ["name", {"parts": ["name"]}]})
    assert [(row["name"], [part["name"] for part in row["parts"]]) for row in projects["data"]] == [
        ("Apollo", ["Gear"]),
        ("Mercury", ["Bearing"]),
    ]


def test_the_guest_sees_neither_confidential_rows_nor_fields_nor_managers(toy: Workbench) -> None:
    projects = {"manager": "ProjectManager", "fields": ["name"]}
    assert names(toy.ask("query", projects, user="guest")) == ["Apollo"]
    assert names(toy.ask("query", projects, user="analyst")) == ["Apollo", "Mercury"]
    assert "15" in toy.text("query", {"manager": "SupplierManager", "fields": ["discount"]})
    assert "error" in toy.ask("query", {"manager": "SupplierManager", "fields": ["discount"]}, user="guest")
    assert toy.ask("get_manager_schema", {"manager": "QuoteManager"}, user="guest") is None
    assert toy.ask("get_manager_schema", {"manager": "QuoteManager"}) is not None


def test_only_the_analyst_may_change_data(toy: Workbench) -> None:
    wish = {"mutation": "createMaterial", "input": {"name": "Zinc", "density": 7.1, "price_per_kg": "2.90"}}
    assert toy.ask("mutate", wish, user="guest")["error"]["code"] == "mutation_not_allowed"
    assert toy.ask("mutate", wish)["status"] == "executed"
    assert toy.ask("mutate", {"mutation": "deleteOrder", "input": {"id": 7}})["status"] == "confirmation_required"
    assert toy.ask("mutate", {"mutation": "deletePart", "input": {"id": 1}})["error"]["code"] == "mutation_not_allowed"
    toy.fixture.reset()


def test_reset_puts_back_what_was_changed_and_deleted(toy: Workbench) -> None:
    everything = {"manager": "OrderManager", "fields": ["*"]}
    before = toy.text("query", everything)
    assert toy.ask("mutate", {"mutation": "deleteOrder", "input": {"id": 7}}, approved=True)["status"] == "executed"
    new = {"name": "Zinc", "density": 7.1, "price_per_kg": "2.90"}
    first = toy.ask("mutate", {"mutation": "createMaterial", "input": new})
    assert toy.text("query", everything) != before
    toy.fixture.reset()
    assert toy.text("query", everything) == before
    assert names(toy.ask("query", {"manager": "MaterialManager", "fields": ["name"]})) == [
        "Steel",
        "Aluminum",
        "Cobalt",
    ]
    assert toy.ask("mutate", {"mutation": "createMaterial", "input": new}) == first, "the next id is counted on"
    toy.fixture.reset()


def test_installing_again_changes_nothing_and_the_other_fixture_takes_the_place(django_db_blocker: Any) -> None:
    with workbench("toy", django_db_blocker) as bench:
        assert install("toy") is bench.fixture
        assert set(registry.bindings()) == {
            *("MaterialManager", "PartManager", "ProjectManager", "SupplierManager", "OrderManager", "QuoteManager")
        }
        runtime = get_runtime()
        install("large")
        assert "PartManager" not in registry.bindings()
        assert get_runtime() is not runtime, "the schema that it had read was another"
        install("toy")
        assert len(registry.bindings()) == 6
    assert "AnnouncementManager" in registry.bindings(), "the project's own count again"
    uninstall()


def test_the_projects_models_and_databases_are_left_alone(toy: Workbench) -> None:
    from gm_chat.evals.fixtures.toy.tables import Part

    assert Part not in apps.get_models()
    assert router.db_for_read(Part) == router.db_for_write(Part) == toy.fixture.database_alias != "default"
    assert router.allow_migrate(toy.fixture.database_alias, "shop") is False
    assert router.allow_migrate("default", "shop") is True
    assert "gm_chat_evals_toy_part" not in connections["default"].introspection.table_names()


@pytest.mark.parametrize("name", FIXTURES)
def test_the_models_pass_djangos_own_checks(django_db_blocker: Any, name: str) -> None:
    with workbench(name, django_db_blocker):
        bindings = registry.bindings()
        assert [problem for item in bindings.values() for problem in item.model.check()] == []
        assert registry.warnings() == []


def test_a_thousand_managers_differ_and_are_connected(django_db_blocker: Any) -> None:
    with workbench("large", django_db_blocker) as bench:
        infos = bench.source.describe()
        assert len(infos) == 1_000
        assert len({info.description for info in infos}) == 1_000
        fields = {info.name: {field.name for field in info.fields} for info in infos}
        assert len({frozenset(value) for value in fields.values()}) == 1_000
        assert all(info.relations for info in infos)
        path = bench.ask("find_path", {"from_manager": "WaterPartnerManager", "to_manager": "VineyardTaskManager"})
        assert path == ["neighbour", "site", "plans", "tasks"]
        rows = bench.ask("query", {"manager": "HarbourInvoiceManager", "fields": ["name", "agreement__partner__name"]})
        assert rows["total_count"] == catalogue.ROWS
        wages = {"query": "wages and salaries"}
        assert bench.ask("search_managers", wages)[0]["manager"].startswith("Payroll")
        assert "Payroll" not in bench.text("search_managers", wages, user="guest")


def test_an_unknown_fixture_is_named() -> None:
    with pytest.raises(ValueError, match=r"'huge'; known: toy, large"):
        install("huge")
    with pytest.raises(ValueError, match="'huge'"):
        django_settings("huge")


PROGRAM = """
import django
from django.conf import settings
from gm_chat.evals.fixtures import django_settings, install
settings.configure(**django_settings("toy"))
django.setup()
fixture = install("toy")
from django.core.management import call_command
call_command("check")
call_command("makemigrations", "--check", "--dry-run", verbosity=0)
from gm_chat.evals.fixtures.toy.tables import Project
print(Project.objects.using(fixture.database_alias).get(name="Apollo").parts.get())
"""


def test_a_process_without_a_project_has_all_that_it_needs() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "Gear"


def test_a_turn_of_the_product_reads_and_changes_the_fixture_as_its_users(django_db_blocker: Any) -> None:
    """The product's own loop over a fixture: no row of the project is read or written, not even for the user."""
    with workbench("toy", django_db_blocker) as bench:
        asked = {"manager": "ProjectManager", "fields": ["name"]}
        for user, seen in (("analyst", ["Apollo", "Mercury"]), ("guest", ["Apollo"])):
            events = asyncio.run(turn(bench.fixture, user, [call("query", **asked)], ["There you are."]))
            assert [row["name"] for row in one(events, "tool_result")["result"]["data"]] == seen
            assert one(events, "done")
        wish = {"mutation": "createMaterial", "input": {"name": "Zinc", "density": 7.1, "price_per_kg": "2.90"}}
        events = asyncio.run(turn(bench.fixture, "analyst", [call("mutate", **wish)], ["Done."]))
        assert one(events, "tool_result")["result"]["status"] == "executed"
        wish = {"mutation": "deleteOrder", "input": {"id": 7}}
        events = asyncio.run(turn(bench.fixture, "analyst", [call("mutate", **wish)], ["Done."]))
        assert one(events, "confirm_mutation")["mutation"] == "deleteOrder"
        bench.fixture.reset()


async def turn(fixture: Fixture, user: str, *script: Any) -> list[dict[str, Any]]:
    chosen = {"enabled": True, "provider": "gm_chat.testing.ScriptedProvider", **fixture.chat_settings}
    runtime = dataclasses.replace(Runtime.build(build_settings([Source("GM_CHAT", chosen)])), store=MemoryTurnStore())
    who = fixture.users[user]
    actor = Actor(user_id=str(who.pk), user=who)
    with ScriptedProvider.playing(*script):
        turn_id = await runtime.runner.start(TurnRequest(actor=actor, text="Please.", transport="terminal"))
        async with contextlib.aclosing(runtime.runner.subscribe(turn_id, actor=actor)) as events:
            return [logged_object(item) async for item in events]


def one(events: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (event,) = (event for event in events if event["type"] == kind)
    return event
