"""Where the tables lie: a SQLite file, or a database of its own on a server, gone afterwards."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["KINDS", "temporary"]

KINDS: Final = ("sqlite", "postgresql", "mariadb")


@contextmanager
def temporary(kind: str) -> Iterator[dict[str, Any]]:
    """A new, empty database as Django's settings name it. Servers are found as their own clients find them."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="querybench-") as folder:
            file, held = str(Path(folder) / "bench.sqlite3"), {"init_command": "PRAGMA cache_size=-200000"}
            yield {"ENGINE": "django.db.backends.sqlite3", "NAME": file, "OPTIONS": held}  # all of it stays in memory
        return
    name = f"gm_chat_querybench_{os.getpid()}"
    execute = _postgresql if kind == "postgresql" else _mariadb
    execute(f"CREATE DATABASE {name}")
    try:
        yield {**(_POSTGRESQL if kind == "postgresql" else _MARIADB), "NAME": name}
    finally:
        execute(f"DROP DATABASE {name}{' WITH (FORCE)' if kind == 'postgresql' else ''}")


_POSTGRESQL: Final = {
    "ENGINE": "django.db.backends.postgresql",
    "USER": os.environ.get("PGUSER", "postgres"),
    "PASSWORD": os.environ.get("PGPASSWORD", ""),
    "HOST": os.environ.get("PGHOST", "127.0.0.1"),
    "PORT": os.environ.get("PGPORT", ""),
}
_MARIADB: Final = {
    "ENGINE": "django.db.backends.mysql",
    "USER": os.environ.get("MYSQL_USER", "root"),
    "PASSWORD": os.environ.get("MYSQL_PASSWORD", ""),
    "HOST": os.environ.get("MYSQL_HOST", "localhost"),
}


def _postgresql(statement: str) -> None:
    import psycopg  # here, as who measures SQLite alone needs no driver

    given = {
        "user": _POSTGRESQL["USER"],
        "password": _POSTGRESQL["PASSWORD"] or None,
        "host": _POSTGRESQL["HOST"],
        "port": _POSTGRESQL["PORT"] or None,
    }
    with psycopg.connect(dbname="postgres", autocommit=True, **given) as connection:
        connection.execute(statement)


def _mariadb(statement: str) -> None:
    import pymysql

    connection = pymysql.connect(user=_MARIADB["USER"], password=_MARIADB["PASSWORD"], host=_MARIADB["HOST"])
    try:
        connection.cursor().execute(statement)
    finally:
        connection.close()
