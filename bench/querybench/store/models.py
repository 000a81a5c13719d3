"""Albums for the page, sales for the aggregates."""

from __future__ import annotations

from django.db import models


class Artist(models.Model):
    name = models.CharField(max_length=120)


class Album(models.Model):
    title = models.CharField(max_length=160)
    artist = models.ForeignKey(Artist, models.CASCADE, related_name="albums")


class Track(models.Model):
    name = models.CharField(max_length=200)
    album = models.ForeignKey(Album, models.CASCADE, related_name="tracks")
    milliseconds = models.IntegerField()
    unit_price = models.DecimalField(max_digits=10, decimal_places=2)


class Customer(models.Model):
    name = models.CharField(max_length=80)
    region = models.CharField(max_length=20)


class Sale(models.Model):
    customer = models.ForeignKey(Customer, models.CASCADE, related_name="sales")
    status = models.CharField(max_length=10)
    sold_on = models.DateField()
    paid_on = models.DateField(null=True)
    quantity = models.IntegerField()
    price = models.DecimalField(max_digits=10, decimal_places=2)


MUSIC = (Artist, Album, Track)
SALES = (Customer, Sale)
