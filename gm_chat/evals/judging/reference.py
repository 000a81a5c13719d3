"""The rows that a case's ``result_set`` asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gm_chat.evals.judging.rows import flat_rows
from gm_chat.evals.reading import read_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gm_chat.evals.dataset import Case

__all__ = ["ReferenceRowsError", "reference_rows"]


class ReferenceRowsError(ValueError):
    """A reference gives no rows to compare with, so that its case cannot be judged. The message says why."""


def reference_rows(
    case: Case, *, alias: str, run_query: Callable[[Mapping[str, Any]], Any]
) -> Sequence[tuple[Any, ...]] | None:
    """Return the rows of the case's reference, ``None`` for a case without one.

    SQL is run on the database ``alias``, read-only. ``run_query`` runs the arguments of a tool call (``aggregate`` if
    they have ``measures``, else ``query``) as the asking user, and returns the result. Raises what it raises,
    :class:`~gm_chat.evals.reading.SqlError`, and :class:`ReferenceRowsError` for a result without all rows.
    """
    wanted = case.hard.result_set
    if wanted is None:
        return None
    if wanted.sql is not None:
        return read_rows(wanted.sql, alias)
    query = wanted.query or {}
    result = run_query(query)
    data = result.get("data") if isinstance(result, Mapping) else None
    if not isinstance(data, list):
        raise ReferenceRowsError(f"{case.name}: the reference query gave no rows: {result!r}"[:400])
    if result.get("has_more") and "limit" not in query:
        raise ReferenceRowsError(f"{case.name}: the reference query has more rows than a result holds; give it a limit")
    return flat_rows(data)
