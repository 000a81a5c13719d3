"""The page about managers says what is so: its code runs, its error is the error, its table is complete."""

from __future__ import annotations

import re
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from testproject import shop
from testproject.shop import models

from gm_chat.managers import DeclarationError, ModelManager, registry
from gm_chat.managers.declare import exposed_in
from gm_chat.managers.describe import describe
from gm_chat.managers.index import SchemaIndex
from gm_chat.planned.catalog import ManagerCatalogEntry, load_manager_catalog

PAGE = (Path(__file__).parents[2] / "docs" / "managers.md").read_text(encoding="utf-8")
BLOCKS: list[str] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(autouse=True)
def _app_named_shop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shop", shop)
    monkeypatch.setitem(sys.modules, "shop.models", models)


def run(block: str) -> list[type[ModelManager]]:
    """Run a block as a module and return the managers that it declares."""
    module = ModuleType(f"managers_page_{BLOCKS.index(block)}")
    before = len(exposed_in(module.__name__))
    exec(compile(block, "docs/managers.md", "exec"), module.__dict__)  # noqa: S102 - it is our own page
    declared: list[Any] = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, ModelManager) and value is not ModelManager
    ]
    return [*declared, *exposed_in(module.__name__)[before:]]


def block(part: str) -> str:
    return next(text for text in BLOCKS if part in text)


def test_one_line() -> None:
    bindings = describe(run(block("expose(Part, aliases"))).bindings
    assert set(bindings) == {"MaterialManager", "PartManager"}
    part = bindings["PartManager"].info
    assert part.aliases == ("component", "item")
    assert {item.name for item in part.relations} == {"material"}
    assert {item.name for item in part.mutations} == {"createPart", "updatePart", "deletePart"}


def test_the_class() -> None:
    part = describe(run(block("def gross"))).bindings["PartManager"]
    assert part.info.description == "Components that we design ourselves or buy."
    assert [item.name for item in part.info.fields] == ["id", "number", "name", "price", "status", "gross"]
    assert [item.name for item in part.info.relations] == ["material", "order_lines"]
    assert [item.kind for item in part.info.mutations] == ["create", "update"]
    assert part.visible_to is not None


def test_rows_and_fields() -> None:
    bindings = describe(run(block("def visible_fields"))).bindings
    assert bindings["OrderManager"].visible_to is not None
    hook = bindings["EmployeeManager"].visible_fields
    assert hook is not None

    class Anybody:
        user = None

    names = frozenset({"id", "salary"})
    assert hook(names, Anybody()) == {"id"}  # type: ignore[arg-type] # all that the hook reads


def test_mutations() -> None:
    part = describe(run(block("retire_part"))).bindings["PartManager"]
    own = [item for item in part.info.mutations if item.kind == "custom"]
    assert [item.name for item in own] == ["retirePart", "reorderPart", "closeMonth"]
    assert [item.name for item in own[1].inputs] == ["id", "supplier", "pieces", "urgent"]
    assert part.custom["reorderPart"].permission == "shop.add_order"


def test_the_mistake_gives_the_error_on_the_page() -> None:
    (expected,) = re.findall(r"```text\n(.*?)\n```", PAGE)
    with pytest.raises(DeclarationError, match=re.escape(expected)):
        describe(run(block("numbr")))


def test_the_catalog() -> None:
    """Every key that an entry has is in the table, and the words find what they should."""
    module: dict[str, Any] = {}
    exec(compile(block("def catalog"), "docs/managers.md", "exec"), module)  # noqa: S102 - it is our own page
    loaded = load_manager_catalog(module["catalog"], registry.bindings())
    assert set(loaded.entries) == {"PartManager", "MaterialManager"}
    assert all(f"| `{item.name}` |" in PAGE for item in fields(ManagerCatalogEntry))
    index = SchemaIndex.build((binding.info for binding in registry.bindings().values()), loaded)
    everything = dict.fromkeys(index.managers)
    assert index.search.rank("alloys", everything)[0] == "MaterialManager"
    assert index.search.rank("spare partz", everything)[0] == "PartManager"


def test_looking_at_the_result() -> None:
    run(block("LabelManager"))
    registry.reset()


def test_every_block_is_tested() -> None:
    assert len(BLOCKS) == 7


def test_the_table_names_every_attribute() -> None:
    attributes = [name for name in vars(ModelManager) if not name.startswith("_")]
    assert all(f"| `{name}` |" in PAGE for name in attributes)
