"""What a plan could cost, estimated before anything runs.

How large the tables are nobody knows here. What counts is what a plan may make of any: the values that a page could
hold if every list were as long as it may be, and the subselects that the database would put beside each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gm_chat.managers.api import And, Condition, First, Not, Or, Related
from gm_chat.managers.measures import Aggregated, Arithmetic, Behind, Elapsed
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from gm_chat.managers.api import QueryPlan, Selection, Where
    from gm_chat.managers.measures import AggregatePlan, Formula

__all__ = ["check_aggregate", "check_query", "subselects_of", "values_of"]


def check_query(plan: QueryPlan, *, values: int, subselects: int) -> None:
    """Raise ``ToolError("too_large")`` for a plan that could bring more ``values``, or needs more ``subselects``."""
    found = values_of(plan)
    if found > values:
        raise ToolError(
            "too_large",
            f"the rows could hold {found} values in all, and {values} are the most: ask for fewer fields and lists, "
            "or lower the limit",
        )
    _check_subselects(subselects_of(plan.where), subselects)


def check_aggregate(plan: AggregatePlan, *, subselects: int) -> None:
    """Raise ``ToolError("too_large")`` for a plan whose filters and formulas look behind too many relations."""
    found = subselects_of(plan.where) + sum(_of_formula(measure.formula) for measure in plan.measures)
    _check_subselects(found, subselects)


def _check_subselects(found: int, most: int) -> None:
    if found > most:
        raise ToolError(
            "too_large",
            f"filters and formulas look behind relations {found} times, and {most} are the most: ask in several steps",
        )


def values_of(plan: QueryPlan) -> int:
    """How many values a full page holds: a list is bounded for each parent, and over the page."""
    return _values(plan.selection, plan.limit, plan.nested_rows)


def _values(selection: Selection, rows: int, most: int) -> int:
    found = rows * max(1, len(selection.fields))
    for inner in selection.relations:
        below = rows if inner.limit is None else min(rows * inner.limit, max(most, rows))
        found += _values(inner.selection, below, most)
    return found


def subselects_of(where: Where) -> int:
    """How many subselects a condition takes."""
    match where:
        case And(parts) | Or(parts):
            return sum(map(subselects_of, parts))
        case Not(part):
            return subselects_of(part)
        case Related(_, part):
            return 1 + subselects_of(part)
        case First():
            return 1 + subselects_of(where.where)
        case Condition(path):
            return len(path) - 1
    return 0


def _of_formula(formula: Formula | None) -> int:
    match formula:
        case Arithmetic(_, left, right) | Elapsed(left, right):
            return _of_formula(left) + _of_formula(right)
        case Behind(_, _, of, where):
            return 1 + _of_formula(of) + subselects_of(where)
        case Aggregated(_, of, where):
            return _of_formula(of) + subselects_of(where)
    return 0
