"""The benchmark's questions, asked with the chat's tools, against the benchmark's SQL.

``calls.json`` holds how each question is answered, by its place in the benchmark's file, which has its text and SQL:

* ``calls``: one or two tool calls.
* ``columns``: for each column of the SQL's result where its value stands in ours: a key, a path through nested objects,
  or ``{key: "month" | "date"}`` where the SQL shows a date at another granularity.
* ``ordered``: the order of rows is compared too; there are no ties.
* ``combine``: a calculation with the rows of the calls, ``first`` and ``second``, that gives the rows to compare.
"""

from __future__ import annotations

import json
import math
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from testproject.calling import call
from testproject.defog.reference import Row, questions, reference_answers

from gm_chat.tools import aggregate, query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gm_chat.plugin import ToolContext, ToolSpec

pytestmark = pytest.mark.django_db

ENTRIES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "calls.json").read_text(encoding="utf-8"))
UNANSWERED: dict[int, str] = {}
"""Questions that the tools cannot answer, and why."""
TOOLS: dict[str, ToolSpec] = {"query": query, "aggregate": aggregate}
LETTERS = {"month": 7, "date": 10}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: str(entry["question"]))
def test_the_tools_agree_with_the_sql(entry: dict[str, Any], contexts: Mapping[str, ToolContext], folder: Path) -> None:
    index = entry["question"]
    context = contexts[questions(folder)[index]["db_name"]]
    assert 1 <= len(entry["calls"]) <= 2
    found = [call(TOOLS[tool], args, context)["data"] for each in entry["calls"] for tool, args in each.items()]
    rows = found[0]
    if "combine" in entry:
        rows = eval(entry["combine"], {}, dict(zip(("first", "second"), found, strict=False)))  # noqa: S307 - our own file
    ours = [tuple(cell(row, column) for column in entry["columns"]) for row in rows]
    answers = reference_answers(index, folder)
    assert all(answers)
    assert any(agree(ours, theirs, entry) for theirs in answers), f"{ours}\n{answers}"


def test_every_question_is_accounted_for(folder: Path) -> None:
    asked = [entry["question"] for entry in ENTRIES]
    assert sorted([*asked, *UNANSWERED]) == list(range(len(questions(folder))))


def cell(row: Mapping[str, Any], column: str | dict[str, str]) -> Any:
    """A value of our result: flat, or inside nested objects."""
    key = column if isinstance(column, str) else next(iter(column))
    if key in row:
        return row[key]
    head, _, rest = key.partition("__")
    return cell(row[head], rest)


def agree(ours: Sequence[Row], theirs: Sequence[Row], entry: Mapping[str, Any]) -> bool:
    """Whether two results are equal: the order of rows counts only where the entry says so."""
    cuts = [None if isinstance(column, str) else LETTERS[next(iter(column.values()))] for column in entry["columns"]]
    if any(len(row) != len(cuts) for row in theirs) or len(ours) != len(theirs):
        return False
    one, other = ([normal(row, cuts) for row in rows] for rows in (ours, theirs))
    if not entry.get("ordered"):
        one, other = sorted(one, key=repr), sorted(other, key=repr)
    return all(same(a, b) for left, right in zip(one, other, strict=True) for a, b in zip(left, right, strict=True))


def normal(row: Row, cuts: Sequence[int | None]) -> Row:
    return tuple(
        value[:cut] if cut is not None and isinstance(value, str) else plain(value)
        for value, cut in zip(row, cuts, strict=True)
    )


def plain(value: Any) -> Any:
    """Numbers as floats, decimals in text included; dates and moments as one kind of text."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        return round(float(value), 9)
    if not isinstance(value, str):
        return value
    for read in (float, lambda text: date.fromisoformat(text).isoformat(), moment):
        try:
            return read(value)
        except ValueError:
            continue
    return value


def moment(text: str) -> str:
    return datetime.fromisoformat(text).replace(tzinfo=None).isoformat()


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-6)
    return bool(one == other)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([("a", 1), ("b", "2.50")], [("b", 2.5), ("a", 1)]),
        ([("2024-01-01T00:00:00+00:00", None)], [("2024-01-01 00:00:00", None)]),
    ],
)
def test_the_comparison_itself(ours: list[Row], theirs: list[Row]) -> None:
    entry = {"columns": ["x", "y"]}
    assert agree(ours, theirs, entry)
    for wrong in ([("a", 1), ("b", "2.51")], [("a", 1)], [*ours, ours[0]], [("a", 1, 2)], []):
        assert not agree(ours, wrong, entry)
    if len(ours) > 1:
        assert not agree(ours, theirs, {**entry, "ordered": True})
    assert agree([("2024-01-01",)], [("2024-01",)], {"columns": [{"x": "month"}]})
    assert not agree([("2024-01-01",)], [("2024-01",)], {"columns": ["x"]})
