"""Running the SQL of a reference answer: one statement that reads, within a time limit."""

from __future__ import annotations

import re
import time
from typing import Any, Final

from django.db import DatabaseError, connections

from gm_chat.managers.deadline import guard
from gm_chat.plugin import ToolError

__all__ = ["SECONDS", "SqlError", "read_rows"]

SECONDS: Final = 60.0
"""How long a statement may take."""

_READS: Final = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*(?:SELECT|WITH|VALUES)\b", re.IGNORECASE | re.DOTALL)


class SqlError(ValueError):
    """A statement does not read, or the database refuses it. The message says why, in one line."""


def read_rows(sql: str, alias: str, *, seconds: float = SECONDS) -> list[tuple[Any, ...]]:
    """Return the rows of a statement. Nothing can be written: the database itself refuses it.

    Raises :class:`SqlError` for what is not one reading statement, fails, or takes longer than ``seconds``.
    """
    if not _READS.match(sql):
        raise SqlError("is no SELECT")
    try:
        with guard(alias, time.monotonic() + seconds), connections[alias].cursor() as cursor:
            cursor.execute(sql)
            return [tuple(row) for row in cursor.fetchall()]
    except ToolError as error:
        raise SqlError(f"takes longer than {seconds:g} s" if error.code == "timeout" else error.message) from error
    except DatabaseError as error:
        raise SqlError(" ".join(str(error).split())) from error
