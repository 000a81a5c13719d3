"""Real data that nobody here wrote: each question in one ``query`` call of few statements, equal to SQL."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext
from testproject.calling import call
from testproject.chinook.managers import MANAGERS
from testproject.chinook.questions import QUESTIONS, Question
from testproject.chinook.router import ALIAS

from gm_chat.managers.describe import describe
from gm_chat.managers.index import SchemaIndex
from gm_chat.managers.service import DataService
from gm_chat.managers.source import DjangoModelSource
from gm_chat.plugin import Actor, ToolContext, TurnContext
from gm_chat.tools import query, search_managers

pytestmark = pytest.mark.django_db(databases=["default", ALIAS])


@pytest.fixture
def context(settings: Any) -> ToolContext:
    settings.TIME_ZONE = "UTC"
    source = DjangoModelSource(describe(MANAGERS).bindings)
    service = DataService(SchemaIndex.build(source.describe()), [source])
    return ToolContext(TurnContext("turn", None, Actor(), "", "http"), "call", service, {"max_results": 200})


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text)
def test_one_call_answers_as_sql_does(question: Question, context: ToolContext) -> None:
    with CaptureQueriesContext(connections[ALIAS]) as statements:
        result = call(query, question.args, context)
    assert len(statements) <= 4
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(question.sql)
        expected = cursor.fetchall()
    assert expected, "a question without an answer tests nothing"
    if question.counts:
        assert expected == [(result["total_count"],)]
        return
    lines = [tuple(line[column] for column in question.columns) for row in result["data"] for line in lines_of(row)]
    assert lines == expected
    assert not result.get("truncated")
    assert not result.get("cut_lists")


def test_the_first_question_takes_one_statement(context: ToolContext) -> None:
    with CaptureQueriesContext(connections[ALIAS]) as statements:
        call(query, QUESTIONS[0].args, context)
    assert len(statements) == 1


def test_all_tables_are_exposed(context: ToolContext) -> None:
    with connections[ALIAS].cursor() as cursor:
        tables = connections[ALIAS].introspection.table_names(cursor)
    assert len(MANAGERS) == len([table for table in tables if not table.startswith("sqlite_")]) == 11
    for manager in MANAGERS:
        assert manager.model is not None
        result = call(query, {"manager": manager.__name__, "fields": ["*"], "limit": 1}, context)
        assert result["total_count"] == manager.model._default_manager.count() > 0
        assert call(search_managers, {"query": manager.__name__}, context)[0]["manager"] == manager.__name__


def lines_of(row: dict[str, Any], prefix: str = "") -> list[dict[str, Any]]:
    """A nested row as flat lines, one for each item of its lists, by dotted path."""
    lines: list[dict[str, Any]] = [{}]
    for name, value in row.items():
        path = prefix + name
        match value:
            case dict():
                inner = lines_of(value, f"{path}.")
            case list():
                inner = [line for item in value for line in lines_of(item, f"{path}.")]
            case _:
                inner = [{path: value}]
        lines = [{**line, **more} for line in lines for more in inner]
    return [_Missing(line) for line in lines]


class _Missing(dict[str, Any]):
    """Nothing stands behind a relation that is null."""

    def __missing__(self, key: str) -> None:
        parents = [path for path, value in self.items() if value is None and key.startswith(f"{path}.")]
        if not parents:
            raise KeyError(key)
