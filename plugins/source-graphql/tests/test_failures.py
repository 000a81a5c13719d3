"""Errors, denials and deadlines of a schema, made of plain graphql-core."""

from __future__ import annotations

import logging
import os
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from desks import Desk, actor_of, graphql_source
from django.db import connection, connections
from gm_chat_source_graphql.deadline import watched
from gm_chat_source_graphql.errors import is_denial
from graphql import GraphQLError
from shop_schemas import with_ariadne
from testproject.shop import models
from testproject.shop_rows import fill_shop

from gm_chat.plugin import ToolError

SLOW = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 300000000) SELECT max(x) FROM n"


@pytest.fixture
def desk(db: None) -> Desk:
    users = fill_shop(parts=12)
    return Desk(graphql_source("ariadne"), actor_of(users["plain"]))


def resolving(monkeypatch: pytest.MonkeyPatch, type_name: str, field: str, resolve: Any) -> None:
    monkeypatch.setattr(with_ariadne.schema.type_map[type_name].fields[field], "resolve", resolve)  # type: ignore[attr-defined]


def raising(error: Exception) -> Any:
    def resolve(*_: Any, **__: Any) -> Any:
        raise error

    return resolve


def test_an_error_is_told_without_its_text(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    resolving(monkeypatch, "Part", "weight", raising(RuntimeError("password=hunter2 at db-7")))
    with caplog.at_level(logging.ERROR), pytest.raises(ToolError) as caught:
        desk.ask("PartManager", ["number", "weight"])
    assert caught.value.code == "failed"
    assert "hunter2" not in str(caught.value.as_result())
    assert "hunter2" in caplog.text
    assert desk.ask("PartManager", ["number"]).total_count > 0


def test_what_is_denied_is_absent(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    denied = GraphQLError("no", extensions={"code": "FORBIDDEN"})
    resolving(monkeypatch, "Query", "suppliers", raising(denied))
    page = desk.ask("SupplierManager", ["name"])
    assert (list(page.data), page.total_count, page.has_more) == ([], 0, False)
    resolving(monkeypatch, "Part", "supplier", raising(denied))
    assert {row["supplier"] for row in desk.ask("PartManager", [{"supplier": ["name"]}]).data} == {None}
    monkeypatch.undo()
    assert {row["cost"] for row in desk.ask("PartManager", ["cost"]).data} == {None}


def test_an_object_of_nulls_is_no_row(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = SimpleNamespace(id=None, name="", country="", rating=None)
    monkeypatch.setattr(
        with_ariadne.schema.type_map["Supplier"].fields["id"], "type", with_ariadne.schema.type_map["ID"]
    )  # type: ignore[attr-defined]
    resolving(monkeypatch, "Part", "supplier", lambda *_: hidden)
    desk = Desk(graphql_source("ariadne"), desk.actor)
    page = desk.ask("PartManager", ["number", "supplier__name"], filters={"supplier": None})
    assert {row["supplier"] for row in page.data} == {None}
    assert page.total_count == models.Part.objects.exclude(status="draft").count()


def test_pages_that_overlap_are_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "Query", "materials", lambda *_, **__: models.Material.objects.all()[:3])
    with pytest.raises(ToolError, match="pages of MaterialManager overlap") as caught:
        desk.ask("MaterialManager", ["name"])
    assert caught.value.code == "unsupported"


@pytest.mark.parametrize(
    ("error", "denies"),
    [
        (GraphQLError("x", original_error=PermissionError()), True),
        (GraphQLError("x", extensions={"code": "unauthenticated"}), True),
        (GraphQLError("you have no permission"), False),
        (GraphQLError("x", extensions={"code": 403}), False),
    ],
)
def test_denials_are_recognised_by_type_and_code(error: GraphQLError, denies: bool) -> None:
    assert is_denial(error) is denies


def test_a_statement_is_stopped_at_the_deadline(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: Any) -> Any:
        with connection.cursor() as cursor:
            cursor.execute(SLOW)
            return cursor.fetchone()[0]

    resolving(monkeypatch, "Part", "weight", slow)
    desk.deadline = time.monotonic() + 0.2
    with pytest.raises(ToolError) as caught:
        desk.ask("PartManager", ["weight"])
    assert caught.value.code == "timeout"
    monkeypatch.undo()
    desk.deadline = time.monotonic() + 60
    assert desk.ask("PartManager", ["weight"]).total_count > 0


def test_many_quick_statements_are_stopped_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def quick(*_: Any) -> Any:
        ran.append(models.Part.objects.count())
        time.sleep(0.05)
        return 1.0

    resolving(monkeypatch, "Part", "weight", quick)
    desk.deadline = time.monotonic() + 0.12
    with pytest.raises(ToolError, match="took too long"):
        desk.ask("PartManager", ["weight"])
    assert len(ran) < models.Part.objects.exclude(status="draft").count()


def test_nothing_is_left_running(db: None) -> None:
    before = threading.active_count()
    with watched(time.monotonic() + 60):
        assert models.Part.objects.count() == 0
    assert threading.active_count() <= before + 1
    assert not connection.execute_wrappers


def test_a_server_that_works_is_stopped(django_db_blocker: Any) -> None:
    """On PostgreSQL and MariaDB, by a second connection; the first is closed, as the word may come late."""
    wanted = os.environ.get("GM_CHAT_REQUIRE", "")
    servers = {
        "postgres": ("django.db.backends.postgresql", "postgres", "SELECT pg_sleep(20)"),
        "mariadb": ("django.db.backends.mysql", "test", "SELECT SLEEP(20) FROM information_schema.tables"),
    }
    for name, (engine, database, sql) in servers.items():
        if name not in wanted:
            continue
        place = {"ENGINE": engine, "NAME": database, "USER": "root", "HOST": "127.0.0.1", "OPTIONS": {}}
        connections.settings["watched"] = {**connections.settings["default"], **place}
        try:
            with django_db_blocker.unblock():
                started = time.monotonic()
                with pytest.raises(ToolError, match="took too long"), watched(started + 0.3):
                    connections["watched"].cursor().execute(sql)
                assert time.monotonic() - started < 15
                with connections["watched"].cursor() as cursor:
                    cursor.execute("SELECT 1")
                    assert cursor.fetchone() == (1,)
        finally:
            with django_db_blocker.unblock():
                connections["watched"].close()
            del connections["watched"], connections.settings["watched"]
