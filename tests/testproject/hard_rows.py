"""Rows that queries and aggregates could get wrong: texts that collations confuse, twins, gaps, clocks that change."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from testproject.shop import models as shop

__all__ = ["add_hard_rows"]

NAMES = ("bolt", "Bolt", "BOLT ", "bölt", "Straße", "strasse", "É", "e\u0301", "🔩", "z", "Z", "10%", "a_c", "abc", "")
MOMENTS = (
    datetime(2024, 3, 31, 0, 59, 59, tzinfo=UTC),  # in Berlin the second before the clocks go forward
    datetime(2024, 3, 31, 1, 0, tzinfo=UTC),
    datetime(2024, 10, 27, 0, 30, tzinfo=UTC),  # half past two, summer time
    datetime(2024, 10, 27, 1, 30, tzinfo=UTC),  # half past two again
    datetime(2023, 12, 31, 23, 30, tzinfo=UTC),  # another day, week, month, quarter and year in Berlin
    datetime(2024, 2, 29, 22, 59, 59, 999_999, tzinfo=UTC),
    datetime(2024, 12, 30, 0, 0, tzinfo=UTC),  # a Monday: the first week of 2025
)


def add_hard_rows() -> None:
    """Add them to the rows of the shop."""
    materials, suppliers = list(shop.Material.objects.all()), list(shop.Supplier.objects.all())
    suppliers += [shop.Supplier.objects.create(name=name, country=name[:2], rating=0) for name in NAMES[:6]]
    parts = []
    for number, name in enumerate(NAMES):
        parts.append(
            shop.Part.objects.create(
                number=f"H-{number:03}",
                name=name,
                description=NAMES[-number],
                price=[None, Decimal(0), Decimal("0.10"), Decimal("-3.33")][number % 4],
                weight=[0.1, 0.2, None, 1e15, -0.0][number % 5],
                lead_time=[None, timedelta(0), timedelta(microseconds=-1)][number % 3],
                released_on=[None, date(2024, 2, 29), date(2024, 12, 30)][number % 3],
                material=materials[number % len(materials)],
                supplier=[None, *suppliers][number % (len(suppliers) + 1)],
            )
        )
    for number, moment in enumerate(MOMENTS * 2):
        order = shop.Order.objects.create(
            number=f"H-{number}",
            customer=NAMES[number],
            status=["open", "shipped", "cancelled"][number % 3],
            ordered_at=moment,
            due_on=[None, moment.date()][number % 2],
        )
        for position in range(number % 3):
            shop.OrderLine.objects.create(
                order=order, part=parts[position], quantity=0 if position else 7, unit_price=Decimal("0.05")
            )
    for material in materials:
        shop.Note.objects.create(text="on a material", subject=material)
    for title in NAMES[:8]:
        shop.Document.objects.create(title=title, part=parts[0])
