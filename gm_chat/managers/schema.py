"""The GraphQL schema of the exposed managers: the source of mutation names and what ``manage.py chat_schema`` prints.

One object type, one list query and the mutations of each manager. Queries are not resolved through it (plans run on
their own executor), so it holds no resolvers. graphql-core is imported inside the functions: most processes never
need it, and its import takes a third of a second.

Choices are strings with their values in the description, not enums: a value need not be a GraphQL name.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from gm_chat.managers.api import InputInfo
from gm_chat.managers.introspect import LOOKUPS
from gm_chat.managers.names import graphql_name, stem_of_manager

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from graphql import GraphQLSchema

    from gm_chat.managers.api import FieldInfo, FieldType, ManagerInfo, MutationInfo

__all__ = ["SchemaBuildError", "build_schema", "print_sdl"]

_SCALARS: Final[dict[FieldType, tuple[str, str]]] = {
    "string": ("String", ""),
    "integer": ("BigInt", "A whole number of any size."),
    "number": ("Float", ""),
    "decimal": ("Decimal", 'An exact decimal number as a string: "12.50".'),
    "boolean": ("Boolean", ""),
    "date": ("Date", 'ISO 8601: "2026-03-01".'),
    "datetime": ("DateTime", 'ISO 8601 with an offset: "2026-03-01T12:00:00+00:00".'),
    "time": ("Time", 'ISO 8601: "12:00:00".'),
    "duration": ("Duration", "Seconds as a number."),
    "uuid": ("UUID", "The canonical text of a UUID."),
    "json": ("JSON", "Any JSON value."),
    "binary": ("Binary", 'Bytes as text: "base64:...".'),
}


class SchemaBuildError(Exception):
    """No schema can be built from the managers; the message says why."""


def build_schema(infos: Iterable[ManagerInfo]) -> GraphQLSchema:
    """Build the schema of the exposed managers in ``infos``; raises :class:`SchemaBuildError` if there is none.

    Relations to managers outside ``infos`` are left out.
    """
    from graphql import GraphQLError, GraphQLSchema, validate_schema  # lazy, see the module's docstring

    managers = {info.name: info for info in infos if info.exposed}
    if not managers:
        raise SchemaBuildError("no manager is exposed: declare one in an app's chat_managers.py, e.g. expose(Part)")
    try:
        builder = _Builder(managers)
        schema = GraphQLSchema(
            query=builder.query(),
            mutation=builder.mutation(),
            # graphql-core walks from type to type recursively, but into none that is named here: with all of them
            # named, a chain of any length takes no deeper a stack than one manager.
            types=builder.named_types(),
            description="What the chat may use.",
        )
        problems = validate_schema(schema)
    except (GraphQLError, TypeError, ValueError) as error:
        raise SchemaBuildError(f"the managers do not make a GraphQL schema: {error}") from error
    if problems:
        raise SchemaBuildError(f"the managers do not make a GraphQL schema: {problems[0].message}")
    return schema


def print_sdl(infos: Iterable[ManagerInfo]) -> str:
    """The schema of :func:`build_schema` in the schema definition language, ending in a newline."""
    from graphql import print_schema  # lazy, see the module's docstring

    return f"{print_schema(build_schema(infos)).rstrip()}\n"


class _Builder:
    """Makes each type once; fields are thunks, so that types may refer to one another in circles.

    What is equal is the same object: most fields of a large schema are one of a few, and half of its size was theirs.
    """

    def __init__(self, managers: Mapping[str, ManagerInfo]) -> None:
        import graphql  # lazy, see the module's docstring

        self._graphql: Any = graphql
        self._managers = managers
        builtin = {"String": graphql.GraphQLString, "Float": graphql.GraphQLFloat, "Boolean": graphql.GraphQLBoolean}
        self._scalars: dict[FieldType, Any] = {
            kind: builtin.get(name) or graphql.GraphQLScalarType(name=name, description=description)
            for kind, (name, description) in _SCALARS.items()
        }
        self._list, self._required = cache(self._list_of), cache(graphql.GraphQLNonNull)
        self._field, self._argument = cache(graphql.GraphQLField), cache(graphql.GraphQLArgument)
        self._input_field = cache(graphql.GraphQLInputField)
        self._lookups = {kind: self._lookup_input(kind) for kind in _SCALARS}
        self._int = graphql.GraphQLArgument(graphql.GraphQLInt)
        self._order = graphql.GraphQLArgument(self._list(graphql.GraphQLString), description='e.g. ["-price", "name"]')
        self._type_names = self._unique_type_names()
        self._types = {name: self._object(info) for name, info in managers.items()}
        self._filters = {name: self._filter(info) for name, info in managers.items()}

    # --- the roots ---

    def query(self) -> Any:
        return self._graphql.GraphQLObjectType(
            "Query", {f"{_lower(self._type_names[name])}List": self._page(name) for name in self._managers}
        )

    def mutation(self) -> Any:
        fields = {
            graphql_name(mutation.name): self._mutation(mutation)
            for info in self._managers.values()
            for mutation in info.mutations
        }
        return self._graphql.GraphQLObjectType("Mutation", fields) if fields else None

    def named_types(self) -> list[Any]:
        """The types that refer to one another, of all managers."""
        return [*self._types.values(), *self._filters.values()]

    def _page(self, name: str) -> Any:
        graphql, type_name = self._graphql, self._type_names[name]
        page = graphql.GraphQLObjectType(
            f"{type_name}Page",
            {
                "data": graphql.GraphQLField(self._required(self._list(self._types[name]))),
                "total_count": self._field(self._required(graphql.GraphQLInt)),
                "has_more": self._field(self._required(graphql.GraphQLBoolean)),
            },
        )
        arguments = {
            "filters": graphql.GraphQLArgument(self._filters[name]),
            "order_by": self._order,
            "limit": self._int,
            "offset": self._int,
        }
        return graphql.GraphQLField(
            graphql.GraphQLNonNull(page), arguments, description=self._managers[name].description or None
        )

    def _mutation(self, mutation: MutationInfo) -> Any:
        graphql = self._graphql
        arguments = {graphql_name(item.name): self._input(item) for item in mutation.inputs}
        match mutation.kind:
            case "create" | "update":
                result: Any = self._required(self._types[mutation.manager])
            case "delete":
                identity = next((item.type for item in mutation.inputs if item.name == "id"), None)
                result = self._scalars[identity or "json"]
            case "custom":
                result = self._scalars["json"]
        return graphql.GraphQLField(result, arguments, description=mutation.description or None)

    # --- the types of one manager ---

    def _object(self, info: ManagerInfo) -> Any:
        return self._graphql.GraphQLObjectType(
            self._type_names[info.name], lambda: self._fields(info), description=info.description or None
        )

    def _fields(self, info: ManagerInfo) -> dict[str, Any]:
        graphql = self._graphql
        fields: dict[str, Any] = {}
        for item in info.fields:
            scalar = self._scalars[item.type]
            output = scalar if item.nullable else self._required(scalar)
            fields[graphql_name(item.name)] = self._field(output, description=_text(item))
        for relation in info.relations:
            target = self._types.get(relation.target)
            if target is None:
                continue
            if relation.many:
                fields[graphql_name(relation.name)] = graphql.GraphQLField(
                    self._required(self._list(target)), {"limit": self._int}, description=relation.description or None
                )
            else:
                output = target if relation.nullable else self._required(target)
                fields[graphql_name(relation.name)] = self._field(output, description=relation.description or None)
        return fields

    def _filter(self, info: ManagerInfo) -> Any:
        return self._graphql.GraphQLInputObjectType(
            f"{self._type_names[info.name]}Filter", lambda: self._filter_fields(info)
        )

    def _filter_fields(self, info: ManagerInfo) -> dict[str, Any]:
        own = self._filters[info.name]
        fields: dict[str, Any] = {"and": self._list(own), "or": self._list(own), "not": own}
        fields |= {graphql_name(item.name): self._lookups[item.type] for item in info.fields if item.lookups}
        fields |= {
            graphql_name(item.name): self._filters[item.target]
            for item in info.relations
            if item.target in self._filters
        }
        return {name: self._input_field(kind) for name, kind in fields.items()}

    # --- small parts ---

    def _lookup_input(self, kind: FieldType) -> Any:
        graphql, scalar = self._graphql, self._scalars[kind]
        special = {
            "in": self._list(scalar),
            "range": self._list(scalar),
            "isnull": graphql.GraphQLBoolean,
            "date": self._scalars["date"],
            **dict.fromkeys(("year", "quarter", "month", "day", "weekday", "hour"), graphql.GraphQLInt),
        }
        fields = {name: graphql.GraphQLInputField(special.get(name, scalar)) for name in LOOKUPS[kind]}
        return graphql.GraphQLInputObjectType(f"{_SCALARS[kind][0]}Lookups", fields)

    def _input(self, item: InputInfo) -> Any:
        kind = self._list(self._scalars[item.type]) if item.many else self._scalars[item.type]
        return self._argument(self._required(kind) if item.required else kind, description=_text(item))

    def _list_of(self, kind: Any) -> Any:
        return self._graphql.GraphQLList(self._required(kind))

    def _unique_type_names(self) -> dict[str, str]:
        """``Part`` for ``PartManager``, unless that is a name of ours or of another manager: then ``PartManager``."""
        taken = {"Query", "Mutation", "Subscription", "Int", "ID", *(name for name, _ in _SCALARS.values())}
        taken |= {f"{name}Lookups" for name, _ in _SCALARS.values()}
        names: dict[str, str] = {}
        for manager in sorted(self._managers):
            stem = graphql_name(stem_of_manager(manager))
            names[manager] = graphql_name(manager) if {stem, f"{stem}Page", f"{stem}Filter"} & taken else stem
            taken |= {names[manager], f"{names[manager]}Page", f"{names[manager]}Filter"}
        return names


def _text(item: FieldInfo | InputInfo) -> str | None:
    choices = ", ".join(f"{value} ({label})" if label != str(value) else label for value, label in item.choices)
    parts = [item.description, f"One of: {choices}." if choices else ""]
    if isinstance(item, InputInfo) and item.relation is not None:
        parts.append(f"The id{'s' if item.many else ''} of {item.relation}.")
    return " ".join(part for part in parts if part) or None


def _lower(name: str) -> str:
    return name[:1].lower() + name[1:]
