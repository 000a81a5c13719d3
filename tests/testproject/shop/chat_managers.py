"""What the chat may see of the shop: one declaration of each kind."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gm_chat.managers import ModelManager, computed, expose
from testproject.shop import models

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.db.models import QuerySet

    from gm_chat.plugin import Actor

MaterialManager = expose(models.Material)
SupplierManager = expose(models.Supplier, description="Companies that sell parts.", aliases=["vendor"])
expose(models.Tag)
expose(models.Note)
expose(models.Specification)
expose(models.Placement)
expose(models.Project, description="Machines that are being built.", aliases=["job"])


class PartManager(ModelManager):
    """Designed or purchased components."""

    chat_exposed = True
    model = models.Part
    fields = "__all__"
    aliases = ("component", "item")
    descriptions = {"number": "unique part number"}

    @computed("decimal", needs=["price"], description="price with tax, in euro")
    def gross(part: models.Part, actor: Actor) -> Decimal | None:
        return None if part.price is None else (part.price * Decimal("1.19")).quantize(Decimal("0.01"))


class BomLineManager(ModelManager):
    """How often a part is used in a project."""

    chat_exposed = True
    model = models.BomLine
    fields = ("id", "position", "quantity", "project", "part")


class OrderManager(ModelManager):
    """Customer orders. Everybody sees the orders they own, staff sees all."""

    chat_exposed = True
    model = models.Order
    aliases = ("purchase",)
    mutations = ("create", "update")

    @classmethod
    def visible_to(cls, queryset: QuerySet[Any], actor: Actor) -> QuerySet[Any]:
        if actor.user is not None and actor.user.is_staff:
            return queryset
        return queryset.filter(owner_id=actor.user_id)


class OrderLineManager(ModelManager):
    """Positions of customer orders."""

    chat_exposed = True
    model = models.OrderLine
    mutations = ()

    @classmethod
    def visible_to(cls, queryset: QuerySet[Any], actor: Actor) -> QuerySet[Any]:
        if actor.user is not None and actor.user.is_staff:
            return queryset
        return queryset.filter(order__owner_id=actor.user_id)


class DocumentManager(ModelManager):
    """Drawings and data sheets; confidential ones are for staff."""

    chat_exposed = True
    model = models.Document

    @classmethod
    def visible_to(cls, queryset: QuerySet[Any], actor: Actor) -> QuerySet[Any]:
        staff = actor.user is not None and actor.user.is_staff
        return queryset if staff else queryset.filter(confidential=False)


class EmployeeManager(ModelManager):
    """People who work here."""

    chat_exposed = True
    model = models.Employee
    fields = ("id", "name", "salary", "shift_start", "boss", "reports")

    @classmethod
    def visible_fields(cls, names: frozenset[str], actor: Actor) -> Collection[str]:
        return names if actor.user is not None and actor.user.is_staff else names - {"salary"}


class AnnouncementManager(ModelManager):
    """News for everybody."""

    chat_exposed = True
    model = models.Announcement
    public = True


class PaymentManager(ModelManager):
    """Hidden: chat_exposed is not set."""

    model = models.Payment
