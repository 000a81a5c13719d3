"""The ``query`` tool's arguments into a :class:`QueryPlan`: strict, bounded, and before anything runs.

``fields`` holds names, paths (``album__title``), ``"*"`` for all scalar fields of a level, and nested objects
(``{"album": ["title"]}``); the same place named twice is one place. A relation named alone means all its scalar
fields. Names resolve whatever their case and underscores (``unitPrice``). What the actor may not see is answered
exactly like what does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gm_chat.managers.api import (
    And,
    First,
    ManagerInfo,
    ManagerView,
    Order,
    QueryPlan,
    RelationSelection,
    Selection,
)
from gm_chat.managers.cost import check_query
from gm_chat.managers.filters import FilterLimits, parse_filters
from gm_chat.managers.meant import UnknownNameError, proposing
from gm_chat.managers.resolve import find_manager, find_relation, match_field, read_keys, read_order, split_path
from gm_chat.managers.spelling import match_name, nearest, shown
from gm_chat.managers.values import WrongValueError, unquoted
from gm_chat.plugin import ToolError

__all__ = ["DEFAULT_LIMITS", "PlanLimits", "build_plan", "count_of"]

ARGUMENTS: Final = ("manager", "fields", "filters", "order_by", "first_per", "limit", "offset")
MAX_OFFSET: Final = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLimits:
    """Bounds of a plan. ``nested_rows`` is per relation over the whole page, ``list_rows`` per parent.

    ``values`` and ``subselects`` bound what it could cost, see :mod:`gm_chat.managers.cost`.
    """

    depth: int = 6
    fields: int = 120
    relations: int = 16
    order: int = 6
    nested_rows: int = 20_000
    list_rows: int = 100
    values: int = 1_000_000
    subselects: int = 60
    filters: FilterLimits = field(default_factory=FilterLimits)


DEFAULT_LIMITS: Final = PlanLimits()


@proposing
def build_plan(
    args: Mapping[str, Any],
    view: ManagerView,
    *,
    max_results: int,
    max_bytes: int | None = None,
    limits: PlanLimits = DEFAULT_LIMITS,
) -> QueryPlan:
    """Validate ``{manager, fields, filters?, order_by?, first_per?, limit?, offset?}`` against what the actor sees.

    Every mistake is a :class:`~gm_chat.plugin.ToolError` naming the culprit and what is allowed, nearest first.
    A ``limit`` above ``max_results`` is lowered to it.
    """
    for key in args:
        if key not in ARGUMENTS:
            raise ToolError("invalid_argument", f"query takes no argument {shown(key)}", allowed=list(ARGUMENTS))
    manager = find_manager(args.get("manager"), view)
    where = parse_filters(args.get("filters"), manager, view, limits.filters)
    order = read_order(args.get("order_by"), manager, view, depth=limits.depth, most=limits.order)
    limit = min(count_of(args.get("limit"), "limit", least=1, default=max_results), max_results)
    plan = QueryPlan(
        manager=manager.name,
        selection=_Selector(view, limits).read(args.get("fields"), manager),
        where=_first(args.get("first_per"), where, order, manager, view, limits),
        order=order,
        limit=limit,
        offset=count_of(args.get("offset"), "offset", least=0, default=0),
        max_bytes=max_bytes,
        nested_rows=limits.nested_rows,
    )
    check_query(plan, values=limits.values, subselects=limits.subselects)
    return plan


def count_of(value: Any, name: str, *, least: int, default: int) -> int:
    """Read a ``limit`` or an ``offset``."""
    if value is None:
        return default
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise WrongValueError(
            "invalid_argument",
            f"{name} must be an integer of at least {least}, without quotes; got {shown(value)}",
            name=name,
            value=value,
            meant=default if value == 0 else unquoted(value),
            allowed=f"{least} or more",
        )
    if name == "offset" and value > MAX_OFFSET:
        raise ToolError("invalid_argument", f"{name} must be at most {MAX_OFFSET}")
    return value


# --- fields -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Node:
    """A level of the selection while it is collected; keys keep the order of asking and drop repeats."""

    manager: ManagerInfo
    fields: dict[str, None] = field(default_factory=dict)
    relations: dict[str, _Node] = field(default_factory=dict)


class _Selector:
    """Collects one ``fields`` argument. Counts what is *asked* for, so that repeats are bounded too."""

    def __init__(self, view: ManagerView, limits: PlanLimits) -> None:
        self._view = view
        self._limits = limits
        self._fields = 0
        self._relations = 0

    def read(self, fields: Any, manager: ManagerInfo) -> Selection:
        root = _Node(manager)
        self._list(fields, root, 0, "fields")
        return _freeze(root, self._limits.list_rows)

    def _list(self, items: Any, node: _Node, depth: int, where: str) -> None:
        if not isinstance(items, list | tuple) or not items:
            raise ToolError(
                "invalid_argument",
                f"{where} must be a list of at least one field of {node.manager.name}, got "
                + ("an empty list" if items == [] or items == () else shown(items)),
                allowed=nearest("", _names(node.manager)),
            )
        for item in items:
            if isinstance(item, str):
                self._path(split_path(item, "field"), node, depth)
            elif isinstance(item, Mapping) and item:
                for key, inner in item.items():
                    if not isinstance(key, str):
                        raise ToolError("invalid_argument", f"{where}: the key {shown(key)} is not text")
                    target, below = self._follow(split_path(key, "relation"), node, depth)
                    self._list(inner, target, below, f"{where}.{key[:60]}")
            else:
                raise ToolError(
                    "invalid_argument",
                    f'{where}: {shown(item)} is neither a name nor an object such as {{"relation": ["name"]}}',
                    allowed=nearest("", _names(node.manager)),
                )

    def _path(self, segments: list[str], node: _Node, depth: int) -> None:
        """Add one field. A path that ends at a relation stands for the relation's scalar fields."""
        last = segments[-1]
        node, depth = self._follow(segments[:-1], node, depth, last)
        if last == "*":
            self._all(node)
            return
        name = match_field(last, node.manager)
        if name is not None:
            self._add(node, name)
        elif match_name(last, [item.name for item in node.manager.relations]) is not None:
            self._all(self._follow([last], node, depth)[0])
        else:
            raise UnknownNameError(
                "unknown_field",
                f"{node.manager.name} has no field {shown(last)}",
                manager=node.manager,
                path=[last],
                allowed=nearest(last, _names(node.manager)),
            )

    def _all(self, node: _Node) -> None:
        for info in node.manager.fields:
            self._add(node, info.name)

    def _add(self, node: _Node, name: str) -> None:
        self._fields += 1
        if self._fields > self._limits.fields:
            raise ToolError("too_large", f"more than {self._limits.fields} fields are asked for")
        node.fields[name] = None

    def _follow(self, segments: list[str], node: _Node, depth: int, *then: str) -> tuple[_Node, int]:
        """Go through relations; ``then`` is what is asked for behind them."""
        for position, segment in enumerate(segments, 1):
            depth += 1
            if depth > self._limits.depth:
                raise ToolError("too_large", f"fields go through more than {self._limits.depth} relations")
            relation, target = find_relation(segment, node.manager, self._view, *segments[position:], *then)
            if relation.name not in node.relations:
                self._relations += 1
                if self._relations > self._limits.relations:
                    raise ToolError("too_large", f"more than {self._limits.relations} relations are asked for")
                node.relations[relation.name] = _Node(target)
            node = node.relations[relation.name]
        return node, depth


def _names(manager: ManagerInfo) -> list[str]:
    return [item.name for item in manager.fields] + [item.name for item in manager.relations]


def _freeze(node: _Node, list_rows: int) -> Selection:
    many = {relation.name: relation.many for relation in node.manager.relations}
    return Selection(
        fields=tuple(node.fields),
        relations=tuple(
            RelationSelection(name, _freeze(inner, list_rows), limit=list_rows if many[name] else None)
            for name, inner in node.relations.items()
        ),
    )


# --- one row of each ----------------------------------------------------------------------------------------------


def _first(
    value: Any, where: And, order: tuple[Order, ...], manager: ManagerInfo, view: ManagerView, limits: PlanLimits
) -> And:
    """Of the rows that ``where`` lets through, the first in order for each value of ``first_per``."""
    if value is None or value == [] or value == ():
        return where
    if not order:
        raise ToolError(
            "invalid_argument",
            'first_per keeps the first row of each: order_by must say which, such as ["-date"] (the latest)',
        )
    per = read_keys(value, manager, view, depth=limits.depth, most=limits.order, what="first_per")
    return And((First(per, order, where),))
