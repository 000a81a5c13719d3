"""A plan's conditions and order over rows that were read, as Django's ORM means them.

For what a schema has no argument for, and to test what its arguments did. Of a text without case only equality is
promised; otherwise text compares by code points.
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING, Any, Final, assert_never

from django.utils import timezone

from gm_chat.managers.api import And, Condition, Not, Or, Related
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gm_chat.managers.api import Order, Path, Where
    from gm_chat_source_graphql.rows import Row

__all__ = ["contradicts", "holds", "in_order", "value_at"]


def holds(where: Where, row: Row) -> bool:
    """Whether a row satisfies a condition.

    Raises ``ToolError("unsupported")`` where that depends on rows of a nested list that the schema did not give.
    """
    match where:
        case And(parts):
            return all(holds(part, row) for part in parts)
        case Or(parts):
            return any(holds(part, row) for part in parts)
        case Not(part):
            return not holds(part, row)
        case Related(relation, part):
            return _related(row, relation, part)
        case Condition(path, lookup, value):
            if len(path) > 1:
                return _related(row, path[0], Condition(path[1:], lookup, value))
            return compare(row.values[path[0]], lookup, value)
    assert_never(where)


def _related(row: Row, relation: str, part: Where) -> bool:
    if relation in row.ones:
        one = row.ones[relation]
        return one is not None and holds(part, one)
    many = row.lists[relation]
    if any(holds(part, item) for item in many.rows):
        return True
    if many.is_cut:
        raise ToolError(
            "unsupported",
            f"the schema does not give all rows of {relation!r} at once, so that they cannot be filtered by; "
            "query the related manager instead",
        )
    return False


def compare(actual: Any, lookup: str, value: Any) -> bool:
    """One lookup on one value; nothing but ``isnull`` is true of null."""
    if lookup == "isnull":
        return (actual is None) is value
    if actual is None:
        return False
    return bool(_COMPARE[lookup](actual, value))


def contradicts(condition: Condition, row: Row) -> bool:
    """Whether a row that the schema gave for a condition cannot be meant by it, whatever a database holds for equal."""
    actual, value = row.values[condition.path[-1]], condition.value
    if isinstance(actual, str) and condition.lookup not in ("isnull", "gt", "gte", "lt", "lte"):
        folded = tuple(map(str.casefold, value)) if isinstance(value, tuple) else value.casefold()
        return not compare(actual.casefold(), condition.lookup, folded)
    if isinstance(actual, str) and condition.lookup != "isnull":
        return False  # collations differ
    return not compare(actual, condition.lookup, value)


def _part(name: str) -> Callable[[Any, Any], bool]:
    return lambda actual, value: getattr(_local(actual), name) == value


def _local(moment: Any) -> Any:
    return timezone.localtime(moment) if hasattr(moment, "hour") and timezone.is_aware(moment) else moment


_COMPARE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "exact": lambda actual, value: actual == value,
    "iexact": lambda actual, value: actual.casefold() == value.casefold(),
    "contains": lambda actual, value: value in actual,
    "icontains": lambda actual, value: value.casefold() in actual.casefold(),
    "startswith": lambda actual, value: actual.startswith(value),
    "istartswith": lambda actual, value: actual.casefold().startswith(value.casefold()),
    "endswith": lambda actual, value: actual.endswith(value),
    "iendswith": lambda actual, value: actual.casefold().endswith(value.casefold()),
    "gt": lambda actual, value: actual > value,
    "gte": lambda actual, value: actual >= value,
    "lt": lambda actual, value: actual < value,
    "lte": lambda actual, value: actual <= value,
    "in": lambda actual, value: actual in value,
    "range": lambda actual, value: value[0] <= actual <= value[1],
    "year": _part("year"),
    "month": _part("month"),
    "day": _part("day"),
    "date": lambda actual, value: _local(actual).date() == value,
}


# --- order ------------------------------------------------------------------------------------------------------


def value_at(row: Row, path: Path) -> Any:
    """The value at the end of a path through to-one relations; ``None`` where one leads to no row."""
    for hop in path[:-1]:
        one = row.ones[hop]
        if one is None:
            return None
        row = one
    return row.values[path[-1]]


def in_order(rows: Sequence[Row], terms: Sequence[Order]) -> list[Row]:
    """The rows by ``terms``, nulls last in both directions; equal ones stay in the schema's order."""
    if not terms:
        return list(rows)

    def ordered(one: Row, other: Row) -> int:
        for term in terms:
            left, right = value_at(one, term.path), value_at(other, term.path)
            if left == right:
                continue
            if left is None or right is None:
                return 1 if left is None else -1
            return 1 if (left > right) != term.descending else -1
        return 0

    return sorted(rows, key=cmp_to_key(ordered))
