"""The demo's users and what each may see. Plain values: the banner shows them, ``database`` creates them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["PASSWORD", "USERS", "DemoUser"]

PASSWORD: Final = "demo"  # noqa: S105 - printed at start: the data is invented and the server local
"""The password of every demo user."""


@dataclass(frozen=True, slots=True)
class DemoUser:
    """A login: ``sees`` in words, the ``models`` that it may view, and further permissions by code name."""

    name: str
    sees: str
    models: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()
    superuser: bool = False

    @property
    def codenames(self) -> frozenset[str]:
        """All permissions that the user holds in the demo's app."""
        return frozenset({f"view_{model}" for model in self.models} | set(self.permissions))


USERS: Final = (
    DemoUser(
        "engineer",
        "all technical data with suppliers and purchase prices; may change parts, stock and bills of material",
        ("material", "supplier", "part", "offer", "project", "assembly", "bomline", "warehouse", "stocklevel"),
        ("view_confidential_project", "change_part", "change_stocklevel", "add_bomline", "delete_bomline"),
    ),
    DemoUser(
        "sales",
        "customers, orders, parts, stock, open projects; no suppliers, no purchase prices, nothing confidential",
        ("customer", "order", "orderline", "part", "material", "project", "warehouse", "stocklevel"),
        ("change_order",),
    ),
    DemoUser("viewer", "parts, materials and the projects that are not confidential", ("material", "part", "project")),
    DemoUser("admin", "everything, and the pages under /admin/", superuser=True),
)
