"""What ``aggregate`` computes, as data: the counterpart of ``api.QueryPlan``, between tool and manager source.

Formulas have two levels. A *row's* value is a constant, a field, or an aggregate over what lies behind one of the row's
to-many relations (:class:`Behind`). A *group's* value aggregates rows' values (:class:`Aggregated`), names another
measure, or compares the group with the others. Arithmetic stays on one level. Standard library only, as ``api`` is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from gm_chat.managers.api import And, FieldType, Order, Path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from decimal import Decimal

__all__ = [
    "AcrossGroups",
    "AggregateFunction",
    "AggregatePage",
    "AggregatePlan",
    "Aggregated",
    "Arithmetic",
    "Behind",
    "Constant",
    "DatePart",
    "Elapsed",
    "FieldValue",
    "Formula",
    "Group",
    "Measure",
    "MeasureValue",
]

AggregateFunction = Literal["count", "sum", "avg", "min", "max", "median"]

DatePart = Literal["year", "quarter", "month", "week", "day", "hour", "weekday"]
"""Parts of dates and moments, in the current time zone. ``year`` and ``weekday`` (1 is Monday, 7 Sunday) are numbers,
the others truncations: ``month`` is the month's first day, ``week`` its Monday."""


@dataclass(frozen=True, slots=True)
class Group:
    """A column that rows are grouped by, through to-one relations; ``name`` is its key in the result."""

    name: str
    path: Path
    type: FieldType
    part: DatePart | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    """A number."""

    value: Decimal


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A field of the row, through to-one relations; null where one of them is hidden. Durations are seconds."""

    path: Path
    type: FieldType


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Two numbers; a division is never an integer one, and by zero gives null."""

    operator: Literal["+", "-", "*", "/"]
    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class Elapsed:
    """``end - start``: whole days between dates, seconds between moments."""

    end: Formula
    start: Formula
    unit: Literal["days", "seconds"]


@dataclass(frozen=True, slots=True)
class Behind:
    """An aggregate over the visible rows behind the row's to-many ``relation`` that satisfy ``where``."""

    relation: str
    function: AggregateFunction
    of: Formula | None
    where: And = field(default_factory=lambda: And(()))


@dataclass(frozen=True, slots=True)
class Aggregated:
    """An aggregate over the rows of the group that satisfy ``where``. Without ``of`` it counts them."""

    function: AggregateFunction
    of: Formula | None
    where: And = field(default_factory=lambda: And(()))
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class MeasureValue:
    """Another measure of the same group."""

    name: str


@dataclass(frozen=True, slots=True)
class AcrossGroups:
    """A measure beside the other groups' (those that ``having`` keeps).

    ``rank`` is 1 for the highest, ``share`` its part of their sum, ``change`` the difference to the group before, in
    the order of the groups' columns.
    """

    function: Literal["rank", "share", "change"]
    measure: str


Formula = Constant | FieldValue | Arithmetic | Elapsed | Behind | Aggregated | MeasureValue | AcrossGroups


@dataclass(frozen=True, slots=True)
class Measure:
    """A named value of each group."""

    name: str
    formula: Formula
    type: FieldType


@dataclass(frozen=True, slots=True)
class AggregatePlan:
    """A validated computation; every path exists and is visible to the actor.

    The paths of ``having`` and ``order`` are one name long: a group's or a measure's. Without ``groups`` the result is
    one object.
    """

    manager: str
    groups: tuple[Group, ...]
    measures: tuple[Measure, ...]
    where: And = field(default_factory=lambda: And(()))
    having: And = field(default_factory=lambda: And(()))
    order: tuple[Order, ...] = ()
    limit: int = 200
    offset: int = 0


@dataclass(frozen=True, slots=True)
class AggregatePage:
    """One object per group, in order; ``has_more`` says that further groups follow."""

    data: Sequence[Mapping[str, Any]]
    has_more: bool
