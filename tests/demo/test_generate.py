"""The demo's rows: the same everywhere, about 20,000, and whole."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Any

import pytest

from gm_chat.demo.catalogue import MATERIALS, PART_KINDS
from gm_chat.demo.generate import DATA_VERSION, Table, generate


@pytest.fixture(scope="module")
def tables() -> dict[str, Table]:
    return {table.model: table for table in generate()}


def digest(tables: list[Table]) -> str:
    return hashlib.sha256(repr([(table.model, list(table.rows)) for table in tables]).encode()).hexdigest()


def test_the_rows_of_this_version() -> None:
    """Rows changed? Then count up ``DATA_VERSION``, so that old databases are built anew, and put both here."""
    assert (DATA_VERSION, digest(generate())) == (
        2,
        "9c33648d29f79ff6bbbeccc221413c3675f43a5f52a3d914522f9e93a65fd77b",
    )


def test_another_seed_gives_other_rows() -> None:
    assert digest(generate(1)) != digest(generate(2))


def test_the_size(tables: dict[str, Table]) -> None:
    counts = {name: len(table.rows) for name, table in tables.items()}
    assert 19_000 <= sum(counts.values()) <= 21_000
    assert len(counts) == 12
    assert counts["Part"] == 2400
    assert min(counts.values()) >= 5


def test_foreign_keys_point_backwards_at_rows_that_exist(tables: dict[str, Table]) -> None:
    targets = {"material": "Material", "supplier": "Supplier", "part": "Part", "customer": "Customer"}
    targets |= {"project": "Project", "assembly": "Assembly", "warehouse": "Warehouse", "order": "Order"}
    seen: dict[str, set[Any]] = {}
    for table in tables.values():
        for row in table.rows:
            for name, value in row.items():
                if name.endswith("_id"):
                    assert value in seen[targets[name.removesuffix("_id")]]
        seen[table.model] = {row["id"] for row in table.rows}
        assert len(seen[table.model]) == len(table.rows)


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        ("Material", ("name",)),
        ("Supplier", ("name",)),
        ("Customer", ("name",)),
        ("Part", ("number",)),
        ("Project", ("code",)),
        ("Assembly", ("number",)),
        ("Order", ("number",)),
        ("Offer", ("supplier_id", "part_id")),
        ("BomLine", ("assembly_id", "position")),
        ("StockLevel", ("warehouse_id", "part_id")),
    ],
)
def test_what_must_be_unique_is(model: str, fields: tuple[str, ...], tables: dict[str, Table]) -> None:
    values = Counter(tuple(row[field] for field in fields) for row in tables[model].rows)
    assert values.most_common(1)[0][1] == 1


def test_an_order_s_total_is_the_sum_of_its_lines(tables: dict[str, Table]) -> None:
    totals: Counter[int] = Counter()
    for line in tables["OrderLine"].rows:
        totals[line["order_id"]] += line["quantity"] * line["unit_price"]
    assert all(row["total"] == totals[row["id"]] for row in tables["Order"].rows)


def test_the_examples_of_the_documentation_have_answers(tables: dict[str, Table]) -> None:
    customers = {row["id"]: row["name"] for row in tables["Customer"].rows}
    acme = [row for row in tables["Order"].rows if customers[row["customer_id"]].startswith("Acme")]
    assert {row["status"] for row in acme} >= {"open", "invoiced"}
    assert sum(name.startswith("Acme") for name in customers.values()) == 1
    assert any(row["country"] == "Germany" for row in tables["Supplier"].rows)
    assert 0 < sum(row["confidential"] for row in tables["Project"].rows) < len(tables["Project"].rows) / 2


def test_parts_are_believable(tables: dict[str, Table]) -> None:
    for row in tables["Part"].rows:
        assert re.fullmatch(r"[A-Z]{3}-1\d{4}", row["number"])
        assert 0 < row["weight"] < 300
        assert 0 < row["price"] < 3000
    for name in (row["name"] for row in tables["Part"].rows if row["name"].startswith(("Deep groove", "Radial"))):
        inner, outer = map(int, name.split()[-1].split("x"))
        assert inner < outer
    assert {kind.materials[0] in {row.standard for row in MATERIALS} for kind in PART_KINDS} == {True}
