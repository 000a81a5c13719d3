"""The rows, made by the database itself: the same numbers in each, and a million of them in seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

from querybench.store.models import MUSIC, SALES

if TYPE_CHECKING:
    from collections.abc import Sequence

ARTISTS, ALBUMS, TRACKS, CUSTOMERS = 100, 600, 6_000, 2_000

# How each database counts from 0 up to, and without, a number, writes text, and adds days to a date.
COUNTING = {
    "sqlite": "(WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < {last}) SELECT n FROM c) c",
    "postgresql": "(SELECT generate_series(0::bigint, {last}) AS n) c",
    "mysql": "(SELECT seq AS n FROM seq_0_to_{last}) c",
}
PADDED = {
    "sqlite": "printf('%03d', {0})",
    "postgresql": "lpad(({0})::text, 3, '0')",
    "mysql": "lpad({0}, 3, '0')",
}
DAY = {
    "sqlite": "date('2023-01-01', '+' || ({0}) || ' days')",
    "postgresql": "date '2023-01-01' + ({0})::int",
    "mysql": "date_add('2023-01-01', interval ({0}) day)",
}
TEXT = {"sqlite": "'{0}' || {1}", "postgresql": "'{0}' || {1}", "mysql": "concat('{0}', {1})"}


def create(*, sales: int) -> None:
    """Make all tables with their indexes and fill them; without ``sales``, those for the page alone."""
    vendor = connection.vendor
    with connection.schema_editor() as editor:
        for model in (*MUSIC, *(SALES if sales else ())):
            editor.create_model(model)

    def text(prefix: str, number: str) -> str:
        return TEXT[vendor].format(prefix, number)

    def day(days: str) -> str:
        return DAY[vendor].format(days)

    _insert("artist", ARTISTS, ("id", "name"), ("n + 1", text("artist ", "n")))
    number = PADDED[vendor].format("n * 7919 % 600")
    _insert("album", ALBUMS, ("id", "title", "artist_id"), ("n + 1", text("album ", number), f"n % {ARTISTS} + 1"))
    _insert(
        "track",
        TRACKS,
        ("id", "name", "album_id", "milliseconds", "unit_price"),
        ("n + 1", text("track ", "n"), f"n % {ALBUMS} + 1", "200000 + n", "0.99"),
    )
    if sales:
        _insert(
            "customer",
            CUSTOMERS,
            ("id", "name", "region"),
            ("n + 1", text("customer ", "n"), text("region ", "n % 12")),
        )
        _insert(
            "sale",
            sales,
            ("id", "customer_id", "status", "sold_on", "paid_on", "quantity", "price"),
            (
                "n + 1",
                f"n * 7919 % {CUSTOMERS} + 1",
                "case n % 5 when 0 then 'open' when 1 then 'returned' else 'paid' end",
                day("n * 31 % 1096"),
                f"case n % 5 when 0 then null else {day('n * 31 % 1096 + n % 40')} end",
                "n % 9 + 1",
                "(n * 37 % 9973 + 100) / 100.0",
            ),
        )
    with connection.cursor() as cursor:
        for model in (*MUSIC, *(SALES if sales else ())):
            table = connection.ops.quote_name(model._meta.db_table)
            cursor.execute(f"ANALYZE {'TABLE ' if vendor == 'mysql' else ''}{table}")


def _insert(name: str, rows: int, columns: Sequence[str], values: Sequence[str]) -> None:
    counting = COUNTING[connection.vendor].format(last=rows - 1)
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO store_{name} ({', '.join(columns)}) SELECT {', '.join(values)} FROM {counting}")
