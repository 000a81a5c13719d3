"""What the chat may see of the demo's data, and the one rule about rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from django.core.exceptions import ValidationError

from gm_chat.demo import models
from gm_chat.managers import ModelManager, computed, mutation
from gm_chat.plugin import Actor

if TYPE_CHECKING:
    from decimal import Decimal

    from django.db.models import QuerySet

__all__ = [
    "AssemblyManager",
    "BomLineManager",
    "CustomerManager",
    "MaterialManager",
    "OfferManager",
    "OrderLineManager",
    "OrderManager",
    "PartManager",
    "ProjectManager",
    "StockLevelManager",
    "SupplierManager",
    "WarehouseManager",
]


def _without_confidential(queryset: QuerySet[Any], actor: Actor, flag: str) -> QuerySet[Any]:
    if actor.user is not None and actor.user.has_perm("workshop.view_confidential_project"):
        return queryset
    return queryset.filter(**{flag: False})


class MaterialManager(ModelManager):
    """Raw materials that parts are made of: alloys, plastics and elastomers with density and strength."""

    chat_exposed = True
    model = models.Material
    fields = ("id", "name", "category", "density", "tensile_strength", "standard", "parts")
    aliases = ("alloy", "raw material")


class SupplierManager(ModelManager):
    """Companies that we buy parts from, with city, country, lead time and rating."""

    chat_exposed = True
    model = models.Supplier
    fields = ("id", "name", "city", "country", "lead_time_days", "rating", "offers")
    aliases = ("vendor", "manufacturer")


class PartManager(ModelManager):
    """Designed or purchased components with number, name, material, weight and list price."""

    chat_exposed = True
    model = models.Part
    fields = (
        "id", "number", "name", "category", "material", "status", "revision", "weight", "price",
        "bom_lines", "stock_levels", "offers", "order_lines",
    )  # fmt: skip
    aliases = ("component", "item", "article")


class OfferManager(ModelManager):
    """Suppliers' offers for parts: purchase price, minimum quantity and how long the offer holds."""

    chat_exposed = True
    model = models.Offer
    fields = ("id", "supplier", "part", "purchase_price", "minimum_quantity", "valid_until")
    aliases = ("purchase price", "quote", "quotation")


class CustomerManager(ModelManager):
    """Companies that we sell machines and spare parts to."""

    chat_exposed = True
    model = models.Customer
    fields = ("id", "name", "city", "country", "industry", "since", "projects", "orders")
    aliases = ("client", "buyer")


class ProjectManager(ModelManager):
    """Machines designed and built for a customer, with status and delivery date. A project has assemblies."""

    chat_exposed = True
    model = models.Project
    fields = ("id", "code", "name", "customer", "status", "confidential", "starts_on", "due_on", "assemblies")
    aliases = ("machine",)

    @classmethod
    def visible_to(cls, queryset: QuerySet[Any], actor: Actor) -> QuerySet[Any]:
        """Confidential projects are for those who hold the permission."""
        return _without_confidential(queryset, actor, "confidential")


class AssemblyManager(ModelManager):
    """Modules of a project's machine, such as a conveyor or a drive unit. An assembly has a bill of material."""

    chat_exposed = True
    model = models.Assembly
    fields = ("id", "number", "name", "project", "bom_lines")
    aliases = ("module", "subassembly")

    @classmethod
    def visible_to(cls, queryset: QuerySet[Any], actor: Actor) -> QuerySet[Any]:
        """The modules of a confidential project are as confidential as the project."""
        return _without_confidential(queryset, actor, "project__confidential")


class BomLineManager(ModelManager):
    """Lines of the bills of material: which part an assembly needs, how often, and at which position."""

    chat_exposed = True
    model = models.BomLine
    fields = ("id", "assembly", "part", "position", "quantity")
    aliases = ("bill of material", "parts list")

    @classmethod
    def visible_to(cls, queryset: QuerySet[Any], actor: Actor) -> QuerySet[Any]:
        """The bill of a confidential project is as confidential as the project."""
        return _without_confidential(queryset, actor, "assembly__project__confidential")


class WarehouseManager(ModelManager):
    """Places where parts are stored."""

    chat_exposed = True
    model = models.Warehouse
    fields = ("id", "code", "name", "city", "stock_levels")
    aliases = ("store", "depot")


class StockLevelManager(ModelManager):
    """Stock: how many pieces of a part lie in a warehouse, and when to order again."""

    chat_exposed = True
    model = models.StockLevel
    fields = ("id", "warehouse", "part", "quantity", "reorder_level", "shelf")
    aliases = ("stock", "inventory")

    @mutation
    def transfer_stock(
        level: models.StockLevel, _actor: Actor, pieces: Annotated[int, "how many to move"], to: models.Warehouse
    ) -> dict[str, Any]:
        """Move pieces of a stock level's part to another warehouse, where the part has a shelf already."""
        if not 0 < pieces <= level.quantity:
            raise ValidationError({"pieces": f"There are {level.quantity} pieces to move."})
        there = models.StockLevel._default_manager.select_for_update().filter(warehouse=to, part=level.part).first()
        if there is None or there == level:
            raise ValidationError({"to": f"{to} has no other shelf for {level.part}."})
        level.quantity -= pieces
        there.quantity += pieces
        level.save(update_fields=["quantity"])
        there.save(update_fields=["quantity"])
        return {"left": level.quantity, "there": there.quantity, "shelf": there.shelf}


class OrderManager(ModelManager):
    """Customers' orders of spare parts with status, dates and total. Open orders still have to be delivered."""

    chat_exposed = True
    model = models.Order
    fields = ("id", "number", "customer", "status", "ordered_on", "due_on", "total", "lines")
    aliases = ("sales order", "purchase")


class OrderLineManager(ModelManager):
    """Lines of the orders: part, quantity and agreed price per piece."""

    chat_exposed = True
    model = models.OrderLine
    fields = ("id", "order", "part", "quantity", "unit_price")
    aliases = ("order item", "order position")

    @computed("decimal", needs=["quantity", "unit_price"], description="quantity times unit price in EUR")
    @staticmethod
    def amount(line: models.OrderLine, _actor: Actor) -> Decimal:
        """Multiply quantity and price."""
        return line.quantity * line.unit_price
