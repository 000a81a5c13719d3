"""The few statements of every turn without Django's work of composing them.

To compose a statement costs Django 0.2 to 0.6 ms, and SQLite 0.03 to execute it. A :class:`PreparedQuery` is a
queryset that each connection compiles once, with :class:`Parameter` in place of the values. :func:`insert` and
:func:`update` write the two plainest statements there are; no signal is sent. Values are adapted by their fields as
ever, and everything goes through Django's cursors, so that the log, wrappers and exceptions are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connections
from django.db.models import Expression

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import Field, Model, QuerySet
    from django.db.models.sql.compiler import SQLCompiler

__all__ = ["Parameter", "PreparedQuery", "insert", "insert_one", "update"]


class Parameter(Expression):
    """Stands in a queryset for a value that is given when it is executed; the field adapts the value."""

    def __init__(self, name: str, output_field: Field[Any, Any]) -> None:
        """Name the value."""
        super().__init__(output_field)
        self.name = name

    def as_sql(self, *_: Any) -> tuple[str, tuple[Any, ...]]:
        """Put itself in the value's place."""
        return "%s", (self,)


class PreparedQuery:
    """A queryset of ``values()`` whose only open ends are its :class:`Parameter`\\ s.

    What a connection compiled is kept in that connection: versions and settings of the server are its own, and it
    goes when the connection's thread goes.
    """

    def __init__(self, queryset: QuerySet[Any, Any]) -> None:
        """Take the queryset; nothing is compiled before the first :meth:`fetch`."""
        self._queryset = queryset

    def fetch(self, alias: str, **values: Any) -> list[dict[str, Any]]:
        """Return the rows, given the parameters' values by their names."""
        connection = connections[alias]
        statement = _kept_in(connection).get(self) or self._compile(connection)
        parameters = [
            part.output_field.get_db_prep_value(values[part.name], connection) if isinstance(part, Parameter) else part
            for part in statement.parameters
        ]
        with connection.cursor() as cursor:
            cursor.execute(statement.sql, parameters)
            rows = cursor.fetchall()
        converted = statement.compiler.apply_converters(rows, statement.converters)
        return [dict(zip(statement.names, row, strict=True)) for row in converted]

    def _compile(self, connection: BaseDatabaseWrapper) -> _Compiled:
        query = self._queryset.query.clone()
        compiler = query.get_compiler(connection=connection)
        sql, parameters = compiler.as_sql()
        converters = compiler.get_converters(column for column, *_ in compiler.select)
        statement = _Compiled(sql, parameters, query.values_select, compiler, converters)
        _kept_in(connection)[self] = statement
        return statement


class _Compiled(NamedTuple):
    sql: str
    parameters: Sequence[Any]
    names: Sequence[str]
    compiler: SQLCompiler
    converters: Any


def _kept_in(connection: BaseDatabaseWrapper) -> dict[PreparedQuery, _Compiled]:
    kept: dict[PreparedQuery, _Compiled] = vars(connection).setdefault("gm_chat_prepared", {})
    return kept


def insert(alias: str, model: type[Model], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows of values by ``attname``; what a row lacks gets its field's default.

    In one statement, unless they have more values than the database takes at once.
    """
    connection, fields = connections[alias], _inserted(model)
    size = max(connection.ops.bulk_batch_size(fields, rows), 1)
    with connection.cursor() as cursor:
        for start in range(0, len(rows), size):
            cursor.execute(*_insertion(connection, model, fields, rows[start : start + size]))


def insert_one(alias: str, model: type[Model], row: Mapping[str, Any]) -> int:
    """Insert a row of a model whose key the database counts up; return its key."""
    connection, meta = connections[alias], model._meta
    key = str(meta.pk.column)
    sql, parameters = _insertion(connection, model, _inserted(model), [row])
    with connection.cursor() as cursor:
        if connection.features.can_return_columns_from_insert:
            cursor.execute(f"{sql} RETURNING {connection.ops.quote_name(key)}", parameters)
            return int(cursor.fetchone()[0])
        cursor.execute(sql, parameters)
        return int(connection.ops.last_insert_id(cursor, meta.db_table, key))


def _inserted(model: type[Model]) -> list[Any]:
    return [field for field in model._meta.concrete_fields if field is not model._meta.auto_field]


def _insertion(
    connection: BaseDatabaseWrapper, model: type[Model], fields: Sequence[Any], rows: Sequence[Mapping[str, Any]]
) -> tuple[str, list[Any]]:
    quote = connection.ops.quote_name
    parameters = [
        field.get_db_prep_save(row[field.attname] if field.attname in row else field.get_default(), connection)
        for row in rows
        for field in fields
    ]
    columns = ", ".join([quote(field.column) for field in fields])
    places = ", ".join([f"({', '.join(['%s'] * len(fields))})"] * len(rows))
    # Into the text go the names of our own table and columns, quoted, and nothing else.
    return f"INSERT INTO {quote(model._meta.db_table)} ({columns}) VALUES {places}", parameters  # noqa: S608


def update(alias: str, model: type[Model], values: Mapping[str, Any], **where: Any) -> int:
    """Set columns of the rows whose columns equal ``where``, all by ``attname``; return how many rows matched."""
    connection, meta = connections[alias], model._meta
    quote = connection.ops.quote_name
    fields: dict[str, Any] = {field.attname: field for field in meta.concrete_fields}
    changes = ", ".join([f"{quote(fields[name].column)} = %s" for name in values])
    condition = " AND ".join([f"{quote(fields[name].column)} = %s" for name in where])
    parameters = [fields[name].get_db_prep_save(value, connection) for name, value in (*values.items(), *where.items())]
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {quote(meta.db_table)} SET {changes} WHERE {condition}", parameters)  # noqa: S608
        return int(cursor.rowcount)
