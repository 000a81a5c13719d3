"""What every source over the shop's tables must answer alike: manager, fields, arguments of the tool ``query``."""

from __future__ import annotations

from typing import Any

QUESTIONS: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("PartManager", ["*"], {}),
    ("PartManager", ["number", "status"], {"filters": {"status": "released"}, "limit": 3}),
    ("PartManager", ["number"], {"filters": {"status": "draft"}}),
    (
        "PartManager",
        ["number", "price"],
        {"filters": {"price__gte": "0.99", "purchased": True}, "limit": 4, "offset": 2},
    ),
    ("PartManager", ["number"], {"filters": {"name__icontains": "quote"}}),
    ("PartManager", ["number"], {"filters": {"name__icontains": ""}, "limit": 2}),
    ("PartManager", ["number"], {"filters": {"number__in": []}}),
    ("PartManager", ["number"], {"filters": {"number__in": ["P-001", "P-002", "P-003", "P-999"]}}),
    ("PartManager", ["number", "price"], {"order_by": ["-price"], "limit": 7, "offset": 3}),
    ("PartManager", ["number", "weight"], {"order_by": ["weight", "-number"]}),
    ("PartManager", ["number"], {"order_by": ["supplier__rating", "number"]}),
    ("PartManager", ["number", "released_on"], {"filters": {"released_on__year": 2024}}),
    ("PartManager", ["number"], {"filters": {"released_on__isnull": True, "weight__isnull": False}}),
    ("PartManager", ["number"], {"filters": {"or": [{"price": None}, {"name__startswith": "A"}]}}),
    ("PartManager", ["number"], {"filters": {"not": {"supplier__country": "DE"}}}),
    ("PartManager", ["number", "supplier__name"], {"filters": {"supplier": None}}),
    ("PartManager", ["number", {"supplier": ["name", "rating"]}, "material__name"], {"limit": 20}),
    ("PartManager", ["number"], {"filters": {"supplier__rating__lt": 2}}),
    ("PartManager", ["number"], {"filters": {"tags__name__in": ["tag 0", "tag 5"]}}),
    ("SupplierManager", ["name", "rating"], {"order_by": ["-rating", "name"]}),
    ("SupplierManager", ["name"], {"filters": {"parts__price__gt": "1"}}),
    ("SupplierManager", ["name", {"parts": ["number", "status", {"material": ["name"]}]}], {}),
    ("MaterialManager", ["name", {"parts": ["number", "supplier__name"]}], {"limit": 2, "offset": 1}),
    ("MaterialManager", ["*"], {"offset": 100}),
    ("MaterialManager", ["name"], {"filters": {"density__range": [1, 5]}, "order_by": "-name"}),
    ("TagManager", ["name"], {"filters": {"parts": None}}),
    ("PartManager", ["number"], {"filters": {"released_on__weekday": "Thursday", "released_on__quarter__in": [1, 2]}}),
    ("PartManager", ["number"], {"filters": {"created_at__date__gte": "2024-01-01", "created_at__year__gt": 2000}}),
    ("PartManager", ["number"], {"filters": {"weight__lt": {"field": "material__density"}}}),
    ("PartManager", ["number"], {"filters": {"released_on__lt": {"field": "created_at", "plus": "-1 month"}}}),
    ("PartManager", ["number"], {"filters": {"created_at__gt": {"field": "released_on", "plus": "2 years"}}}),
    ("PartManager", ["number"], {"filters": {"created_at__month": {"field": "released_on__month"}}}),
    ("MaterialManager", ["name"], {"filters": {"parts__weight__gt": {"outer": "density"}}}),
]
