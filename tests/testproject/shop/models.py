"""Models with every kind of column and relation that a manager can meet."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.contrib.contenttypes.fields import GenericForeignKey, GenericRelation
from django.contrib.contenttypes.models import ContentType
from django.db import models


class Tag(models.Model):
    name = models.CharField(max_length=40, unique=True)

    def __str__(self) -> str:
        return self.name


class Material(models.Model):
    """What parts are made of."""

    name = models.CharField(max_length=80, unique=True)
    density = models.FloatField(help_text="grams per cubic centimetre")
    notes = models.TextField(blank=True)

    def __str__(self) -> str:
        return self.name


class Supplier(models.Model):
    name = models.CharField(max_length=80)
    country = models.CharField(max_length=2, blank=True)
    email = models.EmailField(blank=True)
    rating = models.PositiveSmallIntegerField(null=True, blank=True)
    api_token = models.CharField(max_length=64, blank=True)

    def __str__(self) -> str:
        return self.name


class Note(models.Model):
    text = models.TextField()
    content_type = models.ForeignKey(ContentType, on_delete=models.CASCADE)
    object_id = models.PositiveBigIntegerField()
    subject = GenericForeignKey("content_type", "object_id")

    def __str__(self) -> str:
        return self.text[:40]


class Part(models.Model):
    class Status(models.TextChoices):
        DRAFT = "draft", "In design"
        RELEASED = "released", "Released"
        OBSOLETE = "obsolete", "No longer used"

    number = models.CharField("part number", max_length=20, unique=True)
    name = models.CharField(max_length=80)
    description = models.TextField(blank=True)
    status = models.CharField(max_length=10, choices=Status, default=Status.DRAFT)
    price = models.DecimalField(max_digits=10, decimal_places=2, null=True, blank=True, help_text="net, in euro")
    weight = models.FloatField(null=True, blank=True)
    purchased = models.BooleanField(default=False)
    attributes = models.JSONField(default=dict, blank=True)
    lead_time = models.DurationField(null=True, blank=True)
    drawing = models.BinaryField(null=True, blank=True)
    released_on = models.DateField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    material = models.ForeignKey(Material, on_delete=models.PROTECT, related_name="parts")
    supplier = models.ForeignKey(Supplier, on_delete=models.SET_NULL, null=True, blank=True, related_name="parts")
    tags = models.ManyToManyField(Tag, blank=True, related_name="parts")
    remarks = GenericRelation(Note)

    def __str__(self) -> str:
        return self.number


class Specification(models.Model):
    part = models.OneToOneField(Part, on_delete=models.CASCADE, related_name="specification")
    text = models.TextField()
    tolerance = models.DecimalField(max_digits=6, decimal_places=4, null=True, blank=True)

    def __str__(self) -> str:
        return self.text[:40]


class Project(models.Model):
    code = models.SlugField(primary_key=True)
    name = models.CharField(max_length=80)
    budget = models.DecimalField(max_digits=12, decimal_places=2, null=True, blank=True)
    parts = models.ManyToManyField(Part, through="BomLine", related_name="projects")

    def __str__(self) -> str:
        return self.name


class BomLine(models.Model):
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="lines")
    part = models.ForeignKey(Part, on_delete=models.PROTECT)
    position = models.PositiveIntegerField()
    quantity = models.PositiveIntegerField(default=1)

    class Meta:
        verbose_name = "line of a bill of material"

    def __str__(self) -> str:
        return f"{self.position}: {self.quantity}"


class Order(models.Model):
    class Status(models.TextChoices):
        OPEN = "open", "Open"
        SHIPPED = "shipped", "Shipped"
        CANCELLED = "cancelled", "Cancelled"

    number = models.CharField(max_length=20, unique=True)
    customer = models.CharField(max_length=80)
    status = models.CharField(max_length=10, choices=Status, default=Status.OPEN)
    ordered_at = models.DateTimeField()
    due_on = models.DateField(null=True, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True)

    def __str__(self) -> str:
        return self.number


class OrderLine(models.Model):
    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="lines")
    part = models.ForeignKey(Part, on_delete=models.PROTECT, related_name="order_lines")
    quantity = models.PositiveIntegerField()
    unit_price = models.DecimalField(max_digits=10, decimal_places=2)

    def __str__(self) -> str:
        return f"{self.quantity} x {self.part}"


class Document(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    title = models.CharField(max_length=120)
    confidential = models.BooleanField(default=False)
    part = models.ForeignKey(Part, on_delete=models.CASCADE, related_name="documents", null=True, blank=True)

    def __str__(self) -> str:
        return self.title


class Employee(models.Model):
    name = models.CharField(max_length=80)
    salary = models.DecimalField(max_digits=10, decimal_places=2)
    shift_start = models.TimeField(null=True, blank=True)
    boss = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="reports")

    def __str__(self) -> str:
        return self.name


class Placement(models.Model):
    """Where a part lies. Two columns are its key."""

    pk = models.CompositePrimaryKey("shelf", "part_id")
    shelf = models.CharField(max_length=10)
    part = models.ForeignKey(Part, on_delete=models.CASCADE, related_name="placements")
    quantity = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.shelf}: {self.quantity}"


class Announcement(models.Model):
    title = models.CharField(max_length=120)
    published_on = models.DateField()
    about = models.ForeignKey(Part, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")

    def __str__(self) -> str:
        return self.title


class Payment(models.Model):
    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="payments")
    amount = models.DecimalField(max_digits=10, decimal_places=2)

    def __str__(self) -> str:
        return str(self.amount)
