"""The shop's tables once more: GeneralManager cannot describe a model with a generic relation, as the shop's Part."""

from __future__ import annotations

from django.db import models
from testproject.shop.models import Part as ShopPart


class Tag(models.Model):
    name = models.CharField(max_length=40, unique=True)

    class Meta:
        managed = False
        db_table = "shop_tag"

    def __str__(self) -> str:
        return self.name


class Material(models.Model):
    """What parts are made of."""

    name = models.CharField(max_length=80, unique=True)
    density = models.FloatField(help_text="grams per cubic centimetre")
    notes = models.TextField(blank=True)

    class Meta:
        managed = False
        db_table = "shop_material"

    def __str__(self) -> str:
        return self.name


class Supplier(models.Model):
    name = models.CharField(max_length=80)
    country = models.CharField(max_length=2, blank=True)
    email = models.EmailField(blank=True)
    rating = models.PositiveSmallIntegerField(null=True, blank=True)
    api_token = models.CharField(max_length=64, blank=True)

    class Meta:
        managed = False
        db_table = "shop_supplier"

    def __str__(self) -> str:
        return self.name


class Part(models.Model):
    number = models.CharField("part number", max_length=20, unique=True)
    name = models.CharField(max_length=80)
    description = models.TextField(blank=True)
    status = models.CharField(max_length=10, choices=ShopPart.Status, default=ShopPart.Status.DRAFT)
    price = models.DecimalField(max_digits=10, decimal_places=2, null=True, blank=True, help_text="net, in euro")
    weight = models.FloatField(null=True, blank=True)
    purchased = models.BooleanField(default=False)
    attributes = models.JSONField(default=dict, blank=True)
    lead_time = models.DurationField(null=True, blank=True)
    released_on = models.DateField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    material = models.ForeignKey(Material, on_delete=models.PROTECT, related_name="parts")
    supplier = models.ForeignKey(Supplier, on_delete=models.SET_NULL, null=True, blank=True, related_name="parts")
    tags = models.ManyToManyField(Tag, blank=True, related_name="parts", db_table="shop_part_tags")

    class Meta:
        managed = False
        db_table = "shop_part"

    def __str__(self) -> str:
        return self.number
