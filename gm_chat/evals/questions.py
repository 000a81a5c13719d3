"""Reading questions with reference SQL from a CSV file, under whatever names its columns have.

Benchmarks and people's own lists call them differently: ``question`` or ``prompt``, ``sql`` or ``query``. A cell of SQL
may hold several statements, each a right answer, divided by semicolons.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["CsvError", "Question", "read_questions", "statements"]

_COLUMNS: Final = {
    "text": ("question", "prompt", "utterance", "text"),
    "sql": ("sql", "reference_sql", "gold_sql", "query"),
    "database": ("database", "db_name", "db_id", "db"),
    "category": ("category", "query_category", "difficulty"),
    "instructions": ("instructions", "evidence", "hint"),
}
"""What a column may be called; the first that is there counts."""

_PIECES: Final = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|;|.""", re.DOTALL)


class CsvError(ValueError):
    """The file holds no questions. The message names it, and what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One row: the question and its reference statements. ``line`` is the row's last line in the file."""

    line: int
    text: str
    statements: tuple[str, ...]
    database: str = ""
    category: str = ""
    instructions: str = ""
    """What one has to know to understand the question, asked along with it."""


def read_questions(path: Path) -> list[Question]:
    """Read every row with a question. Raises :class:`CsvError`."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            head = file.readline()
            file.seek(0)
            reader = csv.reader(file, delimiter=max(",;\t", key=head.count))
            columns = _columns(next(reader, []), path)
            found = [_question(row, columns, reader.line_num) for row in reader if any(map(str.strip, row))]
    except OSError as error:
        raise CsvError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise CsvError(f"{path}: is no CSV in UTF-8: {error}") from error
    questions = [question for question in found if question.text]
    if not questions:
        raise CsvError(f"{path}: has no row with a question")
    return questions


def statements(sql: str) -> tuple[str, ...]:
    """Divide SQL at its semicolons, those in texts and comments aside."""
    parts = [""]
    for piece in _PIECES.findall(sql):
        if piece == ";":
            parts.append("")
        else:
            parts[-1] += piece
    return tuple(part.strip() for part in parts if part.strip())


def _columns(head: Sequence[str], path: Path) -> dict[str, int]:
    names = [re.sub(r"[\s-]+", "_", name.strip().lower()) for name in head]
    columns = {
        key: next(names.index(name) for name in known if name in names)
        for key, known in _COLUMNS.items()
        if any(name in names for name in known)
    }
    for key in ("text", "sql"):
        if key not in columns:
            wanted = " or ".join(map(repr, _COLUMNS[key]))
            raise CsvError(f"{path}: has no column {wanted}; its first line names {', '.join(names) or 'nothing'}")
    return columns


def _question(row: Sequence[str], columns: dict[str, int], line: int) -> Question:
    cells = {key: row[place].strip() if place < len(row) else "" for key, place in columns.items()}
    return Question(statements=statements(cells.pop("sql")), line=line, **cells)
