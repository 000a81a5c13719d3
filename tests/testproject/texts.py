"""Texts as the database under test compares them.

Whether "Acme" equals "acme", and which of "z" and "Ä" comes first, is for the column's collation to say: SQLite
compares bytes, MariaDB mostly neither case nor accents nor spaces at the end. The naive walk asks the database about
two texts at a time, and about nothing else.
"""

from __future__ import annotations

from functools import lru_cache, total_ordering
from typing import TYPE_CHECKING, Any

from django.db import connections

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TEXT_LOOKUPS", "Text"]

TEXT_LOOKUPS = (*("iexact", "contains", "icontains", "startswith", "istartswith", "endswith", "iendswith"),)


@total_ordering
class Text:
    """A stored text: equal, smaller and like another one where the database says so."""

    def __init__(self, text: str, alias: str = "default") -> None:
        self.text, self.alias = text, alias

    def __repr__(self) -> str:
        return f"Text({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and (self.text == other.text or _answer(self.alias, "=", self.text, other.text))

    def __lt__(self, other: Text) -> bool:
        return _answer(self.alias, "<", self.text, other.text)

    def __hash__(self) -> int:
        return 0  # equal texts need not share a letter

    def matches(self, lookup: str, value: str) -> bool:
        """What a lookup such as ``icontains`` says."""
        return _matches(self.alias, lookup, self.text, value)


@lru_cache(100_000)
def _answer(alias: str, operator: str, left: str, right: str) -> bool:
    return _ask(alias, f"{{left}} {operator} {{right}}", left, right)


@lru_cache(100_000)
def _matches(alias: str, lookup: str, left: str, right: str) -> bool:
    connection: Any = connections[alias]
    pattern = connection.ops.prep_for_iexact_query(right) if lookup == "iexact" else _like(lookup, right, connection)
    cast: str = connection.ops.lookup_cast(lookup, "CharField")
    return _ask(alias, f"{cast.replace('%s', '{left}')} {connection.operators[lookup]}", left, pattern)


def _like(lookup: str, value: str, connection: Any) -> str:
    escape: Callable[[str], str] = connection.ops.prep_for_like_query
    before, after = ("" if "starts" in lookup else "%"), ("" if "ends" in lookup else "%")
    return f"{before}{escape(value)}{after}"


def _ask(alias: str, condition: str, left: str, right: str) -> bool:
    place = "%s"
    if connections[alias].vendor == "mysql":
        place = f"CONVERT(%s USING utf8mb4) COLLATE {_collation(alias)}"
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT " + condition.format(left=place, right=place), [left, right])
        return bool(cursor.fetchone()[0])


@lru_cache
def _collation(alias: str) -> str:
    """That of the shop's texts."""
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "SELECT collation_name FROM information_schema.columns WHERE table_schema = DATABASE() "
            "AND table_name = 'shop_part' AND column_name = 'name'"
        )
        return str(cursor.fetchone()[0])
