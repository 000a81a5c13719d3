"""The benchmark's own answers: its SQL, run by SQLite over the same rows on the same day."""

from __future__ import annotations

import csv
import sqlite3
from datetime import date, datetime, time
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

from testproject.defog.managers import MODELS
from testproject.defog.script import inserted_rows

if TYPE_CHECKING:
    from pathlib import Path

    from django.db.models import Model

__all__ = ["NOW", "Row", "database_of", "questions", "reference_answers", "rows_of"]

NOW = datetime(2023, 11, 15, 12, 0)  # noqa: DTZ001 - UTC, as SQLite's texts are
"""A Wednesday on which every question's SQL gives rows."""
Row = tuple[Any, ...]


@cache
def questions(folder: Path) -> list[dict[str, str]]:
    """The benchmark's rows: ``db_name``, ``question``, ``query`` and more."""
    with (folder / "questions.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def rows_of(database: str, folder: Path) -> list[tuple[type[Model], dict[str, Any]]]:
    """Each model's rows as keyword arguments by column, of the columns' types; moments are naive, in UTC."""
    models = {model._meta.db_table: model for model in MODELS[database]}
    script = (folder / f"{database}.sql").read_text(encoding="utf-8")
    return [(models[row.table], _typed(models[row.table], row.values)) for row in inserted_rows(script, NOW)]


def _typed(model: type[Model], values: dict[str, Any]) -> dict[str, Any]:
    typed = {}
    for column in model._meta.concrete_fields:
        name = column.column
        if name is None:  # a key of several columns
            continue
        value = values.get(name, NOW if name in ("crtd_ts", "created_at") else None)
        if value is not None and column.get_internal_type() == "DateTimeField":
            value = datetime.fromisoformat(value) if isinstance(value, str) else value
            value = value if isinstance(value, datetime) else datetime.combine(value, time())
        elif value is not None and column.get_internal_type() == "DateField":
            value = date.fromisoformat(value) if isinstance(value, str) else value
            value = value.date() if isinstance(value, datetime) else value
        typed[name] = value
    return typed


@cache
def database_of(name: str, folder: Path) -> sqlite3.Connection:
    """One of the two databases, in memory, as the benchmark's SQL expects it."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    for model in MODELS[name]:
        columns = [item.column for item in model._meta.concrete_fields if item.column]
        connection.execute(f"CREATE TABLE {model._meta.db_table} ({', '.join(columns)})")
    for model, values in rows_of(name, folder):
        marks = ", ".join("?" * len(values))
        statement = f"INSERT INTO {model._meta.db_table} ({', '.join(values)}) VALUES ({marks})"  # noqa: S608
        connection.execute(statement, [_stored(value) for value in values.values()])
    return connection


def _stored(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value


def reference_answers(index: int, folder: Path) -> list[list[Row]]:
    """What the question's SQL gives, for each of the queries that its cell holds."""
    question = questions(folder)[index]
    database = database_of(question["db_name"], folder)
    queries = [query for query in question["query"].split(";") if query.strip()]
    now = f"'{NOW.isoformat(sep=' ')}'"
    return [database.execute(query.replace("'now'", now)).fetchall() for query in queries]
