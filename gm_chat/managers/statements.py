"""A page's two statements without most of Django's work of composing them.

To compose the SELECT of a page and its COUNT costs Django about ten times what executing them costs SQLite. Of a query
that is one table and conditions, all values and all rights stand in the WHERE; around it the statement depends on
columns, order and limits alone. So Django composes the WHERE every time, and what stands around it once for each
such *frame*. It is kept by the connection that it was composed for: backends, versions and settings differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import EmptyResultSet, FullResultSet
from django.db import connections
from django.db.models import QuerySet
from django.db.models.sql import Query

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler

__all__ = ["Matching"]

_KEPT: Final = 200
"""How many frames a connection keeps before it forgets them all."""
_OF_CONDITIONS: Final = frozenset(
    {"where", "alias_map", "alias_refcount", "table_map", "used_aliases", "_lookup_joins", "base_table"}
    | {"default_ordering"}
)
"""Attributes of a query that conditions set, and one that never matters here: pages have an order, counts none."""
_MISSING: Final = object()

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class _Frame:
    """A SELECT but for its WHERE. ``converters`` are those of ``SQLCompiler.get_converters()``."""

    before: str
    after: str
    converters: Any


class Matching:
    """The rows of a queryset: a page of them, and their number."""

    def __init__(self, rows: QuerySet[Any]) -> None:
        """Take the queryset; its order does not matter."""
        self._rows = rows
        self._connection: BaseDatabaseWrapper = connections[rows.db]
        self._compiler: SQLCompiler = rows.query.get_compiler(connection=self._connection)

    def page(self, frame: Hashable | None, compose: Callable[[], QuerySet[Any]]) -> Rows:
        """Fetch what ``compose()`` makes of the queryset: an order, limits and a ``values_list()``.

        Equal ``frame``\\ s must stand for the same of these over the same model; ``None`` says that they hold values or
        rights.
        """
        if frame is None or self._where is None:
            return list(compose())
        where, params = self._where
        kept: dict[Hashable, _Frame | None] = vars(self._connection).setdefault("gm_chat_frames", {})
        key = (self._rows.model, bool(where), frame)
        if key not in kept:
            if len(kept) >= _KEPT:
                kept.clear()
            kept[key] = self._compose_frame(compose(), where, params)
        found = kept[key]
        if found is None:
            return list(compose())
        rows = self._execute(f"{found.before}{where}{found.after}", params)
        return list(map(tuple, self._compiler.apply_converters(rows, found.converters))) if found.converters else rows

    def count(self) -> int:
        """How many rows there are."""
        if self._where is None:
            return self._rows.count()
        where, params = self._where
        table = self._connection.ops.quote_name(self._rows.model._meta.db_table)
        sql = f"SELECT COUNT(*) FROM {table}{where}"  # noqa: S608 (every value is a parameter)
        return int(self._execute(sql, params)[0][0])

    @cached_property
    def _where(self) -> tuple[str, tuple[Any, ...]] | None:
        """The WHERE of this very queryset, if its statements can be made of frames."""
        where: Any = self._rows.query.where
        if not _is_bare(self._rows):
            return None
        if not where:
            return "", ()
        try:
            sql, params = self._compiler.compile(where)
        except (EmptyResultSet, FullResultSet):  # Django knows without the database what comes out
            return None
        return f" WHERE {sql}", tuple(params)

    def _compose_frame(self, page: QuerySet[Any], where: str, params: tuple[Any, ...]) -> _Frame | None:
        """The statement of ``page`` without its WHERE; ``None`` if it is not the one that it should be made of."""
        compiler = page.query.get_compiler(connection=self._connection)
        sql, all_params = compiler.as_sql()
        before, _, after = sql.partition(where) if where else (sql, "", "")
        columns = [column for column, *_ in compiler.select[: compiler.col_count]]
        if f"{before}{where}{after}" != sql or tuple(all_params) != params or compiler.has_composite_fields(columns):
            return None
        return _Frame(before, after, compiler.get_converters(columns))

    def _execute(self, sql: str, params: tuple[Any, ...]) -> Rows:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, params)
            return list(cursor.fetchall())


def _is_bare(rows: QuerySet[Any]) -> bool:
    """Whether a queryset is Django's own kind, over one table, and sets nothing but conditions."""
    query, plain = rows.query, Query(rows.model)
    if type(rows) is not QuerySet or type(query) is not Query:
        return False
    tables = {alias for alias, uses in query.alias_refcount.items() if uses}
    return tables <= {rows.model._meta.db_table} and all(
        value == getattr(plain, name, _MISSING) for name, value in vars(query).items() if name not in _OF_CONDITIONS
    )
