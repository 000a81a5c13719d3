"""What ``aggregate`` computes, as data: the counterpart of ``api.QueryPlan``, between tool and manager source.

Formulas have two levels. A *row's* value is a constant, a field, or an aggregate over what lies behind one of the row's
to-many relations (:class:`Behind`). A *group's* value aggregates rows' values (:class:`Aggregated`), names another
measure, or compares the group with the others. Arithmetic stays on one level. Standard library only, as ``api`` is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from gm_chat.managers.api import And, DatePart, FieldType, Order, Path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import date
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
    "Elapsed",
    "FieldValue",
    "Formula",
    "Group",
    "Measure",
    "MeasureValue",
    "across_names",
    "parts_of",
]

AggregateFunction = Literal["count", "sum", "avg", "min", "max", "median"]


@dataclass(frozen=True, slots=True)
class Group:
    """A column that rows are grouped by, through to-one relations; ``name`` is its key in the result.

    ``choices`` are those of the field, as (value, label) pairs.
    """

    name: str
    path: Path
    type: FieldType
    part: DatePart | None = None
    choices: tuple[tuple[Any, str], ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, a day or a moment."""

    value: Decimal | date


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A field of the row, or a part of its date, through to-one relations; null where one of them is hidden.

    ``type`` is the field's; durations are seconds.
    """

    path: Path
    type: FieldType
    part: DatePart | None = None


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
    """A measure beside those of the other groups that have the same values in the columns ``within``.

    ``rank`` is 1 for the highest, ``share`` its part of their sum; in the order of the other columns, ``change`` is the
    difference to the group before and ``running`` the sum up to this group. The other groups are those that satisfy
    what ``having`` asks of other measures.
    """

    function: Literal["rank", "share", "change", "running"]
    measure: str
    within: tuple[str, ...] = ()


Formula = Constant | FieldValue | Arithmetic | Elapsed | Behind | Aggregated | MeasureValue | AcrossGroups


def parts_of(formula: Formula) -> Iterator[Formula]:
    """A group's formula and all that it is made of, down to aggregates; measures are not followed."""
    yield formula
    if isinstance(formula, Arithmetic):
        yield from parts_of(formula.left)
        yield from parts_of(formula.right)
    elif isinstance(formula, Elapsed):
        yield from parts_of(formula.end)
        yield from parts_of(formula.start)


@dataclass(frozen=True, slots=True)
class Measure:
    """A named value of each group. A ``hidden`` one is there for others to build on, and is not part of the result."""

    name: str
    formula: Formula
    type: FieldType
    hidden: bool = False


def across_names(measures: Iterable[Measure]) -> frozenset[str]:
    """Of measures, each of which names only those before it, the ones that depend on other groups."""
    found: set[str] = set()
    for measure in measures:
        for part in parts_of(measure.formula):
            if isinstance(part, AcrossGroups) or (isinstance(part, MeasureValue) and part.name in found):
                found.add(measure.name)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class AggregatePlan:
    """A validated computation; every path exists and is visible to the actor.

    The paths of ``having`` and ``order`` are one name long: a group's or a measure's. Without ``groups`` the result is
    one object; without ``measures`` it is the distinct groups. A measure names only those before it. ``fill`` is a
    group that is a date: periods without rows are added, from the first to the last that ``where`` names, else found.
    """

    manager: str
    groups: tuple[Group, ...]
    measures: tuple[Measure, ...]
    where: And = field(default_factory=lambda: And(()))
    having: And = field(default_factory=lambda: And(()))
    order: tuple[Order, ...] = ()
    limit: int = 200
    offset: int = 0
    fill: str | None = None
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class AggregatePage:
    """One object per group, in order; ``has_more`` says that further groups follow.

    ``truncated`` says that whole groups were dropped where the page's JSON reached ``max_bytes``.
    """

    data: Sequence[Mapping[str, Any]]
    has_more: bool
    truncated: bool = False
