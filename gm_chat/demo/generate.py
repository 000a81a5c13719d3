"""The demo's rows, made from a seed: the same on every machine and Python version, without Django or the network.

Only ``Random.random()`` is used: it is the one method whose sequence Python promises to keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gm_chat.demo import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gm_chat.demo.catalogue import MaterialRow, PartKind

__all__ = ["DATA_VERSION", "TODAY", "Row", "Table", "generate"]

T = TypeVar("T")
Row = dict[str, Any]

DATA_VERSION: Final = 2
"""Counts changes of the rows or of the models: a database of another version is built anew."""

SEED: Final = 20_260_630
TODAY: Final = date(2026, 6, 30)
"""The day on which the demo's world stands still."""

PARTS: Final = 2400
CUSTOMERS: Final = 180
PROJECTS: Final = 90
ORDERS: Final = 1300


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one model, by its name; foreign keys are given as ``<field>_id``."""

    model: str
    rows: Sequence[Row]


class _Dice:
    """Random choices built on ``random()`` alone."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random  # noqa: S311 - test data, not a secret

    def below(self, end: int) -> int:
        return int(self._random() * end)

    def between(self, low: int, high: int, step: int = 1) -> int:
        return low + step * self.below((high - low) // step + 1)

    def pick(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def chance(self, share: float) -> bool:
        return self._random() < share

    def factor(self, low: float, high: float) -> float:
        return low + (high - low) * self._random()

    def several(self, options: Sequence[T], count: int) -> list[T]:
        """Different options in random order: a partial Fisher-Yates shuffle."""
        pool = list(options)
        for place in range(min(count, len(pool))):
            other = place + self.below(len(pool) - place)
            pool[place], pool[other] = pool[other], pool[place]
        return pool[:count]

    def weighted(self, options: Sequence[tuple[T, int]]) -> T:
        rest = self.below(sum(weight for _, weight in options))
        for option, weight in options:
            rest -= weight
            if rest < 0:
                return option
        raise AssertionError("the weights are positive")


def generate(seed: int = SEED) -> list[Table]:
    """Make all tables, in an order in which foreign keys point backwards."""
    dice = _Dice(seed)
    materials = _materials()
    suppliers = _suppliers(dice)
    parts = list(_parts(dice, materials))
    customers = _customers(dice)
    projects = _projects(dice, customers)
    assemblies = list(_assemblies(dice, projects))
    orders, lines = _orders(dice, customers, parts)
    warehouses = [
        {"id": number, "code": code, "name": name, "city": city}
        for number, (code, name, city) in enumerate(catalogue.WAREHOUSES, 1)
    ]
    return [
        Table("Material", materials),
        Table("Supplier", suppliers),
        Table("Part", parts),
        Table("Offer", list(_offers(dice, suppliers, parts))),
        Table("Customer", customers),
        Table("Project", projects),
        Table("Assembly", assemblies),
        Table("BomLine", list(_bom_lines(dice, assemblies, parts))),
        Table("Warehouse", warehouses),
        Table("StockLevel", list(_stock_levels(dice, warehouses, parts))),
        Table("Order", orders),
        Table("OrderLine", lines),
    ]


def _money(value: float) -> Decimal:
    return Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP)


def _materials() -> list[Row]:
    return [
        {
            "id": number,
            "name": row.name,
            "standard": row.standard,
            "category": row.category,
            "density": Decimal(row.density),
            "tensile_strength": row.strength,
        }
        for number, row in enumerate(catalogue.MATERIALS, 1)
    ]


def _suppliers(dice: _Dice) -> list[Row]:
    rows: list[Row] = []
    for country, count in catalogue.COUNTRIES:
        names = [f"{surname} {trade}" for surname in catalogue.SURNAMES[country] for trade in catalogue.TRADES]
        rows += [
            {
                "id": len(rows) + number,
                "name": f"{name} {catalogue.LEGAL_FORMS[country]}",
                "city": dice.pick(catalogue.CITIES[country]),
                "country": country,
                "lead_time_days": dice.between(5, 75),
                "rating": Decimal(dice.between(25, 50)) / 10,
            }
            for number, name in enumerate(dice.several(names, count), 1)
        ]
    return rows


def _parts(dice: _Dice, materials: Sequence[Row]) -> Iterator[Row]:
    kinds = [(kind, kind.share) for kind in catalogue.PART_KINDS]
    by_code = {row.standard: (index, row) for index, row in enumerate(catalogue.MATERIALS)}
    for number in range(1, PARTS + 1):
        kind = dice.weighted(kinds)
        index, material = by_code[dice.pick(kind.materials)]
        first, second = (dice.between(*size) for size in kind.sizes)
        weight = _weight(kind, material, first, second)
        base, per_kg = kind.price
        yield {
            "id": number,
            "number": f"{kind.prefix}-{10000 + number}",
            "name": kind.pattern.format(first, second, first + second),
            "category": kind.category,
            "material_id": materials[index]["id"],
            "status": dice.weighted((("released", 82), ("draft", 11), ("obsolete", 7))),
            "revision": "ABCDEF"[dice.below(6)],
            "weight": weight,
            "price": _money((base + per_kg * float(weight)) * dice.factor(0.9, 1.25)),
        }


def _weight(kind: PartKind, material: MaterialRow, first: int, second: int) -> Decimal:
    """Return kg, at least a gram, from a volume in mm3 and a density in g/cm3."""
    kilograms = Decimal(kind.volume(first, second) * float(material.density) / 1e6)
    return max(kilograms.quantize(Decimal("0.001")), Decimal("0.001"))


def _offers(dice: _Dice, suppliers: Sequence[Row], parts: Sequence[Row]) -> Iterator[Row]:
    number = 0
    for part in parts:
        for supplier in dice.several(suppliers, dice.weighted(((0, 10), (1, 42), (2, 34), (3, 14)))):
            number += 1
            yield {
                "id": number,
                "supplier_id": supplier["id"],
                "part_id": part["id"],
                "purchase_price": max(_money(float(part["price"]) * dice.factor(0.48, 0.81)), Decimal("0.01")),
                "minimum_quantity": dice.pick((1, 1, 5, 10, 25, 50, 100)),
                "valid_until": TODAY + timedelta(days=dice.between(-60, 540)),
            }


def _customers(dice: _Dice) -> list[Row]:
    rows: list[Row] = []
    taken: set[str] = set()
    countries = catalogue.COUNTRIES
    while len(rows) < CUSTOMERS:
        if len(rows) < len(catalogue.FIRST_CUSTOMERS):
            name, city, country, industry = catalogue.FIRST_CUSTOMERS[len(rows)]
        else:
            country = dice.weighted(countries)
            industry, business = dice.pick(catalogue.INDUSTRIES)
            city = dice.pick(catalogue.CITIES[country])
            owner = dice.pick((*catalogue.SURNAMES[country], city))
            name = f"{owner} {business} {catalogue.LEGAL_FORMS[country]}"
        if name not in taken:
            taken.add(name)
            since = TODAY - timedelta(days=dice.between(900, 6500))
            row = {"id": len(rows) + 1, "name": name, "city": city, "country": country}
            rows.append(row | {"industry": industry, "since": since})
    return rows


def _projects(dice: _Dice, customers: Sequence[Row]) -> list[Row]:
    names = [f"{codename} {machine}" for machine in catalogue.MACHINES for codename in catalogue.CODENAMES]
    rows: list[Row] = []
    for number, name in enumerate(dice.several(names, PROJECTS), 1):
        starts_on = TODAY - timedelta(days=dice.between(-120, 800))
        due_on = starts_on + timedelta(days=dice.between(150, 480))
        running = dice.pick(("active", "active", "on_hold"))
        status = "planned" if starts_on > TODAY else "completed" if due_on < TODAY else running
        rows.append(
            {
                "id": number,
                "code": f"P-{starts_on.year}-{number:03d}",
                "name": name,
                "customer_id": customers[dice.below(40 if dice.chance(0.6) else len(customers))]["id"],
                "status": status,
                "confidential": dice.chance(0.15),
                "starts_on": starts_on,
                "due_on": due_on,
            }
        )
    return rows


def _assemblies(dice: _Dice, projects: Sequence[Row]) -> Iterator[Row]:
    number = 0
    for project in projects:
        for place, module in enumerate(dice.several(catalogue.MODULES, dice.between(4, 8)), 1):
            number += 1
            code = f"A-{project['code'].removeprefix('P-')}-{place:02d}"
            yield {"id": number, "number": code, "name": module, "project_id": project["id"]}


def _bom_lines(dice: _Dice, assemblies: Sequence[Row], parts: Sequence[Row]) -> Iterator[Row]:
    in_use = [part for part in parts if part["status"] != "draft"]
    number = 0
    for assembly in assemblies:
        for place, part in enumerate(dice.several(in_use, dice.between(5, 13)), 1):
            number += 1
            many = part["category"] in {"fastener", "seal", "spring"}
            yield {
                "id": number,
                "assembly_id": assembly["id"],
                "part_id": part["id"],
                "position": place * 10,
                "quantity": dice.between(4, 48, 4) if many else dice.between(1, 6),
            }


def _stock_levels(dice: _Dice, warehouses: Sequence[Row], parts: Sequence[Row]) -> Iterator[Row]:
    number = 0
    for part in parts:
        for warehouse in dice.several(warehouses, dice.weighted(((0, 12), (1, 58), (2, 24), (3, 6)))):
            number += 1
            reorder = dice.pick((0, 2, 5, 10, 20, 50))
            yield {
                "id": number,
                "warehouse_id": warehouse["id"],
                "part_id": part["id"],
                "quantity": dice.between(0, 30 + 6 * reorder),
                "reorder_level": reorder,
                "shelf": f"{'ABCDEFGH'[dice.below(8)]}-{dice.between(1, 24):02d}-{dice.between(1, 6)}",
            }


def _orders(dice: _Dice, customers: Sequence[Row], parts: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    released = [part for part in parts if part["status"] == "released"]
    orders: list[Row] = []
    lines: list[Row] = []
    for number in range(1, ORDERS + 1):
        ordered_on = TODAY - timedelta(days=(ORDERS - number) * 900 // ORDERS + dice.below(3))
        due_on = ordered_on + timedelta(days=dice.between(7, 90))
        late = (("open", 3), ("shipped", 12), ("invoiced", 80), ("cancelled", 5))
        status = dice.weighted(late if due_on < TODAY else (("open", 75), ("shipped", 20), ("cancelled", 5)))
        total = Decimal(0)
        for part in dice.several(released, dice.weighted(((1, 18), (2, 25), (3, 25), (4, 20), (5, 12)))):
            quantity = dice.pick((1, 1, 2, 2, 4, 5, 10, 20))
            unit_price = _money(float(part["price"]) * dice.pick((1.0, 1.0, 0.95, 0.9)))
            total += quantity * unit_price
            line = {"id": len(lines) + 1, "order_id": number, "part_id": part["id"]}
            lines.append(line | {"quantity": quantity, "unit_price": unit_price})
        orders.append(
            {
                "id": number,
                "number": f"SO-{ordered_on:%y}{number:04d}",
                "customer_id": customers[0 if dice.chance(0.02) else dice.below(len(customers))]["id"],
                "status": status,
                "ordered_on": ordered_on,
                "due_on": due_on,
                "total": total,
            }
        )
    return orders, lines
