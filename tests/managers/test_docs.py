"""The page about managers says what is so: its code runs, its error is the error, its table is complete."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, get_args

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone
from testproject import shop
from testproject.calling import call, context_of
from testproject.desk import Desk
from testproject.shop import models

from gm_chat.managers import DeclarationError, ModelManager, registry
from gm_chat.managers.aggregate import MAX_GROUPS, MAX_MEASURES
from gm_chat.managers.api import DatePart
from gm_chat.managers.declare import exposed_in
from gm_chat.managers.describe import describe
from gm_chat.managers.filling import MAX_FOUND
from gm_chat.managers.filters import LOOKUPS, FilterLimits
from gm_chat.managers.formula import MAX_DEPTH, MAX_DIGITS, MAX_TEXT, MAX_TOKENS
from gm_chat.managers.index import SchemaIndex
from gm_chat.managers.measures import AggregateFunction
from gm_chat.managers.plan import DEFAULT_LIMITS
from gm_chat.managers.references import MAX_DAYS
from gm_chat.planned.catalog import ManagerCatalogEntry, load_manager_catalog
from gm_chat.plugin import Actor, ToolContext
from gm_chat.tools import aggregate, query
from gm_chat.tools.query import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def examples() -> Iterator[tuple[str, dict[str, Any], list[Any]]]:
    """The calls on the page: the tool, its arguments, and the rows below."""
    for shown in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for example in re.split(r"(?m)^> ", shown)[1:]:
            line, *rows = example.strip().splitlines()
            tool, _, arguments = line.partition(" ")
            yield tool, json.loads(arguments), [json.loads(row) for row in rows]


@pytest.fixture
def asking(db: None, monkeypatch: pytest.MonkeyPatch) -> ToolContext:
    """Somebody with every right, on the day of the examples, over their rows."""
    monkeypatch.setattr(timezone, "now", lambda: datetime(2026, 3, 11, 12, tzinfo=UTC))
    steel, aluminium = (models.Material.objects.create(name=name, density=density) for name, density in MATERIALS)
    suppliers = [models.Supplier.objects.create(name=name, country=where, rating=4) for name, where in SUPPLIERS]
    parts = [
        models.Part.objects.create(
            number=number,
            name=name,
            material=steel if number < "P-3" else aluminium,
            supplier=None if supplier is None else suppliers[supplier],
            price=price,
            status=status,
            released_on=released,
        )
        for number, name, supplier, price, status, released in PARTS
    ]
    for number, customer, status, ordered, due, lines in ORDERS:
        moment = datetime.fromisoformat(f"{ordered}T09:30+00:00")
        order = models.Order.objects.create(
            number=number, customer=customer, status=status, ordered_at=moment, due_on=due
        )
        for part, quantity, price in lines:
            order.lines.create(part=parts[part], quantity=quantity, unit_price=price)
    bindings = describe(run(block("expose(Supplier, fields"))).bindings
    return context_of(Desk(bindings, Actor(user_id="1", user=get_user_model()(pk=1, is_superuser=True))))


MATERIALS = [("Steel", 7.8), ("Aluminium", 2.7)]
SUPPLIERS = [("Acme", "DE"), ("Bolts & Co", "FR")]
PARTS = [
    ("P-1", "Bolt", 0, "2.20", "released", "2026-01-10"),
    ("P-2", "Bearing", 0, "12.50", "released", "2026-02-20"),
    ("P-3", "Housing", None, "80.00", "draft", None),
    ("P-4", "Spacer", 1, "1.10", "obsolete", "2025-11-30"),
]
ORDERS = [
    ("SO-1", "Miller", "open", "2026-01-05", "2026-01-20", [(0, 100, "2.20"), (1, 4, "12.50")]),
    ("SO-2", "Miller", "shipped", "2026-02-03", "2026-02-10", [(1, 10, "12.00")]),
    ("SO-3", "Jones", "open", "2026-03-02", "2026-03-20", [(2, 2, "80.00"), (0, 50, "2.10")]),
    ("SO-4", "Jones", "cancelled", "2026-03-09", "2026-03-12", [(3, 5, "1.10")]),
]


def test_each_call_gives_the_rows_on_the_page(asking: ToolContext) -> None:
    tools, count = {"query": query, "aggregate": aggregate}, 0
    with timezone.override("UTC"):
        for tool, arguments, rows in examples():
            assert call(tools[tool], arguments, asking)["data"] == rows, arguments
            assert rows, arguments
            count += 1
    assert count > 30


def test_the_language_is_complete() -> None:
    """Every lookup, function, part of dates and argument is named on the page, and has an example where it matters."""
    table = "\n".join(re.findall(r"(?m)^\|.*$", PAGE))
    assert not [lookup for lookup in LOOKUPS if f"`{lookup}`" not in table]
    assert not [
        name
        for name in (*get_args(AggregateFunction), "rank", "share", "change", "running")
        if f"`{name}(" not in table
    ]
    assert not [part for part in get_args(DatePart) if f"`{part}`" not in PAGE]
    calls = [(tool, json.dumps(arguments)) for tool, arguments, _ in examples()]
    for tool in (query, aggregate):
        asked = " ".join(text for name, text in calls if name == tool.definition.name)
        unshown = {"offset"}  # pages are told, not shown
        assert not [
            name
            for name in tool.definition.input_schema["properties"]
            if name not in unshown and f'"{name}"' not in asked
        ]


def test_the_caps_are_those_that_hold() -> None:
    filters, limits = FilterLimits(), DEFAULT_LIMITS
    caps = {
        "relations one below the other": f"{limits.depth}",
        "fields, relations": f"{limits.fields}, {limits.relations}",
        "conditions, levels": f"{filters.conditions}, {filters.depth}; {filters.list_length}",
        "rows of a nested list": f"{limits.list_rows}; {limits.nested_rows:,}",
        "groups and measures": f"{MAX_GROUPS}, {MAX_MEASURES}",
        "a formula": f"{MAX_TEXT}, {MAX_TOKENS}, {MAX_DEPTH}; {MAX_DIGITS}",
        "looks behind relations": f"{limits.subselects}",
        "values that a full page": f"{limits.values:,}",
        "years that `plus`": f"{MAX_DAYS // 365}",
        "groups of an aggregate with": f"{MAX_FOUND:,}",
        "a result": f"{MAX_BYTES:,} bytes",
    }
    for what, most in caps.items():
        (row,) = re.findall(rf"(?m)^\| {what}.*\| (.*) \|$", PAGE)
        assert row.startswith(most), what


def test_every_block_is_tested() -> None:
    assert len(BLOCKS) == 8


def test_the_table_names_every_attribute() -> None:
    attributes = [name for name in vars(ModelManager) if not name.startswith("_")]
    assert all(f"| `{name}` |" in PAGE for name in attributes)
