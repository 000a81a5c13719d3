"""The store, and a record of the statements that every thread sends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.db.backends.signals import connection_created

from gm_chat.persistence import threads
from gm_chat.persistence.conversations import DjangoTurnStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


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
