from __future__ import annotations

import io
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command

from gm_chat.management.commands import chat_schema
from gm_chat.managers import registry
from gm_chat.managers.index import SchemaIndex

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Any:
    holder = SimpleNamespace(index=SchemaIndex.build(binding.info for binding in registry.bindings().values()))
    monkeypatch.setattr(chat_schema, "get_runtime", lambda: holder)
    return holder


def test_the_schema_is_printed(index: Any) -> None:
    out = io.StringIO()
    call_command("chat_schema", stdout=out)
    assert "type Part {" in out.getvalue()
    assert "createPart(" in out.getvalue()


def test_the_schema_is_written_to_a_file(index: Any, tmp_path: Path) -> None:
    target, out = tmp_path / "schema.graphql", io.StringIO()
    call_command("chat_schema", "--output", str(target), stdout=out)
    assert "type Part {" in target.read_text(encoding="utf-8")
    assert out.getvalue() == ""


def test_a_file_that_cannot_be_written_is_named(index: Any, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"cannot write '.*missing.schema\.graphql': No such file"):
        call_command("chat_schema", "--output", str(tmp_path / "missing" / "schema.graphql"))


def test_without_managers_the_command_says_what_to_do(index: Any) -> None:
    index.index = SchemaIndex.build([])
    with pytest.raises(CommandError, match=r"no manager is exposed: declare one in an app's chat_managers\.py"):
        call_command("chat_schema")
