"""Who sees what is written once: staff sees every row, others no drafts and no suppliers that are rated badly."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db import models
from general_manager import (
    CalculationInterface,
    DatabaseInterface,
    ExistingModelInterface,
    GeneralManager,
    Input,
    graph_ql_property,
)
from general_manager.measurement import Measurement, MeasurementField
from general_manager.permission import (
    AdditiveManagerPermission,
    BasePermission,
    OverrideManagerPermission,
    register_permission,
)
from general_manager.rule import Rule


@register_permission("noDraft", permission_filter=lambda user, config: {"exclude": {"status": "draft"}})
def _no_draft(instance: Any, user: Any, config: list[str]) -> bool:
    return instance.status != "draft"


@register_permission("ratedWell", permission_filter=lambda user, config: {"filter": {"rating__gte": 2}})
def _rated_well(instance: Any, user: Any, config: list[str]) -> bool:
    return instance.rating is not None and instance.rating >= 2


@register_permission("unrated", permission_filter=lambda user, config: {"filter": {"rating__isnull": True}})
def _unrated(instance: Any, user: Any, config: list[str]) -> bool:
    return instance.rating is None


@register_permission("evenId")
def _even_id(instance: Any, user: Any, config: list[str]) -> bool:
    """Nothing that a filter could say."""
    return int(instance.id) % 2 == 0


class Supplier(GeneralManager):
    chat_exposed = True

    class Interface(ExistingModelInterface):
        model = "shop_managers.Supplier"

    class Permission(AdditiveManagerPermission):
        __read__: ClassVar[list[str]] = ["isAdmin", "ratedWell", "unrated"]
        email: ClassVar[dict[str, list[str]]] = {"read": ["isAdmin"]}


class Material(GeneralManager):
    """What parts are made of."""

    chat_exposed = True

    class Interface(ExistingModelInterface):
        model = "shop_managers.Material"


class Tag(GeneralManager):
    chat_exposed = True

    class Interface(ExistingModelInterface):
        model = "shop_managers.Tag"


class Part(GeneralManager):
    """Designed or purchased components."""

    chat_exposed = True

    class Interface(ExistingModelInterface):
        model = "shop_managers.Part"

        class Meta:
            rules: ClassVar[list[Any]] = [Rule(lambda part: part.weight is None or part.weight >= 0)]

    class Permission(AdditiveManagerPermission):
        __read__: ClassVar[list[str]] = ["isAdmin", "noDraft"]
        __create__: ClassVar[list[str]] = ["isAuthenticated"]
        __update__: ClassVar[list[str]] = ["isAuthenticated"]
        __delete__: ClassVar[list[str]] = ["isAdmin"]
        price: ClassVar[dict[str, list[str]]] = {"update": ["isAuthenticated"]}

    @graph_ql_property
    def label(self) -> str:
        """Number and name."""
        return f"{self.number} {self.name}"


class Employee(GeneralManager):
    """People. Which of them somebody may read is not for a filter to say."""

    chat_exposed = True

    class Interface(ExistingModelInterface):
        model = "shop.Employee"

    class Permission(AdditiveManagerPermission):
        __read__: ClassVar[list[str]] = ["isAdmin", "evenId"]
        salary: ClassVar[dict[str, list[str]]] = {"read": ["matches:name:employee 2"]}


class Order(GeneralManager):
    """Customer orders; the owner sees them."""

    chat_exposed = True

    class Interface(ExistingModelInterface):
        model = "shop.Order"

    class Permission(OverrideManagerPermission):
        __read__: ClassVar[list[str]] = ["isAdmin", "relatedUserField:owner"]


class OrderLine(GeneralManager):
    """Positions, seen by those who see the order."""

    chat_exposed = True

    class Interface(ExistingModelInterface):
        model = "shop.OrderLine"

    class Permission(AdditiveManagerPermission):
        __based_on__ = "order"


class Project(GeneralManager):
    """Judged by code."""

    chat_exposed = True

    class Interface(ExistingModelInterface):
        model = "shop.Project"

    class Permission(BasePermission):
        def check_permission(self, action: str, attribute: str) -> bool:
            return bool(self.instance.code != "proj-1")

        def check_operation_permission(self, action: str) -> bool:
            return True

        def can_read_instance(self) -> bool:
            return True

        def describe_operation_permissions(self, action: str) -> tuple[str, ...]:
            return ()

        def get_permission_filter(self) -> list[Any]:
            return []


class Site(GeneralManager):
    """Where we build."""

    chat_exposed = True

    class Interface(DatabaseInterface):
        name = models.CharField(max_length=40, unique=True)
        area = MeasurementField(base_unit="m**2", null=True, blank=True)
        opened_at = models.DateTimeField(null=True, blank=True)
        facts = models.JSONField(default=dict, blank=True)
        part = models.ForeignKey(
            "shop_managers.Part", on_delete=models.SET_NULL, null=True, blank=True, related_name="sites"
        )

        class Meta:
            use_soft_delete = True

        def clean(self) -> None:
            if self.name == "nowhere":
                raise ValidationError({"name": "There is no such place."})

    class Permission(AdditiveManagerPermission):
        __read__: ClassVar[list[str]] = ["isAuthenticated"]
        __create__: ClassVar[list[str]] = ["isAdmin"]


class Forecast(GeneralManager):
    """What a part will cost, by year; calculated."""

    chat_exposed = True
    part: Part
    year: int

    class Interface(CalculationInterface):
        part = Input(Part, possible_values=Part.all)
        year = Input(int, possible_values=[2025, 2026])

    class Permission(AdditiveManagerPermission):
        __read__: ClassVar[list[str]] = ["isAuthenticated"]
        secret_margin: ClassVar[dict[str, list[str]]] = {"read": ["isAdmin"]}

    @graph_ql_property(filterable=True, sortable=True)
    def total_cost(self) -> float:
        return float(self.part.price or 0) * (self.year - 2024)

    @graph_ql_property
    def mass(self) -> Measurement | None:
        return None if self.part.weight is None else Measurement(str(self.part.weight), "kg")


class Payment(GeneralManager):
    class Interface(ExistingModelInterface):
        model = "shop.Payment"
