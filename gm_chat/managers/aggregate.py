"""The ``aggregate`` tool's arguments into an :class:`AggregatePlan`: strict, bounded, and before anything runs.

``group_by`` holds field paths, those of dates with a part (``sale_date__month``), or to-one relations, which mean their
ids; ``measures`` maps names to formulas (:mod:`gm_chat.managers.formula`) or to ``{"formula": ..., "where": filters}``.
Functions: count, sum, avg, min, max and median over the group's rows, and rank, share, change and running, which
compare a measure with that of other groups. A path through a to-many relation inside a function aggregates what lies
behind each row first: ``sum(lines__price)`` sums all lines of all rows of the group, and
``avg(max(payments__date) - date)`` averages a row's value. ``today`` and ``now`` are dates in formulas. What the actor
may not see does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final

from gm_chat.managers.api import (
    And,
    Condition,
    FieldInfo,
    FieldReference,
    FieldType,
    First,
    ManagerInfo,
    ManagerView,
    Not,
    Or,
    Order,
    Path,
    Where,
)
from gm_chat.managers.cost import check_aggregate
from gm_chat.managers.filters import parse_filters
from gm_chat.managers.formula import parse_formula
from gm_chat.managers.meaning import NUMBERS, FormulaReader, Results
from gm_chat.managers.meant import proposing
from gm_chat.managers.measures import (
    AcrossGroups,
    Aggregated,
    AggregatePlan,
    Group,
    Measure,
    MeasureValue,
    parts_of,
)
from gm_chat.managers.plan import DEFAULT_LIMITS, PlanLimits, count_of
from gm_chat.managers.resolve import DATES, find_manager, read_key, split_path, type_of_part
from gm_chat.managers.spelling import match_name, nearest, shown
from gm_chat.managers.values import WrongValueError, unquoted
from gm_chat.plugin import ToolError

__all__ = ["build_aggregate"]

ARGUMENTS: Final = (*("manager", "group_by", "measures", "filters", "having", "order_by", "fill", "limit", "offset"),)
FILLED: Final = ("year", "quarter", "month", "week", "day", "weekday")
MAX_GROUPS: Final = 8
MAX_MEASURES: Final = 12
_MEASURE: Final = re.compile(r"[^\W\d]\w{0,59}")
_COMPARISONS: Final = ("exact", "gt", "gte", "lt", "lte", "in", "range", "isnull")


@proposing
def build_aggregate(
    args: Mapping[str, Any],
    view: ManagerView,
    *,
    max_results: int,
    max_bytes: int | None = None,
    limits: PlanLimits = DEFAULT_LIMITS,
) -> AggregatePlan:
    """Validate ``{manager, measures?, group_by?, filters?, having?, order_by?, fill?, limit?, offset?}``.

    Every mistake is a :class:`~gm_chat.plugin.ToolError` naming the culprit and what is allowed, nearest first.
    """
    for key in args:
        if key not in ARGUMENTS:
            raise ToolError("invalid_argument", f"aggregate takes no argument {shown(key)}", allowed=list(ARGUMENTS))
    manager = find_manager(args.get("manager"), view)
    groups = _groups(args.get("group_by"), manager, view, limits)
    results = _measures(args.get("measures"), manager, view, limits, groups)
    if args.get("having") and not groups:
        raise ToolError("invalid_argument", "having chooses among groups: name some in group_by, or use filters")
    where = parse_filters(args.get("filters"), manager, view, limits.filters)
    plan = AggregatePlan(
        manager=manager.name,
        groups=groups,
        measures=tuple(results.measures.values()),
        where=where,
        having=_having(args.get("having"), manager, results, view, limits),
        order=_order(args.get("order_by"), [*(group.name for group in groups), *results.named], limits),
        limit=min(count_of(args.get("limit"), "limit", least=1, default=max_results), max_results),
        offset=count_of(args.get("offset"), "offset", least=0, default=0),
        fill=_fill(args.get("fill"), groups),
        max_bytes=max_bytes,
    )
    check_aggregate(plan, subselects=limits.subselects)
    return plan


# --- groups -----------------------------------------------------------------------------------------------------


def _groups(value: Any, manager: ManagerInfo, view: ManagerView, limits: PlanLimits) -> tuple[Group, ...]:
    if value is None:
        return ()
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        raise ToolError("invalid_argument", f'group_by must be a list such as ["name"], got {shown(value)}')
    if len(items) > MAX_GROUPS:
        raise ToolError("too_large", f"group_by holds more than {MAX_GROUPS} fields")
    found: dict[str, Group] = {}
    for item in items:
        if not isinstance(item, str):
            raise ToolError("invalid_argument", f'group_by: {shown(item)} is not a field such as "customer__state"')
        if item == "*":
            continue  # all rows, as in count(*)
        group = _group(item, manager, view, limits)
        found.setdefault(group.name, group)
    return tuple(found.values())


def _group(text: str, manager: ManagerInfo, view: ManagerView, limits: PlanLimits) -> Group:
    key, field = read_key(text, manager, view, depth=limits.depth, what="group_by")
    # A relation alone keeps its name, though it means an id.
    path = key.path[:-1] if len(split_path(text, "group_by")) < len(key.path) else key.path
    name = "__".join((*path, key.part) if key.part else path)
    choices = () if key.part else field.choices
    return Group(name, key.path, type_of_part(key.part, field.type), key.part, choices)


def _fill(value: Any, groups: tuple[Group, ...]) -> str | None:
    if value is None or value is False:
        return None
    if value is not True:
        message = f"fill must be true or false without quotes, got {shown(value)}"
        raise WrongValueError("invalid_argument", message, name="fill", value=value, meant=unquoted(value))
    periods = [group.name for group in groups if group.part in FILLED or (group.type == "date" and group.part is None)]
    if len(periods) > 1:
        raise ToolError(
            "invalid_argument",
            f"fill adds the periods without rows of one date in group_by, not of {len(periods)}; leave fill out, or "
            f"all but one of {', '.join(map(repr, periods))}",
        )
    dates = [group.name for group in groups if group.part is not None or group.type in DATES]
    if dates and not periods:
        raise ToolError("invalid_argument", f"fill adds no periods to {dates[0]!r}, only to a {', '.join(FILLED)}")
    return periods[0] if periods else None  # without a date there are no periods that could be missing


# --- measures ---------------------------------------------------------------------------------------------------


def _measures(
    value: Any, manager: ManagerInfo, view: ManagerView, limits: PlanLimits, groups: tuple[Group, ...]
) -> Results:
    results = Results(groups)
    if not value and groups and (value is None or isinstance(value, Mapping | list)):
        return results
    if isinstance(value, str):
        value = {"value": value}
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        value = _named(value)
    if isinstance(value, Mapping):
        value = _righted(value)
    if not isinstance(value, Mapping) or not value:
        raise ToolError(
            "invalid_argument",
            f'measures must be an object such as {{"revenue": "sum(price)", "n": "count()"}}, got {shown(value)}',
        )
    if len(value) > MAX_MEASURES:
        raise ToolError("too_large", f"more than {MAX_MEASURES} measures")
    taken = {group.name for group in groups}
    for name, item in value.items():
        if not isinstance(name, str) or not _MEASURE.fullmatch(name) or "__" in name:
            raise ToolError(
                "invalid_argument",
                f'{shown(name)} is no name for a measure: use letters, digits and _, as in {{"n": "count()"}}',
            )
        if name in taken:
            raise ToolError("invalid_argument", f"the measure {name!r} has the name of a group; choose another")
        text, where = _measure_of(name, item)
        condition = parse_filters(where, manager, view, limits.filters, what=f"where of {name!r}")
        reader = FormulaReader(manager, view, limits, condition, results, f"measure {name!r}")
        formula, kind = reader.group_value(parse_formula(text, f"measure {name!r}"))
        if not any(isinstance(part, Aggregated | MeasureValue | AcrossGroups) for part in parts_of(formula)):
            raise ToolError("invalid_formula", f"measure {name!r}: {shown(text)} computes nothing; try count()")
        results.add(Measure(name, formula, kind))
    return results


def _righted(measures: Mapping[str, Any]) -> Mapping[str, Any]:
    """``{"n": "count()"}`` for ``{"count()": "n"}``, which models write as often as they would in SQL."""
    righted = dict((item, name) if _is_turned(name, item) else (name, item) for name, item in measures.items())
    return righted if len(righted) == len(measures) else measures


def _is_turned(name: Any, item: Any) -> bool:
    return isinstance(name, str) and "(" in name and isinstance(item, str) and bool(_MEASURE.fullmatch(item))


def _named(formulas: Sequence[str]) -> dict[str, str]:
    """Formulas by names made of them, ``sum_lines_price`` of ``sum(lines__price)``, and no two by the same."""
    found: dict[str, str] = {}
    for formula in dict.fromkeys(formulas):
        stem = re.sub(r"[\W_]+", "_", formula[:50]).strip("_").lstrip("0123456789_") or "value"
        names = (stem if number == 1 else f"{stem}_{number}" for number in count(1))
        found[next(name for name in names if name not in found)] = formula
    return found


def _measure_of(name: str, item: Any) -> tuple[str, Any]:
    if isinstance(item, str):
        return item, None
    if isinstance(item, Mapping) and isinstance(item.get("formula"), str):
        for key in ("where", "filters"):
            if item.keys() <= {"formula", key}:
                return item["formula"], item.get(key)
    raise ToolError(
        "invalid_argument",
        f'measure {name!r} must be a formula such as "sum(price)", or {{"formula": "count()", "where": {{...}}}}; '
        f"got {shown(item)}",
    )


# --- results ----------------------------------------------------------------------------------------------------


def _having(value: Any, manager: ManagerInfo, results: Results, view: ManagerView, limits: PlanLimits) -> And:
    """Read like any filter, with the measures and the plain groups as fields."""
    kinds: dict[str, FieldType] = {group.name: group.type for group in results.groups if "__" not in group.name}
    choices = {group.name: group.choices for group in results.groups}
    kinds |= {name: measure.type for name, measure in results.named.items()}
    # A quotient or a mean may be compared with any number, "0.5" as our results show decimals included.
    kinds = {name: "decimal" if kind in NUMBERS else kind for name, kind in kinds.items()}
    columns = ManagerInfo(
        name=f"this aggregate of {manager.name}",
        description="",
        fields=tuple(
            FieldInfo(name=name, type=kind, lookups=_lookups(kind), choices=choices.get(name, ()))
            for name, kind in kinds.items()
        ),
    )
    having = parse_filters(value, columns, view, limits.filters, what="having")
    _check_having(having)
    return having


def _check_having(where: Where) -> None:
    match where:
        case And(parts) | Or(parts):
            for part in parts:
                _check_having(part)
        case Not(part):
            _check_having(part)
        case First():
            raise ToolError("invalid_argument", "having cannot hold 'first': use rank() as a measure and compare that")
        case Condition(_, _, FieldReference(plus=(_, _))):
            raise ToolError("invalid_argument", "having cannot hold 'plus': compare measures as they are")


def _lookups(kind: FieldType) -> tuple[str, ...]:
    return ("exact", "in", "icontains", "isnull") if kind == "string" else _COMPARISONS


def _order(value: Any, names: list[str], limits: PlanLimits) -> tuple[Order, ...]:
    if value is None:
        return ()
    terms = [value] if isinstance(value, str) else value
    if not isinstance(terms, list | tuple) or not all(isinstance(term, str) for term in terms):
        raise ToolError("invalid_argument", f'order_by must be a list such as ["-revenue"], got {shown(value)}')
    if len(terms) > limits.order:
        raise ToolError("too_large", f"order_by holds more than {limits.order} terms")
    found: dict[Path, Order] = {}
    for term in terms:
        name = match_name(term.removeprefix("-"), names)
        if name is None:
            raise ToolError(
                "unknown_field",
                f"order_by: {shown(term)} is none of the groups and measures",
                allowed=nearest(term.removeprefix("-"), names),
            )
        found.setdefault((name,), Order((name,), term.startswith("-")))
    return tuple(found.values())
