"""A schema of any library, and that library's own way to execute it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.module_loading import import_string
from graphql import GraphQLSchema, graphql_sync

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Executable", "executable", "load"]


@dataclass(frozen=True, slots=True)
class Executable:
    """``execute(document, variables, context)`` gives what has ``data`` and ``errors``, as graphql-core's result does.

    A library's own ``execute`` runs what a project has put into its schema: extensions, middleware, an optimizer.
    """

    schema: GraphQLSchema
    execute: Callable[[str, Mapping[str, Any], Any], Any]


def load(path: str) -> Executable:
    """Import a schema by its dotted path. Raises ``ImportError``, or ``TypeError`` if no schema is there."""
    return executable(import_string(path), path)


def executable(found: Any, path: str = "schema") -> Executable:
    """Make a schema of graphql-core, ariadne, graphene or strawberry executable."""
    if isinstance(found, GraphQLSchema):  # ariadne's is one

        def execute(document: str, variables: Mapping[str, Any], context: Any) -> Any:
            return graphql_sync(found, document, variable_values=dict(variables), context_value=context)

        return Executable(found, execute)
    for attribute, method in (("graphql_schema", "execute"), ("_schema", "execute_sync")):  # graphene, strawberry
        schema = getattr(found, attribute, None)
        if isinstance(schema, GraphQLSchema) and callable(getattr(found, method, None)):
            return Executable(schema, _own(getattr(found, method)))
    raise TypeError(
        f"{path!r} is a {type(found).__name__}; expected a schema of graphene, strawberry, ariadne or graphql-core"
    )


def _own(method: Callable[..., Any]) -> Callable[[str, Mapping[str, Any], Any], Any]:
    def execute(document: str, variables: Mapping[str, Any], context: Any) -> Any:
        return method(document, variable_values=dict(variables), context_value=context)

    return execute
