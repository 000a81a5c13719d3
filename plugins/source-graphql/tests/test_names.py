"""Bindings made by other plugins: names of their own, and values that the schema gives as objects."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from gm_chat_source_graphql.describe import describe
from gm_chat_source_graphql.document import Document
from gm_chat_source_graphql.options import Options
from gm_chat_source_graphql.rows import Level
from gm_chat_source_graphql.values import Scalar
from graphql import build_schema

from gm_chat.managers.api import QueryPlan, RelationSelection, Selection

SCHEMA = build_schema("""
    type Query { partList: [Part!]! }
    type Part { id: ID!, netPrice: Price, madeOf: [Part!]! }
    type Price { value: Float, unit: String }
""")


@dataclass(frozen=True, slots=True)
class Price(Scalar):
    def parse(self, raw: Any) -> Any:
        return None if raw is None else f"{raw['value']} {raw['unit']}"


def test_values_come_under_the_names_of_the_binding() -> None:
    binding = describe(SCHEMA, Options(schema="a.b", managers={"partList": {}}))["PartManager"]  # type: ignore[dict-item]
    binding = replace(
        binding,
        fields={"net_price": Price("string", "Price", selection=" { value unit }")},
        relations={"made_of": binding.relations["madeOf"]},
        names={"net_price": "netPrice", "made_of": "madeOf"},
    )
    selection = Selection(("net_price",), (RelationSelection("made_of", Selection(("net_price",))),))
    level = Level.of(QueryPlan("PartManager", selection), {"PartManager": binding})
    price = "net_price: netPrice { value unit }"
    assert level.write(Document(), 1, 10) == f"{{ id {price} made_of: madeOf {{ id {price} }} }}"
    inner = {"id": "2", "net_price": None}
    row = level.read({"id": "1", "net_price": {"value": 2.5, "unit": "EUR"}, "made_of": [inner]})
    assert row is not None
    assert row.values == {"net_price": "2.5 EUR"}
    assert [item.values for item in row.lists["made_of"].rows] == [{"net_price": None}]
    assert binding.nullable("net_price")
