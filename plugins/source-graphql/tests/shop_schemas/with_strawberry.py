"""strawberry-django: pages of results with a total, filters with lookups, an ordering."""

from __future__ import annotations

from typing import Any

import strawberry
import strawberry_django
from strawberry import auto
from strawberry_django.mutations import create, delete, update
from strawberry_django.optimizer import DjangoOptimizerExtension
from strawberry_django.pagination import OffsetPaginated  # noqa: TC002 - strawberry reads annotations
from testproject.shop import models

from shop_schemas import parts_for, suppliers_for

Status = strawberry.enum(models.Part.Status, name="PartStatus")


@strawberry_django.filter_type(models.Part, lookups=True)
class PartFilter:
    id: auto
    number: auto
    name: auto
    price: auto
    purchased: auto
    weight: auto
    released_on: auto


@strawberry_django.order_type(models.Part)
class PartOrder:
    id: auto
    number: auto
    price: auto
    weight: auto


@strawberry_django.type(models.Tag)
class Tag:
    id: auto
    name: auto
    parts: list[Part]


@strawberry_django.type(models.Material, description="What parts are made of.")
class Material:
    id: auto
    name: auto
    density: auto
    parts: OffsetPaginated[Part] = strawberry_django.offset_paginated()


@strawberry_django.type(models.Supplier)
class Supplier:
    id: auto
    name: auto
    country: auto
    rating: auto
    api_token: auto
    parts: list[Part]

    @classmethod
    def get_queryset(cls, queryset: Any, info: strawberry.Info, **_: Any) -> Any:
        return suppliers_for(info.context.request.user, queryset)


@strawberry_django.type(models.Part, filters=PartFilter, ordering=PartOrder)
class Part:
    id: auto
    number: auto
    name: auto
    status: Status  # type: ignore[valid-type]
    price: auto
    weight: auto
    purchased: auto
    released_on: auto
    created_at: auto
    supplier_id: auto
    material: Material
    supplier: Supplier | None
    tags: list[Tag]

    @classmethod
    def get_queryset(cls, queryset: Any, info: strawberry.Info, **_: Any) -> Any:
        return parts_for(info.context.request.user, queryset)


@strawberry_django.input(models.Part)
class PartInput:
    number: auto
    name: auto
    price: auto
    material: auto
    tags: auto


@strawberry_django.partial(models.Part)
class PartPartialInput:
    id: auto
    name: auto
    price: auto
    supplier: auto


@strawberry_django.input(models.Part)
class PartKey:
    id: strawberry.ID


@strawberry.type
class Query:
    parts: OffsetPaginated[Part] = strawberry_django.offset_paginated()
    materials: list[Material] = strawberry_django.field(pagination=True)
    suppliers: list[Supplier] = strawberry_django.field()
    tags: list[Tag] = strawberry_django.field()


@strawberry.type
class Mutation:
    create_part: Part = create(PartInput, handle_django_errors=True)
    update_part: Part = update(PartPartialInput, handle_django_errors=False)
    delete_part: Part = delete(PartKey, handle_django_errors=True)


schema = strawberry.Schema(Query, Mutation, extensions=[DjangoOptimizerExtension])
