"""Deterministic rows for the shop: every column filled, left null, and odd at least once."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from django.contrib.auth import get_user_model

from testproject.shop import models as shop

ODD_NAMES = ("", "Ünïcode ✓", "quote ' and \" and %", "line\nbreak", "\u2028separator", "שלום", "A_b")


def fill_shop(*, seed: int = 7, parts: int = 40) -> dict[str, Any]:
    """Create rows of every model; returns the users ``staff`` and ``plain``."""
    random_ = random.Random(seed)  # noqa: S311 - reproducible rows, no secret
    users = get_user_model()
    staff = users.objects.create_superuser("staff", "staff@example.com", "x")
    plain = users.objects.create_user("plain")
    tags = [shop.Tag.objects.create(name=f"tag {number}") for number in range(6)]
    materials = [
        shop.Material.objects.create(name=f"material {number}", density=random_.choice([0.5, 2.7, 7.8]))
        for number in range(5)
    ]
    suppliers = [
        shop.Supplier.objects.create(name=name or "blank", country=random_.choice(["DE", "FR", ""]), rating=rating)
        for name, rating in zip(ODD_NAMES, [None, 1, 2, 3, None, 5, 3], strict=True)
    ]
    rows = [_part(random_, number, materials, suppliers) for number in range(parts)]
    for part in rows:
        part.tags.set(random_.sample(tags, random_.randint(0, 3)))
        for _ in range(random_.randint(0, 2)):
            part.remarks.create(text=random_.choice(ODD_NAMES))
        if random_.random() < 0.5:
            shop.Specification.objects.create(part=part, text="spec", tolerance=random_.choice([None, Decimal("0.01")]))
        for _ in range(random_.randint(0, 2)):
            shop.Document.objects.create(
                id=uuid.UUID(int=random_.getrandbits(128), version=4),
                title=random_.choice(ODD_NAMES),
                confidential=random_.random() < 0.4,
                part=random_.choice([part, None]),
            )
        if random_.random() < 0.6:
            shop.Placement.objects.create(shelf=f"S{random_.randint(1, 4)}", part=part, quantity=random_.randint(0, 9))
        shop.Announcement.objects.create(
            title="news", published_on=date(2024, 1, 1), about=random_.choice([part, None])
        )
    _projects_and_orders(random_, rows, [staff, plain, None])
    boss = None
    for number in range(8):
        boss = shop.Employee.objects.create(
            name=f"employee {number}",
            salary=Decimal(1000 * number),
            shift_start=random_.choice([None, time(6, 30)]),
            boss=random_.choice([boss, None]),
        )
    return {"staff": staff, "plain": plain}


def _part(random_: random.Random, number: int, materials: list[Any], suppliers: list[Any]) -> shop.Part:
    return shop.Part.objects.create(
        number=f"P-{number:03}",
        name=random_.choice(ODD_NAMES),
        status=random_.choice(["draft", "released", "obsolete"]),
        price=random_.choice([None, Decimal("0.99"), Decimal("1.00"), Decimal("12.50")]),
        weight=random_.choice([None, 0.5, 2.0]),
        purchased=random_.random() < 0.5,
        attributes=random_.choice([{}, {"colour": "red", "sizes": [1, 2]}]),
        lead_time=random_.choice([None, timedelta(days=2, seconds=3)]),
        drawing=random_.choice([None, b"\x00\xff"]),
        released_on=random_.choice([None, date(2024, 2, 29), date(2023, 1, 1)]),
        material=random_.choice(materials),
        supplier=random_.choice([*suppliers, None]),
    )


def _projects_and_orders(random_: random.Random, parts: list[shop.Part], owners: list[Any]) -> None:
    for number in range(6):
        project = shop.Project.objects.create(code=f"proj-{number}", name=f"project {number}")
        for position in range(random_.randint(0, 8)):
            part = random_.choice(parts[:10])  # some parts twice in one project
            shop.BomLine.objects.create(project=project, part=part, position=position, quantity=random_.randint(1, 5))
    for number in range(15):
        order = shop.Order.objects.create(
            number=f"O-{number}",
            customer=random_.choice(["Acme", "Öl AG"]),
            status=random_.choice(["open", "shipped"]),
            ordered_at=datetime(2024, 1, 1 + number, 23, 30, tzinfo=UTC),
            owner=random_.choice(owners),
        )
        for _ in range(random_.randint(0, 4)):
            shop.OrderLine.objects.create(
                order=order, part=random_.choice(parts), quantity=random_.randint(1, 9), unit_price=Decimal("3.50")
            )
