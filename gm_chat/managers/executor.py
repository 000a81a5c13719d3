"""Runs a :class:`QueryPlan` over Django models: ``values_list`` querysets, stitched in Python.

One statement for the plan's own rows with everything to-one joined in, one for each to-many relation whatever the
number of rows, one for each manager whose computed fields need instances, and a count only where the page does not
prove the total. Rows that the actor may not see are absent at every hop: a to-one relation to one is null.

Values come out in JSON types, by the rules of :mod:`gm_chat.encoding`. A field with choices gives the stored value;
the labels are part of the schema.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import connections
from django.db.models import Exists, ExpressionWrapper, F, Field, Model, OuterRef, QuerySet, Window
from django.db.models.functions import DenseRank, RowNumber

from gm_chat.encoding import jsonable
from gm_chat.managers.api import FieldType, Path, QueryPage, QueryPlan, RelationSelection, Selection
from gm_chat.managers.conversion import CONVERT, decimal_text, fitting
from gm_chat.managers.deadline import guard
from gm_chat.managers.functions import IsFirst
from gm_chat.managers.rows import Link, Scope, link_of, pk_names, sorted_keys
from gm_chat.managers.statements import Matching

if TYPE_CHECKING:
    from django.db.models.expressions import OrderBy

    from gm_chat.managers.binding import Binding, ComputedField, RelationBinding
    from gm_chat.managers.conversion import Convert
    from gm_chat.plugin import Actor

__all__ = ["execute_plan"]

_PARENT: Final = "gm_chat_parent"
_UNBOUNDED: Final = 2**31
_LARGE: Final = frozenset({"json", "binary"})
"""Types of which one value may take as long as many of others."""
_UNTYPED: Final[Field[Any, Any]] = Field()
Row = dict[str, Any]
Columns = Sequence[Sequence[Any]]


def execute_plan(
    plan: QueryPlan, bindings: Mapping[str, Binding], actor: Actor, *, deadline: float | None = None
) -> QueryPage:
    """Run a plan under the actor's rights. Blocking. Raises ``ToolError("timeout")`` at the deadline.

    ``deadline`` is a ``time.monotonic()`` value that bounds all statements of the call together.
    """
    with guard(bindings[plan.manager].model._default_manager.db, deadline) as check:
        return _run(plan, Scope(bindings, actor, check))


def _run(plan: QueryPlan, scope: Scope) -> QueryPage:
    rows = scope.rows(plan.manager)
    matching = rows.filter(scope.condition(plan.where, plan.manager)) if plan.where.parts else rows
    level = _Level(scope, plan.manager, plan.selection)
    order = scope.order(plan.order, plan.manager)
    first, last = plan.offset, plan.offset + plan.limit + 1

    def compose() -> QuerySet[Any]:
        if plan.order and level.probes and _can_look_up_late(rows):
            # The database computes a row's columns before it sorts: sort keys alone, then probe only the page's rows.
            keys = sorted_keys(matching, order)[first:last]
            return level.select(rows.filter(pk__in=keys).order_by(*order))
        return level.select(matching.order_by(*order)[first:last])

    found = Matching(matching)
    page = found.page(_frame(level, order, first, last), compose)
    fetched = len(page)
    total = plan.offset + fetched
    if fetched > plan.limit or (fetched == 0 and plan.offset):
        total = max(found.count(), total if fetched else 0)
    bounds = _Bounds(plan.nested_rows)
    data = level.assemble(page[: plan.limit], (), bounds)
    kept = fitting(data, plan.max_bytes)
    return QueryPage(
        data=data[:kept],
        total_count=total,
        has_more=plan.offset + kept < total,
        truncated=kept < len(data),
        cut_lists=tuple(sorted(bounds.cuts)),
    )


def _frame(level: _Level, order: Sequence[OrderBy | str], first: int, last: int) -> Hashable | None:
    """All that makes a page's statement but for its conditions, if it is columns and numbers alone."""
    columns, terms = level.columns, [_order_column(term) for term in order]
    return None if columns is None or None in terms else (columns, *terms, first, last, settings.USE_TZ)


def _order_column(term: OrderBy | str) -> Hashable | None:
    if isinstance(term, str):
        return term
    if not isinstance(term.expression, F):  # a mask: it looks up what the actor may see
        return None
    column: Any = term.expression
    return column.name, term.descending, term.nulls_last


def _can_look_up_late(rows: QuerySet[Any]) -> bool:
    features: Any = connections[rows.db].features
    return bool(features.allow_sliced_subqueries_with_in) and len(pk_names(rows.model)) == 1


# --- one statement ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Bounds:
    """How many rows a to-many relation may bring over the page, and the lists that were cut for it."""

    nested_rows: int
    cuts: set[Path] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Many:
    """A to-many relation of a shape: where the parents' keys stand, and the level that fetches the rows.

    In the fetched rows the parent's key stands at ``owner``, the related row's own key at ``identity``.
    ``overflows`` is the position of a flag that the parents' statement brings along: more than ``limit`` rows stand
    behind this parent. Ranking rows costs as much as fetching them, so only a page with such a parent ranks.
    """

    name: str
    parent: int
    overflows: int
    limit: int
    rows: QuerySet[Any]
    link: Link
    order: Sequence[str]
    level: _Level
    owner: int
    identity: Sequence[int]


@dataclass(slots=True)
class _Shape:
    """How columns become the objects of one manager. Numbers are positions in the fetched rows."""

    binding: Binding
    columns: list[tuple[str, int, Convert | None]] = field(default_factory=list)
    computed: list[tuple[str, ComputedField]] = field(default_factory=list)
    ones: list[tuple[str, int, int | None, _Shape]] = field(default_factory=list)
    many: list[_Many] = field(default_factory=list)
    order: tuple[str, ...] = ()
    key: int = -1


class _Level:
    """The rows of one statement: the columns that it fetches, and how they become objects."""

    def __init__(self, scope: Scope, manager: str, selection: Selection, prefix: str = "") -> None:
        self._scope = scope
        self._positions: dict[str, int] = {}
        self._annotations: dict[str, Any] = {}
        self._raw: dict[str, str] = {}
        self._shape = self._plan(selection, manager, prefix)

    @property
    def probes(self) -> bool:
        """Whether the level asks a subselect about each of its rows."""
        return any(isinstance(item, Exists) for item in self._annotations.values())

    @property
    def columns(self) -> Hashable | None:
        """What :meth:`select` selects, to compare it; ``None`` where that is more than columns."""
        is_plain = len(self._raw) == len(self._annotations)
        return (*self._positions, *self._raw.items()) if is_plain else None

    def select(self, rows: QuerySet[Any]) -> QuerySet[Any, tuple[Any, ...]]:
        """The level's columns of ``rows``, in one statement."""
        if self._annotations:
            rows = rows.annotate(**self._annotations)
        return rows.values_list(*self._positions)

    def assemble(self, rows: Sequence[tuple[Any, ...]], path: Path, bounds: _Bounds) -> list[Row]:
        """Make objects of fetched rows, their to-many relations included."""
        columns: Columns = list(zip(*rows, strict=True)) if rows else [()] * len(self._positions)
        return self._objects(self._shape, columns, path, bounds)

    def position(self, column: str) -> int:
        """Where a column stands in the fetched rows; it is fetched from now on."""
        return self._positions.setdefault(column, len(self._positions))

    def _annotated(self, expression: Any) -> int:
        alias = f"gm_chat_{len(self._annotations)}"
        self._annotations[alias] = expression
        return self.position(alias)

    def _column(self, column: str, kind: FieldType, source: Binding, query_name: str) -> tuple[int, Convert | None]:
        if kind == "decimal":
            # Past Django's converter, which makes a Decimal of every float that SQLite stores, at three times the cost.
            position = self._annotated(ExpressionWrapper(F(column), output_field=_UNTYPED))
            self._raw[f"gm_chat_{len(self._raw)}"] = column
            is_binary = connections[source.model._default_manager.db].vendor == "sqlite"
            return position, decimal_text(source.model, query_name, binary=is_binary)
        convert = CONVERT.get(kind)
        return self.position(column), self._bounded(convert) if convert is not None and kind in _LARGE else convert

    def _bounded(self, convert: Callable[[Any], Any]) -> Convert:
        """Of one value after another, as long as there is time."""
        check = self._scope.check

        def bounded(value: Any) -> Any:
            check()
            return convert(value)

        return bounded

    def _plan(self, selection: Selection, manager: str, prefix: str) -> _Shape:
        scope, binding = self._scope, self._scope.bindings[manager]
        infos = scope.fields(manager)
        shape = _Shape(binding, order=(*selection.fields, *(item.name for item in selection.relations)))
        for name in selection.fields:
            if name in binding.columns:
                query_name = binding.columns[name]
                position, convert = self._column(prefix + query_name, infos[name].type, binding, query_name)
                shape.columns.append((name, position, convert))
            else:
                shape.computed.append((name, binding.computed[name]))
        if shape.computed:
            shape.key = self.position(f"{prefix}pk")
        for item in selection.relations:
            relation = binding.relations[item.name]
            path = prefix + relation.query_name
            if relation.kind == "to_one":
                key, mask = self.position(f"{path}__pk"), None
                if scope.is_restricted(relation.target):
                    mask = self._annotated(scope.is_visible(relation.target, path))
                inner = self._plan(item.selection, relation.target, f"{path}__")
                shape.ones.append((item.name, key, mask, inner))
            else:
                shape.many.append(self._many(item, binding.model, relation, prefix))
        return shape

    def _many(self, item: RelationSelection, model: type[Model], relation: RelationBinding, prefix: str) -> _Many:
        scope, link = self._scope, link_of(model, relation.query_name)
        limit = _UNBOUNDED if item.limit is None else item.limit
        rows = scope.linked(link, relation, scope.rows(relation.target))
        more = (
            rows.annotate(**{_PARENT: link.key()})
            .filter(**{_PARENT: OuterRef(prefix + link.parent_key)})
            .values("pk")[limit : limit + 1]
        )
        level = _Level(scope, relation.target, item.selection, link.prefix)
        order = [link.prefix + name for name in pk_names(scope.bindings[relation.target].model)]
        return _Many(
            name=item.name,
            parent=self.position(prefix + link.parent_key),
            overflows=self._annotated(Exists(more)),
            limit=limit,
            rows=rows,
            link=link,
            order=order,
            level=level,
            owner=level.position(_PARENT),
            identity=[level.position(name) for name in order] if link.may_repeat else (),
        )

    def _objects(
        self, shape: _Shape, columns: Columns, path: Path, bounds: _Bounds, within: Sequence[Any] | None = None
    ) -> list[Row]:
        """One object for each fetched row. ``within`` is false where an object around it is hidden: nothing is fetched
        for those, as the statements and bounds of a page must not tell of them.
        """
        values: dict[str, Iterable[Any]] = {}
        for name, position, convert in shape.columns:
            self._scope.check()
            column = columns[position]
            values[name] = column if convert is None else [None if v is None else convert(v) for v in column]
        if shape.computed:
            values.update(self._compute(shape, _shown(columns[shape.key], within)))
        for name, key, mask, inner in shape.ones:
            shown = within if mask is None else _shown(columns[mask], within)
            objects = self._objects(inner, columns, (*path, name), bounds, shown)
            keys = _shown(columns[key], shown)
            values[name] = [None if k is None else item for k, item in zip(keys, objects, strict=True)]
        for many in shape.many:
            parents, overflows = _shown(columns[many.parent], within), _shown(columns[many.overflows], within)
            children = _children(many, parents, overflows, (*path, many.name), bounds)
            values[many.name] = [children.get(key, []) for key in parents]
        names = shape.order
        rows = zip(*(values[name] for name in names), strict=True)
        return [dict(zip(names, row)) for row in rows]  # noqa: B905 - as long by construction; strict costs a third

    def _compute(self, shape: _Shape, keys: Sequence[Any]) -> dict[str, list[Any]]:
        """Computed fields, from instances that one statement loads."""
        binding, actor = shape.binding, self._scope.actor
        needed = {need for _, item in shape.computed for need in item.needs}
        everything = any(not item.needs for _, item in shape.computed)
        wanted = {key for key in keys if key is not None}
        rows = _loading(self._scope.rows(binding.info.name), needed, everything=everything).filter(pk__in=wanted)
        instances = {instance.pk: instance for instance in rows} if wanted else {}
        computed = {name: self._bounded(partial(_computed, item, actor)) for name, item in shape.computed}
        return {
            name: [compute(instances[key]) if key in instances else None for key in keys]
            for name, compute in computed.items()
        }


def _computed(item: ComputedField, actor: Actor, instance: Model) -> Any:
    return jsonable(item.compute(instance, actor))


def _shown(column: Sequence[Any], within: Sequence[Any] | None) -> Sequence[Any]:
    """The column, ``None`` where ``within`` is false."""
    return (
        column
        if within is None
        else [item if is_shown else None for item, is_shown in zip(column, within, strict=True)]
    )


def _children(
    many: _Many, parents: Sequence[Any], overflows: Sequence[Any], path: Path, bounds: _Bounds
) -> dict[Any, list[Row]]:
    """The related objects of all parents by parent key, in one statement, bounded per parent in SQL."""
    keys = list(dict.fromkeys(key for key in parents if key is not None))
    if not keys:
        return {}
    limit = min(many.limit, max(1, bounds.nested_rows // len(keys)))
    ranked = limit < many.limit or any(overflows)
    link, owner, rows = many.link, many.owner, many.rows.filter(**{f"{many.link.column}__in": keys})
    if ranked:
        rank = DenseRank() if link.may_repeat else RowNumber()
        window = Window(rank, partition_by=[F(link.column)], order_by=[F(name) for name in many.order])
        # By key: beside a condition on a window Django drops columns that stand twice, as part.id and its foreign key.
        rows = rows.filter(IsFirst(pk_names(link.model), rows, window, limit + 1))
    fetched = list(many.level.select(rows.annotate(**{_PARENT: link.key()}).order_by(*many.order)))
    if link.may_repeat:  # a through model with columns of its own may join the same two rows again
        places = (owner, *many.identity)
        fetched = list({tuple(row[place] for place in places): row for row in fetched}.values())
    if ranked and len(fetched) > len(kept := _cut(fetched, owner, limit)):
        bounds.cuts.add(path)
        fetched = kept
    children: defaultdict[Any, list[Row]] = defaultdict(list)
    for key, item in zip(map(itemgetter(owner), fetched), many.level.assemble(fetched, path, bounds), strict=True):
        children[key].append(item)
    return children


def _cut(rows: list[tuple[Any, ...]], owner: int, limit: int) -> list[tuple[Any, ...]]:
    """The first ``limit`` rows of each parent."""
    counts: dict[Any, int] = {}
    kept = []
    for row in rows:
        count = counts[row[owner]] = counts.get(row[owner], 0) + 1
        if count <= limit:
            kept.append(row)
    return kept


def _loading(rows: QuerySet[Any], needed: set[str], *, everything: bool) -> QuerySet[Any]:
    """Load what computed fields say they read: columns alone where they can be told, relations along with the row."""
    options = rows.model._meta
    members = {name: options.pk if name in ("id", "pk") else options.get_field(name) for name in needed}
    relations = {name: member for name, member in members.items() if member is not None and member.is_relation}
    if relations:
        one = [name for name, member in relations.items() if member.many_to_one or member.one_to_one]
        rows = rows.select_related(*one) if one else rows
        return rows.prefetch_related(*(name for name in relations if name not in one))
    return rows if everything else rows.only(*(name if name != "id" else "pk" for name in needed))
