"""Runs an :class:`AggregatePlan` over a schema, which cannot compute: all its rows are read, or none is added up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gm_chat.managers.api import QueryPlan, Selection
from gm_chat.managers.computing import compute
from gm_chat.managers.measures import (
    AcrossGroups,
    Aggregated,
    Arithmetic,
    Behind,
    Constant,
    Elapsed,
    FieldValue,
    MeasureValue,
)
from gm_chat_source_graphql.conditions import holds, refusal_of_cut, value_at
from gm_chat_source_graphql.execute import all_matching
from gm_chat_source_graphql.rows import Level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gm_chat.managers.api import Path, Where
    from gm_chat.managers.measures import AggregatePage, AggregatePlan, Formula
    from gm_chat_source_graphql.execute import Reader
    from gm_chat_source_graphql.rows import Row

__all__ = ["run_aggregate"]


def run_aggregate(plan: AggregatePlan, reader: Reader) -> AggregatePage:
    """Run a plan. Blocking. Raises ``ToolError`` with ``too_large``, ``unsupported`` or ``failed``.

    The schema applies the conditions that it has arguments for, the rest is done here, over at most ``max_rows`` rows.
    """
    read = QueryPlan(plan.manager, Selection(()), where=plan.where)
    level = Level.of(read, reader.bindings)
    for group in plan.groups:
        level.reach(group.path)
    for measure in plan.measures:
        _ask(measure.formula, level)
    return compute(plan, all_matching(read, reader, level), _Rows())


def _ask(formula: Formula, level: Level) -> None:
    """Have a level hold what a formula needs of its rows."""
    match formula:
        case FieldValue(path):
            level.reach(path)
        case Arithmetic(_, left, right) | Elapsed(left, right):
            _ask(left, level)
            _ask(right, level)
        case Behind(relation, _, of, where):
            behind = level.behind(relation, where)
            if of is not None:
                _ask(of, behind)
        case Aggregated(_, of, where):
            level.filter(where)
            if of is not None:
                _ask(of, level)
        case Constant() | MeasureValue() | AcrossGroups():
            pass  # what these name is a measure of the plan itself


class _Rows:
    """A :class:`~gm_chat.managers.computing.RowReader`."""

    def value(self, row: Row, path: Path) -> Any:
        return value_at(row, path)

    def holds(self, where: Where, row: Row, outer: Row | None = None) -> bool:
        return holds(where, row, outer)

    def behind(self, row: Row, relation: str) -> Sequence[Row]:
        many = row.lists[relation]
        if many.is_cut:
            raise refusal_of_cut(relation, "computed with; aggregate")
        return many.rows
