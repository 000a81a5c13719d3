"""The demo's data model: what a builder of packaging machines keeps about its parts, projects and orders."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

__all__ = [
    "Assembly",
    "BomLine",
    "Customer",
    "Material",
    "Offer",
    "Order",
    "OrderLine",
    "Part",
    "Project",
    "StockLevel",
    "Supplier",
    "Warehouse",
]


class Material(models.Model):
    """A raw material: an alloy, a plastic, an elastomer."""

    class Category(models.TextChoices):
        """Families of materials."""

        ALUMINIUM = "aluminium"
        STEEL = "steel"
        STAINLESS_STEEL = "stainless_steel"
        CAST_IRON = "cast_iron"
        COPPER_ALLOY = "copper_alloy"
        TITANIUM = "titanium"
        PLASTIC = "plastic"
        ELASTOMER = "elastomer"

    name = models.CharField(max_length=60, unique=True, help_text="trade name, e.g. Aluminium 6061-T6")
    standard = models.CharField(max_length=30, help_text="number or code in the standard, e.g. EN AW-6061 or 1.4301")
    category = models.CharField(max_length=20, choices=Category.choices, help_text="family of the material")
    density = models.DecimalField(max_digits=5, decimal_places=2, help_text="density in g/cm3")
    tensile_strength = models.PositiveIntegerField(null=True, blank=True, help_text="tensile strength in MPa")

    def __str__(self) -> str:
        """Show the name."""
        return self.name


class Supplier(models.Model):
    """A company that parts are bought from."""

    name = models.CharField(max_length=80, unique=True)
    city = models.CharField(max_length=40)
    country = models.CharField(max_length=40)
    lead_time_days = models.PositiveIntegerField(help_text="usual time from order to delivery in days")
    rating = models.DecimalField(
        max_digits=2, decimal_places=1, help_text="delivery performance from 1.0 to 5.0 (best)"
    )

    def __str__(self) -> str:
        """Show the name."""
        return self.name


class Part(models.Model):
    """A designed or purchased component."""

    class Category(models.TextChoices):
        """Kinds of parts."""

        FASTENER = "fastener"
        BEARING = "bearing"
        SHAFT = "shaft"
        GEAR = "gear"
        HOUSING = "housing"
        PLATE = "plate"
        PROFILE = "profile"
        BRACKET = "bracket"
        SEAL = "seal"
        SPRING = "spring"
        NOZZLE = "nozzle"
        FITTING = "fitting"
        BUSBAR = "busbar"

    class Status(models.TextChoices):
        """Where a part stands in its life."""

        DRAFT = "draft"
        RELEASED = "released"
        OBSOLETE = "obsolete"

    number = models.CharField(max_length=20, unique=True, help_text="unique part number, e.g. SHF-10210")
    name = models.CharField(max_length=80, help_text="designation with its main dimensions in mm")
    category = models.CharField(max_length=20, choices=Category.choices, help_text="kind of part")
    material = models.ForeignKey(
        Material, on_delete=models.PROTECT, related_name="parts", help_text="what it is made of"
    )
    status = models.CharField(max_length=20, choices=Status.choices, help_text="state in the part's life")
    revision = models.CharField(max_length=2, help_text="drawing revision letter")
    weight = models.DecimalField(max_digits=9, decimal_places=3, help_text="weight in kg")
    price = models.DecimalField(max_digits=10, decimal_places=2, help_text="list price in EUR (what customers pay)")

    def __str__(self) -> str:
        """Show number and name."""
        return f"{self.number} {self.name}"


class Offer(models.Model):
    """A supplier's offer for a part: the purchase price."""

    supplier = models.ForeignKey(Supplier, on_delete=models.CASCADE, related_name="offers")
    part = models.ForeignKey(Part, on_delete=models.CASCADE, related_name="offers")
    purchase_price = models.DecimalField(max_digits=10, decimal_places=2, help_text="purchase price per piece in EUR")
    minimum_quantity = models.PositiveIntegerField(help_text="smallest quantity that can be ordered")
    valid_until = models.DateField()

    class Meta:
        """One offer for each supplier and part."""

        constraints: ClassVar = [models.UniqueConstraint(fields=["supplier", "part"], name="demo_one_offer")]


class Customer(models.Model):
    """A company that machines and spare parts are sold to."""

    class Industry(models.TextChoices):
        """What customers make."""

        FOOD = "food"
        BEVERAGES = "beverages"
        PHARMA = "pharma"
        COSMETICS = "cosmetics"
        LOGISTICS = "logistics"
        CHEMICALS = "chemicals"

    name = models.CharField(max_length=80, unique=True)
    city = models.CharField(max_length=40)
    country = models.CharField(max_length=40)
    industry = models.CharField(max_length=20, choices=Industry.choices)
    since = models.DateField(help_text="date of the first order")

    def __str__(self) -> str:
        """Show the name."""
        return self.name


class Project(models.Model):
    """A machine that is designed and built for a customer."""

    class Status(models.TextChoices):
        """Where a project stands."""

        PLANNED = "planned"
        ACTIVE = "active"
        ON_HOLD = "on_hold"
        COMPLETED = "completed"

    code = models.CharField(max_length=20, unique=True, help_text="project code, e.g. P-2025-014")
    name = models.CharField(max_length=80, help_text="code name and kind of machine, e.g. Apollo case packer")
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="projects")
    status = models.CharField(max_length=20, choices=Status.choices)
    confidential = models.BooleanField(default=False, help_text="known to engineering only")
    starts_on = models.DateField()
    due_on = models.DateField(help_text="agreed date of delivery")

    class Meta:
        """The permission behind the demo's row rule."""

        permissions = (("view_confidential_project", "Can view confidential projects"),)

    def __str__(self) -> str:
        """Show code and name."""
        return f"{self.code} {self.name}"


class Assembly(models.Model):
    """A module of a project's machine; its bill of material is the list of its lines."""

    number = models.CharField(max_length=20, unique=True, help_text="assembly number, e.g. A-2025-014-03")
    name = models.CharField(max_length=60)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="assemblies")

    class Meta:
        """A plural that Django cannot guess."""

        verbose_name_plural = "assemblies"

    def __str__(self) -> str:
        """Show number and name."""
        return f"{self.number} {self.name}"


class BomLine(models.Model):
    """One line of a bill of material: how many of a part an assembly needs."""

    assembly = models.ForeignKey(Assembly, on_delete=models.CASCADE, related_name="bom_lines")
    part = models.ForeignKey(Part, on_delete=models.PROTECT, related_name="bom_lines")
    position = models.PositiveIntegerField(help_text="number on the drawing: 10, 20, ...")
    quantity = models.PositiveIntegerField(help_text="pieces of the part in one assembly")

    class Meta:
        """A position is used once in each assembly."""

        verbose_name = "BOM line"
        constraints: ClassVar = [models.UniqueConstraint(fields=["assembly", "position"], name="demo_one_position")]


class Warehouse(models.Model):
    """A place where parts are stored."""

    code = models.CharField(max_length=10, unique=True)
    name = models.CharField(max_length=60)
    city = models.CharField(max_length=40)

    def __str__(self) -> str:
        """Show the name."""
        return self.name


class StockLevel(models.Model):
    """How many of a part lie in a warehouse."""

    warehouse = models.ForeignKey(Warehouse, on_delete=models.CASCADE, related_name="stock_levels")
    part = models.ForeignKey(Part, on_delete=models.CASCADE, related_name="stock_levels")
    quantity = models.PositiveIntegerField(help_text="pieces in stock")
    reorder_level = models.PositiveIntegerField(help_text="pieces below which the part is ordered again")
    shelf = models.CharField(max_length=12, help_text="shelf, e.g. C-07-3")

    class Meta:
        """One level for each part and warehouse."""

        constraints: ClassVar = [models.UniqueConstraint(fields=["warehouse", "part"], name="demo_one_level")]


class Order(models.Model):
    """A customer's order of spare parts."""

    class Status(models.TextChoices):
        """Where an order stands; open ones still have to be delivered."""

        OPEN = "open"
        SHIPPED = "shipped"
        INVOICED = "invoiced"
        CANCELLED = "cancelled"

    number = models.CharField(max_length=20, unique=True, help_text="order number, e.g. SO-250117")
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="orders")
    status = models.CharField(max_length=20, choices=Status.choices)
    ordered_on = models.DateField()
    due_on = models.DateField(help_text="promised date of delivery")
    total = models.DecimalField(max_digits=12, decimal_places=2, help_text="sum of the lines in EUR")

    def __str__(self) -> str:
        """Show the number."""
        return self.number


class OrderLine(models.Model):
    """One line of an order: a part, a quantity and the price agreed."""

    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="lines")
    part = models.ForeignKey(Part, on_delete=models.PROTECT, related_name="order_lines")
    quantity = models.PositiveIntegerField(help_text="pieces ordered")
    unit_price = models.DecimalField(max_digits=10, decimal_places=2, help_text="price per piece in EUR")
