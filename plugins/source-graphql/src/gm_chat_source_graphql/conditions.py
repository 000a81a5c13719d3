"""A plan's conditions and order over rows that were read, as Django's ORM means them.

For what a schema has no argument for, and to test what its arguments did. Of a text without case only equality is
promised; otherwise text compares by code points.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import date, datetime, timedelta
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any, Final, assert_never

from django.utils import timezone

from gm_chat.managers.api import And, Condition, FieldReference, First, Not, Or, Related
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gm_chat.managers.api import Order, Path, Where
    from gm_chat_source_graphql.rows import Row

__all__ = ["contradicts", "holds", "in_order", "refusal_of_cut", "refusal_of_first", "value_at"]


def holds(where: Where, row: Row, outer: Row | None = None) -> bool:
    """Whether a row satisfies a condition. ``outer`` is the row that all of it is about, if not this one.

    Raises ``ToolError("unsupported")`` where that depends on rows of a nested list that the schema did not give.
    """
    match where:
        case And(parts):
            return all(holds(part, row, outer) for part in parts)
        case Or(parts):
            return any(holds(part, row, outer) for part in parts)
        case Not(part):
            return not holds(part, row, outer)
        case Related(relation, part):
            return _related(row, relation, part, outer or row)
        case First():
            raise refusal_of_first()
        case Condition(path, lookup, value):
            if len(path) > 1:
                return _related(row, path[0], Condition(path[1:], lookup, value), outer or row)
            if isinstance(value, FieldReference):
                other = value_at((outer or row) if value.outer else row, value.path)
                return _compare_fields(row.values[path[0]], lookup, other, value)
            return compare(row.values[path[0]], lookup, value)
    assert_never(where)


def refusal_of_first() -> ToolError:
    """The answer to "the first row of each"."""
    return ToolError(
        "unsupported",
        "this manager's rows cannot be asked for the first of each; sort them with order_by, or query the manager that "
        "they belong to, with its related rows",
    )


def _related(row: Row, relation: str, part: Where, outer: Row) -> bool:
    if relation in row.ones:
        one = row.ones[relation]
        return one is not None and holds(part, one, outer)
    many = row.lists[relation]
    if any(holds(part, item, outer) for item in many.rows):
        return True
    if many.is_cut:
        raise refusal_of_cut(relation, "filtered by; query")
    return False


def refusal_of_cut(relation: str, what: str) -> ToolError:
    """The answer where what is asked depends on rows of a nested list that the schema did not give."""
    return ToolError(
        "unsupported",
        f"the schema does not give all rows of {relation!r} at once, so that they cannot be {what} the related manager "
        "instead",
    )


def _compare_fields(actual: Any, lookup: str, other: Any, reference: FieldReference) -> bool:
    if actual is None or other is None:
        return False
    if reference.plus is not None:
        other = _shifted(other, *reference.plus)
    if reference.part is not None:
        other = getattr(_local(other), reference.part)
    elif isinstance(actual, datetime) != isinstance(other, datetime):  # a moment and a date, by the day
        actual, other = _day(actual), _day(other)
    return compare(actual, lookup, other)


def _shifted(moment: Any, count: int, unit: str) -> Any:
    """A date or a moment, so many units later; of a month that is too short, the last day."""
    if unit not in ("month", "year"):
        return moment + timedelta(**{f"{unit}s": count})
    month = moment.year * 12 + moment.month - 1 + count * (12 if unit == "year" else 1)
    year, month = month // 12, month % 12 + 1
    return moment.replace(year=year, month=month, day=min(moment.day, monthrange(year, month)[1]))


def compare(actual: Any, lookup: str, value: Any) -> bool:
    """One lookup on one value; nothing but ``isnull`` is true of null."""
    if lookup == "isnull":
        return (actual is None) is value
    if actual is None:
        return False
    part, _, comparison = lookup.partition("__")
    if part in _PARTS:
        return bool(_COMPARE[comparison or "exact"](_PARTS[part](_local(actual)), value))
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


def _local(moment: Any) -> Any:
    return timezone.localtime(moment) if hasattr(moment, "hour") and timezone.is_aware(moment) else moment


def _day(moment: Any) -> date:
    local: Any = _local(moment)
    return local.date() if isinstance(local, datetime) else local


_PARTS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "date": _day,
    "year": lambda moment: moment.year,
    "quarter": lambda moment: (moment.month + 2) // 3,
    "month": lambda moment: moment.month,
    "day": lambda moment: moment.day,
    "weekday": lambda moment: moment.isoweekday(),
    "hour": lambda moment: moment.hour,
}
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
