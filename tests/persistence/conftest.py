"""The store, a record of the statements that every thread sends, and the databases to run on."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import DatabaseError, connections
from django.db.backends.signals import connection_created

from gm_chat.persistence import threads
from gm_chat.persistence.conversations import DjangoTurnStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


SERVERS: dict[str, dict[str, Any]] = {
    "postgres": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ.get("PGDATABASE", "postgres"),
        "USER": os.environ.get("PGUSER", "postgres"),
        "HOST": os.environ.get("PGHOST", "127.0.0.1"),
        "PORT": os.environ.get("PGPORT", ""),
    },
    "mariadb": {
        "ENGINE": "django.db.backends.mysql",
        "NAME": os.environ.get("MYSQL_DATABASE", "test"),
        "USER": os.environ.get("MYSQL_USER", "root"),
        "HOST": os.environ.get("MYSQL_HOST", "localhost"),
    },
}
SERVERS["postgres-binding"] = SERVERS["postgres"] | {"OPTIONS": {"server_side_binding": True}}


@pytest.fixture(scope="module", params=["sqlite", "postgres", "mariadb"])
def alias(request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: Any) -> Iterator[str]:
    """A database with the chat's tables: the test project's, or one of this module's own on a server."""
    if request.param == "sqlite":
        yield "default"
        return
    server = request.param.partition("-")[0]
    module = request.module.__name__.rpartition(".")[2]
    # The pool's threads keep a connection's settings by its alias, so each module has one of its own.
    alias, name = f"{module}_{request.param}", f"gm_chat_{os.getpid()}_{module}"
    settings = {**connections.databases["default"], "OPTIONS": {}, "PORT": "", **SERVERS[request.param]}
    connections.databases[alias] = settings
    with django_db_blocker.unblock():
        try:
            administer(alias, f"CREATE DATABASE {name}")
        except (DatabaseError, ImproperlyConfigured) as error:  # no server, no driver
            with suppress(AttributeError):
                del connections[alias]
            del connections.databases[alias]
            if server in os.environ.get("GM_CHAT_REQUIRE", "").split(","):
                raise
            pytest.skip(f"no {server} to test with: {type(error).__name__}")
        try:
            settings["NAME"] = name
            call_command("migrate", database=alias, verbosity=0)
            yield alias
        finally:
            connections[alias].close()
            time.sleep(2 * threads.IDLE_SECONDS)  # the pool's threads close their connections
            settings["NAME"] = SERVERS[request.param]["NAME"]
            administer(alias, f"DROP DATABASE {name}")
            del connections[alias], connections.databases[alias]


def administer(alias: str, statement: str) -> None:
    with connections[alias].cursor() as cursor:
        cursor.execute(statement)
    connections[alias].close()


@pytest.fixture
def store() -> DjangoTurnStore:
    return DjangoTurnStore()


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Data statements of the pool's threads, which are new ones; BEGIN, SAVEPOINT and PRAGMA are left out."""
    monkeypatch.setattr(threads, "_pool", threads._Pool(threads.POOL_SIZE))
    monkeypatch.setattr(threads, "_pool_apart", threads._Pool(1))
    recorded: list[str] = []

    def record(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.split(None, 1)[0] in {"SELECT", "INSERT", "UPDATE", "DELETE"}:
            recorded.append(sql)
        return execute(sql, params, many, context)

    def watch(connection: Any, **_: Any) -> None:
        if record not in connection.execute_wrappers:  # it may be open for the second time
            connection.execute_wrappers.append(record)

    connection_created.connect(watch)
    try:
        yield recorded
    finally:
        connection_created.disconnect(watch)


@pytest.fixture(autouse=True)
async def close_connections() -> AsyncIterator[None]:
    """Close what a test's own queries opened in the thread for them: PostgreSQL drops no database that is in use."""
    yield
    await sync_to_async(connections.close_all)()
