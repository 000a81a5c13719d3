"""graphene-django with graphene-django-optimizer: a list that takes a number of rows, and the total beside it."""

from __future__ import annotations

from typing import Any

import graphene
import graphene_django_optimizer
from graphene_django import DjangoObjectType

from querybench.pages.raw import rows_of
from querybench.store import models

DOCUMENT = "{ %s(limit: 200) { id title artist { name } tracks { id name milliseconds unitPrice } } total }"


class Artist(DjangoObjectType):
    class Meta:
        model = models.Artist
        fields = ("id", "name")


class Track(DjangoObjectType):
    class Meta:
        model = models.Track
        fields = ("id", "name", "milliseconds", "unit_price")


class Album(DjangoObjectType):
    class Meta:
        model = models.Album
        fields = ("id", "title", "artist", "tracks")


class Query(graphene.ObjectType):
    albums = graphene.List(graphene.NonNull(Album), limit=graphene.Int(required=True))
    plain_albums = graphene.List(graphene.NonNull(Album), limit=graphene.Int(required=True))
    total = graphene.Int()

    def resolve_albums(self, info: Any, limit: int) -> Any:
        return graphene_django_optimizer.query(models.Album.objects.order_by("title", "id"), info)[:limit]

    def resolve_plain_albums(self, _: Any, limit: int) -> Any:
        return models.Album.objects.order_by("title", "id")[:limit]

    def resolve_total(self, _: Any) -> int:
        return models.Album.objects.count()


SCHEMA = graphene.Schema(Query)


def page() -> Any:
    return ask("albums")


def ask(field: str) -> Any:
    result = SCHEMA.execute(DOCUMENT % field)
    if result.errors:
        raise RuntimeError(f"graphene: {result.errors}")
    return result.data[field]


def plain(answer: Any) -> list[Any]:
    return rows_of(answer)
