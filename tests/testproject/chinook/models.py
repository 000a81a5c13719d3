"""Chinook, a database that nobody here wrote: a shop for music, 11 tables, unmanaged."""

from __future__ import annotations

from django.db import models


class Artist(models.Model):
    id = models.IntegerField(primary_key=True, db_column="ArtistId")
    name = models.CharField(max_length=120, null=True, db_column="Name")

    class Meta:
        managed = False
        db_table = "Artist"

    def __str__(self) -> str:
        return str(self.name)


class Album(models.Model):
    id = models.IntegerField(primary_key=True, db_column="AlbumId")
    title = models.CharField(max_length=160, db_column="Title")
    artist = models.ForeignKey(Artist, models.DO_NOTHING, db_column="ArtistId", related_name="albums")

    class Meta:
        managed = False
        db_table = "Album"

    def __str__(self) -> str:
        return self.title


class Genre(models.Model):
    id = models.IntegerField(primary_key=True, db_column="GenreId")
    name = models.CharField(max_length=120, null=True, db_column="Name")

    class Meta:
        managed = False
        db_table = "Genre"

    def __str__(self) -> str:
        return str(self.name)


class MediaType(models.Model):
    id = models.IntegerField(primary_key=True, db_column="MediaTypeId")
    name = models.CharField(max_length=120, null=True, db_column="Name")

    class Meta:
        managed = False
        db_table = "MediaType"

    def __str__(self) -> str:
        return str(self.name)


class Track(models.Model):
    id = models.IntegerField(primary_key=True, db_column="TrackId")
    name = models.CharField(max_length=200, db_column="Name")
    album = models.ForeignKey(Album, models.DO_NOTHING, null=True, db_column="AlbumId", related_name="tracks")
    media_type = models.ForeignKey(MediaType, models.DO_NOTHING, db_column="MediaTypeId", related_name="tracks")
    genre = models.ForeignKey(Genre, models.DO_NOTHING, null=True, db_column="GenreId", related_name="tracks")
    composer = models.CharField(max_length=220, null=True, db_column="Composer")
    milliseconds = models.IntegerField(db_column="Milliseconds")
    bytes = models.IntegerField(null=True, db_column="Bytes")
    unit_price = models.DecimalField(max_digits=10, decimal_places=2, db_column="UnitPrice")

    class Meta:
        managed = False
        db_table = "Track"

    def __str__(self) -> str:
        return self.name


class Playlist(models.Model):
    id = models.IntegerField(primary_key=True, db_column="PlaylistId")
    name = models.CharField(max_length=120, null=True, db_column="Name")
    tracks = models.ManyToManyField(Track, through="PlaylistTrack", related_name="playlists")

    class Meta:
        managed = False
        db_table = "Playlist"

    def __str__(self) -> str:
        return str(self.name)


class PlaylistTrack(models.Model):
    pk = models.CompositePrimaryKey("playlist_id", "track_id")
    playlist = models.ForeignKey(Playlist, models.DO_NOTHING, db_column="PlaylistId")
    track = models.ForeignKey(Track, models.DO_NOTHING, db_column="TrackId")

    class Meta:
        managed = False
        db_table = "PlaylistTrack"

    def __str__(self) -> str:
        return f"{self.playlist_id}/{self.track_id}"


class Employee(models.Model):
    id = models.IntegerField(primary_key=True, db_column="EmployeeId")
    last_name = models.CharField(max_length=20, db_column="LastName")
    first_name = models.CharField(max_length=20, db_column="FirstName")
    title = models.CharField(max_length=30, null=True, db_column="Title")
    reports_to = models.ForeignKey(
        "self", models.DO_NOTHING, null=True, db_column="ReportsTo", related_name="subordinates"
    )
    birth_date = models.DateTimeField(null=True, db_column="BirthDate")
    hire_date = models.DateTimeField(null=True, db_column="HireDate")
    city = models.CharField(max_length=40, null=True, db_column="City")
    country = models.CharField(max_length=40, null=True, db_column="Country")
    email = models.CharField(max_length=60, null=True, db_column="Email")

    class Meta:
        managed = False
        db_table = "Employee"

    def __str__(self) -> str:
        return f"{self.first_name} {self.last_name}"


class Customer(models.Model):
    id = models.IntegerField(primary_key=True, db_column="CustomerId")
    first_name = models.CharField(max_length=40, db_column="FirstName")
    last_name = models.CharField(max_length=20, db_column="LastName")
    company = models.CharField(max_length=80, null=True, db_column="Company")
    city = models.CharField(max_length=40, null=True, db_column="City")
    country = models.CharField(max_length=40, null=True, db_column="Country")
    email = models.CharField(max_length=60, db_column="Email")
    support_rep = models.ForeignKey(
        Employee, models.DO_NOTHING, null=True, db_column="SupportRepId", related_name="customers"
    )

    class Meta:
        managed = False
        db_table = "Customer"

    def __str__(self) -> str:
        return f"{self.first_name} {self.last_name}"


class Invoice(models.Model):
    id = models.IntegerField(primary_key=True, db_column="InvoiceId")
    customer = models.ForeignKey(Customer, models.DO_NOTHING, db_column="CustomerId", related_name="invoices")
    invoice_date = models.DateTimeField(db_column="InvoiceDate")
    billing_city = models.CharField(max_length=40, null=True, db_column="BillingCity")
    billing_country = models.CharField(max_length=40, null=True, db_column="BillingCountry")
    total = models.DecimalField(max_digits=10, decimal_places=2, db_column="Total")

    class Meta:
        managed = False
        db_table = "Invoice"

    def __str__(self) -> str:
        return str(self.id)


class InvoiceLine(models.Model):
    id = models.IntegerField(primary_key=True, db_column="InvoiceLineId")
    invoice = models.ForeignKey(Invoice, models.DO_NOTHING, db_column="InvoiceId", related_name="lines")
    track = models.ForeignKey(Track, models.DO_NOTHING, db_column="TrackId", related_name="invoice_lines")
    unit_price = models.DecimalField(max_digits=10, decimal_places=2, db_column="UnitPrice")
    quantity = models.IntegerField(db_column="Quantity")

    class Meta:
        managed = False
        db_table = "InvoiceLine"

    def __str__(self) -> str:
        return str(self.id)
