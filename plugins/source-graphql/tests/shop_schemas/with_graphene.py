"""graphene-django: relay connections with django-filter's arguments, plain lists, no totals."""

from __future__ import annotations

from typing import Any

import graphene
from graphene import relay
from graphene_django import DjangoListField, DjangoObjectType
from graphene_django.filter import DjangoFilterConnectionField
from testproject.shop import models

from shop_schemas import parts_for, suppliers_for


class TagType(DjangoObjectType):
    class Meta:
        model = models.Tag
        fields = ("id", "name", "parts")


class MaterialType(DjangoObjectType):
    class Meta:
        model = models.Material
        fields = ("id", "name", "density", "parts")
        description = "What parts are made of."


class SupplierType(DjangoObjectType):
    class Meta:
        model = models.Supplier
        fields = ("id", "name", "country", "rating", "api_token", "parts")

    @classmethod
    def get_queryset(cls, queryset: Any, info: Any) -> Any:
        return suppliers_for(info.context.user, queryset)


class PartNode(DjangoObjectType):
    class Meta:
        model = models.Part
        interfaces = (relay.Node,)
        fields = (
            *("number", "name", "status", "price", "weight", "purchased", "released_on", "created_at"),
            *("material", "supplier", "tags"),
        )
        filter_fields = {  # noqa: RUF012
            "number": ["exact", "in"],
            "name": ["exact", "icontains", "startswith"],
            "price": ["exact", "gte", "lt", "isnull"],
            "purchased": ["exact"],
            "released_on": ["gte", "lte"],
        }

    supplier_id = graphene.Int()

    @classmethod
    def get_queryset(cls, queryset: Any, info: Any) -> Any:
        return parts_for(info.context.user, queryset)


class Query(graphene.ObjectType):
    parts = DjangoFilterConnectionField(PartNode)
    materials = graphene.List(graphene.NonNull(MaterialType))
    suppliers = DjangoListField(SupplierType)
    tags = DjangoListField(TagType)

    def resolve_materials(self, info: Any) -> Any:
        return models.Material.objects.all()


class FieldErrors(graphene.ObjectType):
    field = graphene.String(required=True)
    messages = graphene.List(graphene.NonNull(graphene.String), required=True)


class RenamePart(graphene.Mutation):
    class Arguments:
        number = graphene.String(required=True)
        name = graphene.String(required=True)

    ok = graphene.Boolean(required=True)
    part = graphene.Field(PartNode)
    errors = graphene.List(graphene.NonNull(FieldErrors))

    def mutate(self, info: Any, number: str, name: str) -> Any:
        part = parts_for(info.context.user, models.Part.objects.all()).get(number=number)
        part.name = name
        part.save()  # refused below: the adapter must undo it
        if not name:
            return RenamePart(ok=False, errors=[FieldErrors(field="name", messages=["A part needs a name."])])
        return RenamePart(ok=True, part=part)


class DeletePart(graphene.Mutation):
    class Arguments:
        number = graphene.String(required=True)

    ok = graphene.Boolean(required=True)

    def mutate(self, info: Any, number: str) -> Any:
        parts_for(info.context.user, models.Part.objects.all()).get(number=number).delete()
        return DeletePart(ok=True)


class Mutation(graphene.ObjectType):
    rename_part = RenamePart.Field()
    delete_part = DeletePart.Field()


schema = graphene.Schema(query=Query, mutation=Mutation)
