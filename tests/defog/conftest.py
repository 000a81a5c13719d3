"""The benchmark's two databases as tables beside the project's own, on a day of the past."""

from __future__ import annotations

import os
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.utils import timezone
from testproject.defog.managers import MANAGERS, MODELS
from testproject.defog.reference import NOW, rows_of

from gm_chat.managers import registry
from gm_chat.managers.index import SchemaIndex
from gm_chat.managers.service import DataService
from gm_chat.managers.source import DjangoModelSource
from gm_chat.plugin import Actor, ToolContext, TurnContext

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SHARED = Path(os.environ.get("GM_CHAT_SHARED") or Path(__file__).resolve().parents[2].parent / "shared")


@pytest.fixture(scope="session")
def folder() -> Path:
    """Where the benchmark lies."""
    found = SHARED / "data" / "defog"
    if not (found / "questions.csv").exists():
        if "shared" in os.environ.get("GM_CHAT_REQUIRE", "").split(","):
            pytest.fail(f"GM_CHAT_REQUIRE names shared, but there is no {found}")
        pytest.skip(f"there is no {found}; set GM_CHAT_SHARED")
    return found


@pytest.fixture(scope="module")
def contexts(django_db_setup: None, django_db_blocker: Any, folder: Path) -> Iterator[Mapping[str, ToolContext]]:
    """For each database, what a tool needs to ask it as somebody who may see everything."""
    with django_db_blocker.unblock():
        models = [model for tables in MODELS.values() for model in tables]
        with connection.schema_editor() as editor:
            for model in models:
                editor.create_model(model)
        for name in MODELS:
            for model, values in rows_of(name, folder):
                columns = {field.column: field.attname for field in model._meta.concrete_fields}
                moments = {key for key, value in values.items() if hasattr(value, "hour")}
                model._base_manager.create(
                    **{columns[key]: v.replace(tzinfo=UTC) if key in moments else v for key, v in values.items()}
                )
        try:
            with timezone.override(UTC):
                yield {name: context_of(name) for name in MODELS}
        finally:
            with connection.schema_editor() as editor:
                for model in reversed(models):
                    editor.delete_model(model)


def context_of(name: str) -> ToolContext:
    with registry.using(*MANAGERS[name]) as bindings:
        source = DjangoModelSource(bindings)
    service = DataService(SchemaIndex.build(source.describe()), [source])
    actor = Actor(user_id="1", user=Auditor())
    turn = TurnContext("turn", None, actor, "", "http")
    return ToolContext(turn, "call", service, {"max_results": 200}, deadline=None)


class Auditor:
    """Somebody with every permission, who needs no row."""

    is_authenticated = True
    is_active = True
    is_superuser = True
    pk = 1

    def has_perm(self, permission: str, obj: object = None) -> bool:
        return True


@pytest.fixture(autouse=True)
def _that_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timezone, "now", lambda: NOW.replace(tzinfo=UTC))
