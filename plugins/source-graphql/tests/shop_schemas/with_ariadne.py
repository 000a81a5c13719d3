"""ariadne: written by hand, with a flat filter and pages of items whose pageInfo has the total."""

from __future__ import annotations

from typing import Any

from ariadne import EnumType, MutationType, ObjectType, QueryType, ScalarType, make_executable_schema
from django.core.exceptions import PermissionDenied
from graphql import GraphQLError
from testproject.shop import models

from shop_schemas import parts_for, suppliers_for

SDL = """
scalar Date
scalar DateTime
scalar Decimal

enum Status { DRAFT RELEASED OBSOLETE }

type Tag { id: ID!, name: String!, parts: [Part!]! }

"What parts are made of."
type Material { id: ID!, name: String!, density: Float!, parts(limit: Int, offset: Int): [Part!]! }

type Supplier { id: ID!, name: String!, country: String!, rating: Int, apiToken: String!, parts: [Part!]! }

type Part {
  id: ID!
  number: String!
  name: String!
  status: Status!
  price: Decimal
  weight: Float
  purchased: Boolean!
  releasedOn: Date
  createdAt: DateTime!
  cost: Decimal
  supplierId: ID
  material: Material!
  supplier: Supplier
  tags: [Tag!]!
}

input PartFilter {
  name_icontains: String
  price_gte: Decimal
  price_lt: Decimal
  status: Status
  purchased: Boolean
}

type PageInfo { totalCount: Int!, currentPage: Int!, pageSize: Int! }
type PartPage { items: [Part!]!, pageInfo: PageInfo! }

type Query {
  parts(page: Int, pageSize: Int, filter: PartFilter): PartPage!
  materials(limit: Int, offset: Int): [Material!]!
  suppliers: [Supplier!]!
  tags: [Tag!]!
}

input PriceInput { number: String!, price: Decimal!, reason: String }

type Mutation {
  updatePartPrice(input: PriceInput!): Part!
  deletePart(number: String!): Boolean!
}
"""

query, part, material, supplier, tag, mutation = (
    QueryType(),
    ObjectType("Part"),
    ObjectType("Material"),
    ObjectType("Supplier"),
    ObjectType("Tag"),
    MutationType(),
)
scalars = [ScalarType("Date", serializer=str), ScalarType("DateTime"), ScalarType("Decimal", serializer=str)]


def _user(info: Any) -> Any:
    return info.context["request"].user


def _window(rows: Any, limit: int | None, offset: int | None) -> Any:
    first = offset or 0
    return rows[first:] if limit is None else rows[first : first + limit]


@query.field("parts")
def parts(_: Any, info: Any, page: int = 1, pageSize: int = 10, filter: Any = None) -> Any:  # noqa: N803
    rows = parts_for(_user(info), models.Part.objects.order_by("pk"))
    for key, value in (filter or {}).items():
        rows = rows.filter(**{key.replace("_", "__", 1): value})
    size = min(pageSize, 25)  # a cap that nobody tells of
    window = _window(rows, size, (page - 1) * size)
    return {"items": window, "pageInfo": {"totalCount": rows.count(), "currentPage": page, "pageSize": size}}


@query.field("materials")
def materials(_: Any, info: Any, limit: int | None = None, offset: int | None = None) -> Any:
    return _window(models.Material.objects.order_by("pk"), limit, offset)


@query.field("suppliers")
def suppliers(_: Any, info: Any) -> Any:
    return suppliers_for(_user(info), models.Supplier.objects.order_by("pk"))


@query.field("tags")
def tags(_: Any, info: Any) -> Any:
    return models.Tag.objects.order_by("pk")


@material.field("parts")
def material_parts(row: Any, info: Any, limit: int | None = None, offset: int | None = None) -> Any:
    return _window(parts_for(_user(info), row.parts.order_by("pk")), limit, offset)


@supplier.field("parts")
@tag.field("parts")
def related_parts(row: Any, info: Any) -> Any:
    return parts_for(_user(info), row.parts.order_by("pk"))


@part.field("supplier")
def part_supplier(row: Any, info: Any) -> Any:
    """An object of nulls for a hidden row would be a fault of this schema; it has another one, see ``supplierId``."""
    return suppliers_for(_user(info), models.Supplier.objects.filter(pk=row.supplier_id)).first()


@part.field("tags")
def part_tags(row: Any, info: Any) -> Any:
    return row.tags.order_by("pk")


@part.field("cost")
def part_cost(row: Any, info: Any) -> Any:
    if not _user(info).is_staff:
        raise PermissionDenied("the cost of /srv/secret is not for you")
    return row.price


for _type, _names in {part: ("releasedOn", "createdAt", "supplierId"), supplier: ("apiToken",)}.items():
    for _name in _names:
        _column = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in _name)
        _type.set_field(_name, lambda row, info, column=_column: getattr(row, column))


@mutation.field("updatePartPrice")
def update_part_price(_: Any, info: Any, input: Any) -> Any:
    row = parts_for(_user(info), models.Part.objects.all()).filter(number=input["number"]).first()
    if row is None:
        raise GraphQLError("no such part in db-7.internal")
    row.price = input["price"]
    row.full_clean()
    row.save()
    return row


@mutation.field("deletePart")
def delete_part(_: Any, info: Any, number: str) -> bool:
    if not _user(info).is_staff:
        raise PermissionDenied
    models.Part.objects.filter(number=number).delete()
    return True


schema = make_executable_schema(
    SDL,
    *[query, part, material, supplier, tag, mutation, *scalars],
    EnumType("Status", {"DRAFT": "draft", "RELEASED": "released", "OBSOLETE": "obsolete"}),
)
