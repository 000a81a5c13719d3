"""strawberry-django with its own optimizer, and without."""

from __future__ import annotations

from typing import Any

import strawberry
import strawberry_django
from strawberry_django.optimizer import DjangoOptimizerExtension

from querybench.pages.raw import rows_of
from querybench.store import models

DOCUMENT = """
{ albums(pagination: {limit: 200}) { id title artist { name } tracks { id name milliseconds unitPrice } } total }
"""


@strawberry_django.type(models.Artist)
class Artist:
    name: strawberry.auto


@strawberry_django.type(models.Track)
class Track:
    id: strawberry.auto
    name: strawberry.auto
    milliseconds: strawberry.auto
    unit_price: strawberry.auto


@strawberry_django.type(models.Album, pagination=True)
class Album:
    id: strawberry.auto
    title: strawberry.auto
    artist: Artist
    tracks: list[Track]

    @classmethod
    def get_queryset(cls, queryset: Any, _: Any) -> Any:
        return queryset.order_by("title", "id")


@strawberry.type
class Query:
    albums: list[Album] = strawberry_django.field()

    @strawberry_django.field
    def total(self) -> int:
        return models.Album.objects.count()


OPTIMIZED = strawberry.Schema(Query, extensions=[DjangoOptimizerExtension])
PLAIN = strawberry.Schema(Query)


def page() -> Any:
    return ask(OPTIMIZED)


def ask(schema: strawberry.Schema) -> Any:
    result = schema.execute_sync(DOCUMENT)
    if result.errors or result.data is None:
        raise RuntimeError(f"strawberry: {result.errors}")
    return result.data["albums"]


def plain(answer: Any) -> list[Any]:
    return rows_of(answer)
