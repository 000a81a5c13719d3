"""The ``aggregate`` tool's arguments into an :class:`AggregatePlan`: strict, bounded, and before anything runs.

``group_by`` holds field paths, those of dates with a part (``sale_date__month``); ``measures`` maps names to formulas
(:mod:`gm_chat.managers.formula`) or to ``{"formula": ..., "where": filters}``. Functions: count, sum, avg, min, max and
median over the group's rows, and rank, share and change of another measure. A path through a to-many relation inside
a function aggregates what lies behind each row first: ``sum(lines__price)`` sums all lines of all rows of the group,
``avg(max(payments__date) - date)`` averages a row's value. What the actor may not see does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from gm_chat.managers.api import And, FieldInfo, FieldType, ManagerInfo, ManagerView, Order, Path
from gm_chat.managers.filters import parse_filters
from gm_chat.managers.formula import parse_formula
from gm_chat.managers.meaning import NUMBERS, FormulaReader, walk
from gm_chat.managers.measures import AggregatePlan, Group, Measure
from gm_chat.managers.plan import DEFAULT_LIMITS, PlanLimits, count_of
from gm_chat.managers.resolve import find_manager, sortable_fields
from gm_chat.managers.spelling import match_name, nearest, shown
from gm_chat.plugin import ToolError

__all__ = ["build_aggregate"]

ARGUMENTS: Final = ("manager", "group_by", "measures", "filters", "having", "order_by", "limit", "offset")
MAX_GROUPS: Final = 8
MAX_MEASURES: Final = 12
_MEASURE: Final = re.compile(r"[^\W\d]\w{0,59}")
_COMPARISONS: Final = ("exact", "gt", "gte", "lt", "lte", "in", "range", "isnull")


def build_aggregate(
    args: Mapping[str, Any], view: ManagerView, *, max_results: int, limits: PlanLimits = DEFAULT_LIMITS
) -> AggregatePlan:
    """Validate ``{manager, measures, group_by?, filters?, having?, order_by?, limit?, offset?}``.

    Every mistake is a :class:`~gm_chat.plugin.ToolError` naming the culprit and what is allowed, nearest first.
    """
    for key in args:
        if key not in ARGUMENTS:
            raise ToolError("invalid_argument", f"aggregate takes no argument {shown(key)}", allowed=list(ARGUMENTS))
    manager = find_manager(args.get("manager"), view)
    groups = _groups(args.get("group_by"), manager, view, limits)
    measures = _measures(args.get("measures"), manager, view, limits, groups)
    if args.get("having") is not None and not groups:
        raise ToolError("invalid_argument", "having chooses among groups: name some in group_by, or use filters")
    results = _results(manager, groups, measures)
    return AggregatePlan(
        manager=manager.name,
        groups=groups,
        measures=measures,
        where=parse_filters(args.get("filters"), manager, view, limits.filters),
        having=_having(args.get("having"), results, view, limits),
        order=_order(args.get("order_by"), results, limits),
        limit=min(count_of(args.get("limit"), "limit", least=1, default=max_results), max_results),
        offset=count_of(args.get("offset"), "offset", least=0, default=0),
    )


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
        group = _group(item, manager, view, limits)
        found.setdefault(group.name, group)
    return tuple(found.values())


def _group(text: str, manager: ManagerInfo, view: ManagerView, limits: PlanLimits) -> Group:
    place = walk(text, manager, view, limits, "group_by")
    if place.many is not None:
        raise ToolError(
            "invalid_argument",
            f"group_by {shown(text)}: {place.many!r} holds many rows of {place.manager.name}; "
            f"aggregate {place.manager.name} instead, and group by its own fields or those of {manager.name}",
        )
    if place.field is None or place.field.name not in sortable_fields(place.manager):
        wanted = f"{place.field.name!r} cannot be grouped by" if place.field else "name a field, not a relation"
        prefix = "__".join(place.hops)
        allowed = [f"{prefix}__{name}" if prefix else name for name in sortable_fields(place.manager)]
        raise ToolError("invalid_argument", f"group_by {shown(text)}: {wanted}", allowed=allowed[:20])
    path = (*place.hops, place.field.name)
    kind: FieldType = place.field.type
    if place.part is not None:
        kind = "integer" if place.part in ("year", "weekday") else "datetime" if place.part == "hour" else "date"
    return Group("__".join((*path, place.part) if place.part else path), path, kind, place.part)


# --- measures ---------------------------------------------------------------------------------------------------


def _measures(
    value: Any, manager: ManagerInfo, view: ManagerView, limits: PlanLimits, groups: tuple[Group, ...]
) -> tuple[Measure, ...]:
    if isinstance(value, str):
        value = {"value": value}
    if not isinstance(value, Mapping) or not value:
        raise ToolError(
            "invalid_argument",
            f'measures must be an object such as {{"revenue": "sum(price)", "n": "count()"}}, got {shown(value)}',
        )
    if len(value) > MAX_MEASURES:
        raise ToolError("too_large", f"more than {MAX_MEASURES} measures")
    taken = {group.name for group in groups}
    known: dict[str, Measure] = {}
    for name, item in value.items():
        if not isinstance(name, str) or not _MEASURE.fullmatch(name) or "__" in name:
            raise ToolError("invalid_argument", f"{shown(name)} is no name for a measure: use letters, digits and _")
        if name in taken:
            raise ToolError("invalid_argument", f"the measure {name!r} has the name of a group; choose another")
        text, where = _measure_of(name, item)
        condition = parse_filters(where, manager, view, limits.filters)
        reader = FormulaReader(manager, view, limits, condition, known, f"measure {name!r}", grouped=bool(groups))
        known[name] = Measure(name, *reader.group_value(parse_formula(text, f"measure {name!r}")))
    return tuple(known.values())


def _measure_of(name: str, item: Any) -> tuple[str, Any]:
    if isinstance(item, str):
        return item, None
    if isinstance(item, Mapping) and isinstance(item.get("formula"), str) and item.keys() <= {"formula", "where"}:
        return item["formula"], item.get("where")
    raise ToolError(
        "invalid_argument",
        f'measure {name!r} must be a formula such as "sum(price)", or {{"formula": "count()", "where": {{...}}}}; '
        f"got {shown(item)}",
    )


# --- results ----------------------------------------------------------------------------------------------------


def _results(manager: ManagerInfo, groups: tuple[Group, ...], measures: tuple[Measure, ...]) -> ManagerInfo:
    """The groups and measures as a manager's fields, so that ``having`` is read like any filter."""
    columns = [(group.name, group.type) for group in groups] + [(item.name, item.type) for item in measures]
    # A quotient or a mean may be compared with any number, "0.5" as our results show decimals included.
    kinds: dict[str, FieldType] = {name: "decimal" if kind in NUMBERS else kind for name, kind in columns}
    return ManagerInfo(
        name=f"this aggregate of {manager.name}",
        description="",
        fields=tuple(
            FieldInfo(name=name, type=kind, nullable=True, lookups=_lookups(kind)) for name, kind in kinds.items()
        ),
    )


def _lookups(kind: FieldType) -> tuple[str, ...]:
    return ("exact", "in", "icontains", "isnull") if kind == "string" else _COMPARISONS


def _having(value: Any, results: ManagerInfo, view: ManagerView, limits: PlanLimits) -> And:
    return parse_filters(value, results, view, limits.filters)


def _order(value: Any, results: ManagerInfo, limits: PlanLimits) -> tuple[Order, ...]:
    if value is None:
        return ()
    terms = [value] if isinstance(value, str) else value
    if not isinstance(terms, list | tuple) or not all(isinstance(term, str) for term in terms):
        raise ToolError("invalid_argument", f'order_by must be a list such as ["-revenue"], got {shown(value)}')
    if len(terms) > limits.order:
        raise ToolError("too_large", f"order_by holds more than {limits.order} terms")
    names = [item.name for item in results.fields]
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
