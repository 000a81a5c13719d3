"""What is asked for. The tables are the same in both projects."""

from __future__ import annotations

from django.db import models


class Material(models.Model):
    """What parts are made of."""

    name = models.CharField(max_length=80, unique=True)
    density = models.FloatField()

    class Meta:
        app_label = "catalog"

    def __str__(self) -> str:
        return self.name


class Part(models.Model):
    """Designed or purchased components."""

    number = models.CharField(max_length=20, unique=True)
    name = models.CharField(max_length=80)
    price = models.DecimalField(max_digits=10, decimal_places=2)
    material = models.ForeignKey(Material, on_delete=models.PROTECT, related_name="parts")

    class Meta:
        app_label = "catalog"

    def __str__(self) -> str:
        return self.number
