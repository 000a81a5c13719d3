"""The table: what is kept, for how long, and what happens when the database does not answer."""

import asyncio
import importlib
import io
import json
import threading
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from asgiref.sync import sync_to_async
from django.apps import apps
from django.contrib.admin import site
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, connections
from django.test import RequestFactory
from django.utils import timezone
from gm_chat_audit_logging import database, plugin
from gm_chat_audit_logging.database import DatabaseSink
from gm_chat_audit_logging.models import AuditRecord

from gm_chat.audit import AuditPolicy
from gm_chat.engine.audit import AuditError, AuditTrail
from gm_chat.plugin import Actor, TurnContext
from gm_chat.testing import make_host
from gm_chat.testing.hook_contracts import AuditSinksContract

pytestmark = pytest.mark.django_db(transaction=True)

CONTEXT = TurnContext("t1", "c", Actor(user_id="7"), "NUL \0, \ud800 and Grüße", "http")


class TestAuditSinks(AuditSinksContract):
    plugin = plugin
    name = "audit_logging"
    options: ClassVar[dict[str, Any]] = {"logger": None, "database": True}

    def test_each_event_is_a_row(self) -> None:
        self.run(self.host().audit_sinks[0], self.events)
        assert [record.data for record in AuditRecord.objects.order_by("id")] == list(self.events)


def stored() -> list[AuditRecord]:
    """The rows, read in a thread of Django's, whose connection nobody else would close."""
    rows = list(AuditRecord.objects.order_by("id"))
    connections.close_all()
    return rows


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "gm-chat-audit-database"]


async def test_a_trail_of_the_chat_fills_it() -> None:
    trail = AuditTrail([DatabaseSink()], AuditPolicy(level="all"), required=["audit_database"])
    await trail.user_message(CONTEXT)
    await trail.tool_call(CONTEXT, "query", {"filters": {"api_key": "x"}}, call_id="c1")
    rows = await sync_to_async(stored)()
    assert [(row.event_type, row.turn_id, row.actor) for row in rows] == [
        ("user_message", "t1", "user:7"),
        ("tool_call", "t1", "user:7"),
    ]
    assert rows[0].data["content"] == "NUL \ufffd, \ufffd and Grüße"
    assert rows[1].data["args"] == {"filters": {"api_key": "[redacted]"}}
    assert str(rows[0]).startswith("user_message at ")
    (thread,) = threads()
    await trail.aclose()
    await asyncio.to_thread(thread.join, 30)
    assert threads() == []


async def test_where_it_is_required_and_fails_nothing_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OperationalError("disk full")

    monkeypatch.setattr(AuditRecord, "save", fail)
    trail = AuditTrail([DatabaseSink()], AuditPolicy(level="all"), required=["audit_database"])
    with pytest.raises(AuditError, match="disk full"):
        await trail.tool_call(CONTEXT, "mutate", {})
    await trail.aclose()


def test_a_lost_connection_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    connection.ensure_connection()
    attempts: list[str] = []
    save = AuditRecord.save

    def lost_at_first(self: AuditRecord, **options: Any) -> None:
        attempts.append(self.event_type)
        if len(attempts) == 1:
            raise OperationalError("server closed the connection")
        save(self, **options)

    monkeypatch.setattr(AuditRecord, "save", lost_at_first)
    record = AuditRecord.of({"event_type": "user_message"}, "{}")
    database._insert(record)
    assert attempts == ["user_message"] * 2
    assert AuditRecord.objects.count() == 1


def test_a_new_connection_is_not_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        attempts.append("save")
        raise OperationalError("disk full")

    attempts: list[str] = []
    monkeypatch.setattr(AuditRecord, "save", fail)
    connection.close()
    with pytest.raises(OperationalError, match="disk full"):
        database._insert(AuditRecord.of({"event_type": "user_message"}, "{}"))
    assert attempts == ["save"]


async def test_it_must_be_started() -> None:
    with pytest.raises(RuntimeError, match="was not started"):
        await DatabaseSink().emit({"event_type": "user_message"})


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["audit_logging"]),
        ({"database": True}, ["audit_logging", "audit_database"]),
        ({"database": True, "logger": None}, ["audit_database"]),
        ({"logger": None}, []),
    ],
)
def test_the_options_choose_the_sinks(options: Mapping[str, Any], names: list[str]) -> None:
    host = make_host({"audit_logging": plugin}, options={"audit_logging": options})
    assert [sink.name for sink in host.audit_sinks] == names


def test_without_the_app_it_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apps, "is_installed", lambda name: False)
    host = make_host({"audit_logging": plugin}, options={"audit_logging": {"database": True}}, strict=False)
    assert host.audit_sinks == ()
    assert 'add "gm_chat_audit_logging" to INSTALLED_APPS' in host.problems[0].message
    assert host.problems[0].severity == "error"


def test_the_migrations_are_complete() -> None:
    call_command("makemigrations", "gm_chat_audit_logging", "--check", "--dry-run", stdout=io.StringIO())


# --- retention ----------------------------------------------------------------------------------------------------


def keep(*ages: int) -> None:
    now = timezone.now()
    for age in ages:
        AuditRecord.objects.create(created=now - timedelta(days=age), event_type="user_message", event="{}")


def clean(*arguments: str) -> str:
    out = io.StringIO()
    call_command("chat_audit_cleanup", *arguments, stdout=out)
    return out.getvalue().strip()


def test_what_is_too_old_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gm_chat_audit_logging.management.commands.chat_audit_cleanup.BATCH_SIZE", 2)
    keep(1, 89, 91, 92, 93, 400, 401)
    assert clean("--days", "90", "--dry-run") == "Would delete 5 audit events older than 90 days."
    assert AuditRecord.objects.count() == 7
    assert clean("--days=90") == "Deleted 5 audit events older than 90 days."
    assert AuditRecord.objects.count() == 2


@pytest.mark.parametrize("arguments", [(), ("--days", "0"), ("--days", "x")])
def test_how_long_must_be_said(arguments: tuple[str, ...]) -> None:
    keep(400)
    with pytest.raises(CommandError):
        clean(*arguments)
    assert AuditRecord.objects.count() == 1


# --- the admin ----------------------------------------------------------------------------------------------------


def test_the_admin_shows_and_changes_nothing(settings: Any) -> None:
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "django.contrib.messages", "django.contrib.admin"]
    admin = importlib.import_module("gm_chat_audit_logging.admin")
    page = admin.AuditRecordAdmin(AuditRecord, site)
    request = RequestFactory().get("/")
    assert not page.has_add_permission(request)
    assert not page.has_change_permission(request)
    assert not page.has_delete_permission(request)
    event = {"event_type": "user_message", "content": "<b>é</b>"}
    shown = page.event_in_lines(AuditRecord.of(event, json.dumps(event)))
    assert "&lt;b&gt;é&lt;/b&gt;" in shown
    assert "<b>" not in shown
