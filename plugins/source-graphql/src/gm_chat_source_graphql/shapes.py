"""How a schema gives lists (plain, as a relay connection, as an object of rows), pages, filters and orders them.

Detected by structure and by the names that libraries use, whatever their case and underscores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInt,
    GraphQLList,
    GraphQLObjectType,
    get_named_type,
    is_list_type,
    is_required_argument,
    is_required_input_field,
)

from gm_chat_source_graphql.values import nullable, scalar_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from graphql import GraphQLArgument, GraphQLField

    from gm_chat_source_graphql.values import Scalar

__all__ = ["ListShape", "OrderArgument", "Paging", "Slot", "bare", "filters_of", "list_shape", "order_of", "required"]

_ROWS: Final = ("results", "items", "nodes", "objects", "rows")
_TOTAL: Final = ("totalcount", "total", "count")
_PAGINATION: Final = ("pagination", "paging", "page")
_SIZE: Final = ("limit", "first", "take")
_OFFSET: Final = ("offset", "skip")
_PAGE_SIZE: Final = ("pagesize", "perpage", "page_size")
_FILTER: Final = ("filter", "filters", "where")
_ORDER: Final = ("order", "ordering", "orderby", "sort", "sortby")
_LOOKUPS: Final[Mapping[str, str]] = {
    **{name: name for name in ("exact", "iexact", "contains", "icontains", "startswith", "istartswith")},
    **{name: name for name in ("endswith", "iendswith", "gt", "gte", "lt", "lte", "in", "isnull")},
    "eq": "exact",
    "inlist": "in",
}


def bare(name: str) -> str:
    """A name without case and underscores."""
    return name.replace("_", "").lower()


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for a value: an argument, or a field of its input object. ``type`` is what goes there."""

    path: tuple[str, ...]
    type: Any


@dataclass(frozen=True, slots=True)
class Paging:
    """``position`` takes a cursor, the number of rows to skip, or the number of a page, the first being 1."""

    kind: Literal["cursor", "offset", "page"]
    size: Slot
    position: Slot


@dataclass(frozen=True, slots=True)
class ListShape:
    """A field that gives rows. Paths lead from its value to the rows, their total, and whether there are more."""

    node: GraphQLObjectType
    arguments: Mapping[str, GraphQLArgument]
    rows: tuple[str, ...] = ()
    total: tuple[str, ...] | None = None
    more: tuple[str, ...] | None = None
    paging: Paging | None = None

    @property
    def cursor(self) -> tuple[str, ...] | None:
        """Where the cursor of the last row stands."""
        return ("pageInfo", "endCursor") if self.paging is not None and self.paging.kind == "cursor" else None


@dataclass(frozen=True, slots=True)
class OrderArgument:
    """An argument of one or several objects ``{field: direction}``; ``fields`` maps our field to its directions."""

    name: str
    is_list: bool
    fields: Mapping[str, tuple[str, GraphQLEnumType]]


def required(arguments: Mapping[str, GraphQLArgument]) -> set[str]:
    """Names of the arguments that must be given."""
    return {name for name, argument in arguments.items() if is_required_argument(argument)}


def list_shape(field: GraphQLField) -> ListShape | None:
    """The shape of a field that gives rows of an object type and can be asked without what we do not know."""
    output = nullable(field.type)
    if isinstance(output, GraphQLList):
        node = nullable(output.of_type)
        if not isinstance(node, GraphQLObjectType):
            return None
        shape = ListShape(node, field.args, paging=_paging(field.args, has_cursor=False))
    elif isinstance(output, GraphQLObjectType):
        found = _wrapped(output, field)
        if found is None:
            return None
        shape = found
    else:
        return None
    given = {shape.paging.size.path[0], shape.paging.position.path[0]} if shape.paging else set()
    return shape if required(field.args) <= given else None


def _wrapped(output: GraphQLObjectType, field: GraphQLField) -> ListShape | None:
    """A connection, or an object of rows with a total or a page's description."""
    total = _total(output, ())
    info = _child(output, "pageInfo")
    if info is not None and total is None:
        total = _total(info, ("pageInfo",))
    more = ("pageInfo", "hasNextPage") if info is not None and "hasNextPage" in info.fields else None
    edges = _list_of(output, "edges")
    node = None if edges is None else _child(edges, "node")
    if node is not None:
        has_cursor = info is not None and {"hasNextPage", "endCursor"} <= info.fields.keys()
        paging = _paging(field.args, has_cursor=has_cursor)
        return ListShape(node, field.args, ("edges", "node"), total, more, paging)
    for name in _ROWS if total is not None or info is not None else ():
        node = _list_of(output, name)
        if node is not None:
            return ListShape(node, field.args, (name,), total, more, _paging(field.args, has_cursor=False))
    return None


def _child(type_: GraphQLObjectType, name: str) -> GraphQLObjectType | None:
    field = type_.fields.get(name)
    found = None if field is None or required(field.args) else nullable(field.type)
    return found if isinstance(found, GraphQLObjectType) else None


def _list_of(type_: GraphQLObjectType, name: str) -> GraphQLObjectType | None:
    field = type_.fields.get(name)
    output = None if field is None or required(field.args) else nullable(field.type)
    node = nullable(output.of_type) if isinstance(output, GraphQLList) else None
    return node if isinstance(node, GraphQLObjectType) else None


def _total(type_: GraphQLObjectType, prefix: tuple[str, ...]) -> tuple[str, ...] | None:
    for name, field in type_.fields.items():
        if bare(name) in _TOTAL and nullable(field.type) is GraphQLInt and not required(field.args):
            return (*prefix, name)
    return None


def _paging(arguments: Mapping[str, GraphQLArgument], *, has_cursor: bool) -> Paging | None:
    flat = {bare(name): Slot((name,), argument.type) for name, argument in arguments.items()}
    if has_cursor and "first" in flat and "after" in flat:
        return Paging("cursor", flat["first"], flat["after"])
    groups = [flat]
    for name in _PAGINATION:
        type_ = nullable(flat[name].type) if name in flat else None
        if isinstance(type_, GraphQLInputObjectType):
            outer = flat[name].path
            groups.append({bare(key): Slot((*outer, key), item.type) for key, item in type_.fields.items()})
    for group in groups:
        numbers = {key: slot for key, slot in group.items() if nullable(slot.type) is GraphQLInt}
        size = next((numbers[key] for key in _SIZE if key in numbers), None)
        offset = next((numbers[key] for key in _OFFSET if key in numbers), None)
        if size is not None and offset is not None:
            return Paging("offset", size, offset)
        size = next((numbers[key] for key in _PAGE_SIZE if key in numbers), None)
        if size is not None and "page" in numbers:
            return Paging("page", size, numbers["page"])
    return None


# --- filters and orders -----------------------------------------------------------------------------------------


def filters_of(shape: ListShape, fields: Mapping[str, Scalar]) -> dict[tuple[str, str], Slot]:
    """Which condition on an own field each argument is, by (field, lookup): ``name_Icontains``, ``name: {iContains}``.

    Conditions on related objects are left out on purpose: a schema may match rows there that the actor may not see.
    """
    found: dict[tuple[str, str], Slot] = {}
    for condition, slot in _conditions(shape, fields):
        found.setdefault(condition, slot)
    return found


def _conditions(shape: ListShape, fields: Mapping[str, Scalar]) -> Iterator[tuple[tuple[str, str], Slot]]:
    spellings = {bare(name) + alias: (name, lookup) for alias, lookup in _LOOKUPS.items() for name in fields}
    spellings |= {bare(name): (name, "exact") for name in fields}
    paging = {shape.paging.size.path, shape.paging.position.path} if shape.paging else set()
    slots = [Slot((name,), argument.type) for name, argument in shape.arguments.items() if (name,) not in paging]
    for slot in list(slots):
        type_ = nullable(slot.type)
        is_filter = isinstance(type_, GraphQLInputObjectType) and bare(slot.path[0]) in _FILTER
        if is_filter and not any(map(is_required_input_field, type_.fields.values())):
            slots += [Slot((*slot.path, key), item.type) for key, item in type_.fields.items()]
    for slot in slots:
        condition = spellings.get(bare(slot.path[-1]))
        type_ = nullable(slot.type)
        if condition is None:
            continue
        name, lookup = condition
        if not isinstance(type_, GraphQLInputObjectType):
            if _takes(slot, lookup, fields[name]):
                yield condition, slot
        elif lookup == "exact" and len(slot.path) == 2:
            for key, item in type_.fields.items():
                inner = Slot((*slot.path, key), item.type)
                if bare(key) in _LOOKUPS and _takes(inner, _LOOKUPS[bare(key)], fields[name]):
                    yield (name, _LOOKUPS[bare(key)]), inner


def _takes(slot: Slot, lookup: str, scalar: Scalar) -> bool:
    """Whether the place takes the very type of the field, so that no value is rounded on its way."""
    type_ = nullable(slot.type)
    if is_list_type(type_) != (lookup == "in"):
        return False
    taken = scalar_of(get_named_type(type_))
    if taken is None:
        return False
    if lookup == "isnull":
        return taken.type == "boolean"
    return taken.type == scalar.type and (not scalar.names or set(taken.names) == set(scalar.names))


def order_of(shape: ListShape, fields: Mapping[str, Scalar]) -> OrderArgument | None:
    """The argument that orders by own fields, if there is one whose directions are an enum with ASC and DESC."""
    names = {bare(name): name for name in fields}
    for name, argument in shape.arguments.items():
        type_ = get_named_type(argument.type)
        if bare(name) not in _ORDER or not isinstance(type_, GraphQLInputObjectType):
            continue
        found = {}
        for key, item in type_.fields.items():
            directions = nullable(item.type)
            is_direction = isinstance(directions, GraphQLEnumType) and {"ASC", "DESC"} <= directions.values.keys()
            if bare(key) in names and is_direction:
                found[names[bare(key)]] = (key, directions)
        if found:
            return OrderArgument(name, is_list_type(nullable(argument.type)), found)
    return None
