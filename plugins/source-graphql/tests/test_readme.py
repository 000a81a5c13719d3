"""The page says what is so: its schema and its settings work together, its tables are complete."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from desks import Desk, actor_of
from gm_chat_source_graphql import GraphQLSource, ManagerOptions, Options
from gm_chat_source_graphql.shapes import _FILTER, _ORDER, _ROWS
from testproject import shop
from testproject.shop import models
from testproject.shop_rows import fill_shop

if TYPE_CHECKING:
    import pytest

PAGE = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS: list[str] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_works(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    schema, settings = BLOCKS
    module = ModuleType("shop.schema")
    for name, value in {"shop": shop, "shop.models": models, "shop.schema": module}.items():
        monkeypatch.setitem(sys.modules, name, value)
    monkeypatch.setattr(shop, "schema", module, raising=False)
    exec(compile(schema, "README.md", "exec"), module.__dict__)  # noqa: S102 - it is our own page
    found: dict[str, Any] = {}
    exec(compile(settings, "README.md", "exec"), found)  # noqa: S102
    users = fill_shop(parts=2)
    source = GraphQLSource(Options(**found["GM_CHAT"]["plugins"]["graphql"]))
    staff, plain = Desk(source, actor_of(users["staff"])), Desk(source, actor_of(users["plain"]))
    (info,) = staff.view()
    assert (info.name, info.description, info.aliases) == ("SupplierManager", "Who sells to us.", ("vendor",))
    hidden = models.Supplier.objects.filter(rating=1).count()
    everything = staff.ask("SupplierManager", ["name"], filters={"rating__gte": 1}, order_by=["name"]).total_count
    assert plain.ask("SupplierManager", ["name"], filters={"rating__gte": 1}).total_count == everything - hidden
    assert hidden
    assert found["GM_CHAT"]["allowed_mutations"] == [item.name for item in info.mutations]
    row = models.Supplier.objects.filter(rating=2)[0]
    assert staff.change("updateSupplier", id=str(row.pk), rating=4)["rating"] == 4


def test_the_tables_name_everything() -> None:
    assert all(f"| `{field.name}` |" in PAGE for field in dataclasses.fields(Options))
    assert all(f"`{field.name}`" in PAGE for field in dataclasses.fields(ManagerOptions))
    words = PAGE.lower()
    assert all(f"`{name}`" in words for name in (*_ROWS, *_FILTER, "order", "ordering", "orderby", "sort"))
    assert set(_ORDER) - {"sortby"} == {"order", "ordering", "orderby", "sort"}
