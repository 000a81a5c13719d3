"""What an actor may see of a manager's rows, as querysets: the one place where row visibility becomes SQL.

Whatever reaches a manager, root, relation, filter or order, takes its rows from :meth:`Scope.rows`. Filters through a
relation compile to ``IN (SELECT ...)`` over those rows: a join would double parents and match rows that are hidden.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any, Final, assert_never

from django.db import connections, models
from django.db.models import Case, DecimalField, Exists, ExpressionWrapper, F, OuterRef, Q, Value, When, Window
from django.db.models.expressions import OrderBy
from django.db.models.functions import (
    Cast,
    ExtractDay,
    ExtractMonth,
    ExtractYear,
    Rank,
    RowNumber,
    TruncDate,
)
from django.db.models.lookups import IsNull

from gm_chat.managers.api import (
    And,
    Condition,
    FieldInfo,
    FieldReference,
    FieldType,
    First,
    Not,
    Or,
    Order,
    Path,
    Related,
    Where,
)
from gm_chat.managers.date_parts import part_of
from gm_chat.managers.deadline import unbounded
from gm_chat.managers.functions import IsFirst, Shifted, require_time_zones
from gm_chat.managers.visibility import sees

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models.sql import Query

    from gm_chat.managers.binding import Binding, RelationBinding
    from gm_chat.managers.deadline import Check
    from gm_chat.plugin import Actor

__all__ = ["Link", "Outer", "Scope", "link_of", "pk_names", "sorted_keys"]

NOTHING: Final = Q(pk__in=[])
EVERYTHING: Final = ~Q(pk__in=[])
_EXTRACT: Final[Mapping[str, Any]] = {"year": ExtractYear, "month": ExtractMonth, "day": ExtractDay}
_OF_DAYS: Final = frozenset({"date", "quarter", "month", "day", "weekday", "hour"})
_DATES: Final[Mapping[str, Any]] = {"date": models.DateField(), "datetime": models.DateTimeField()}


class _Number(Cast):
    """The number that a text is, else null: the table of a generic relation may hold keys of other kinds as well."""

    def as_postgresql(self, compiler: Any, *_: Any, **__: Any) -> Any:
        """PostgreSQL may cast before it looks at whose key it is, and fail."""
        text, params = compiler.compile(self.get_source_expressions()[0])
        return f"CASE WHEN {text} ~ '^-?[0-9]{{1,18}}$' THEN ({text})::bigint END", (*params, *params)


@dataclass(frozen=True, slots=True)
class Link:
    """A relation seen from its far side: which table tells what belongs to which parent.

    ``model`` holds ``column``, which refers to the parent's ``parent_key``; ``prefix`` leads from there to the
    related rows (empty, or the second foreign key of a many-to-many). ``fixed`` narrows a generic relation.
    """

    model: type[models.Model]
    column: str
    parent_key: str
    prefix: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    may_repeat: bool = False
    is_text: bool = False

    def key(self) -> F | Cast:
        """The parent's key, as a number where a generic relation holds it as text."""
        return _Number(self.column, models.BigIntegerField()) if self.is_text else F(self.column)


def link_of(model: type[models.Model], query_name: str) -> Link:
    """The link behind a to-many relation, or behind the reverse side of a one-to-one."""
    relation: Any = model._meta.get_field(query_name)
    if hasattr(relation, "object_id_field_name"):  # a GenericRelation, whose module needs contenttypes installed
        content_type = relation.content_type_field_name
        concrete = model._meta.concrete_model if relation.for_concrete_model else model
        options, related, column = (concrete or model)._meta, relation.related_model, relation.object_id_field_name
        return Link(
            related,
            column,
            "pk",
            fixed={f"{content_type}__app_label": options.app_label, f"{content_type}__model": options.model_name},
            is_text=isinstance(related._meta.get_field(column), models.CharField | models.TextField)
            and isinstance(options.pk, models.IntegerField),
        )
    if relation.many_to_many:
        forward: Any = relation if isinstance(relation, models.ManyToManyField) else relation.field
        near, far = forward.m2m_field_name(), forward.m2m_reverse_field_name()
        if forward is not relation:
            near, far = far, near
        through = forward.remote_field.through
        source = through._meta.get_field(near)
        repeats = not through._meta.auto_created
        return Link(through, source.attname, source.target_field.name, prefix=f"{far}__", may_repeat=repeats)
    source = relation.field
    return Link(relation.related_model, source.attname, source.target_field.name)


def pk_names(model: type[models.Model]) -> list[str]:
    """The columns of the primary key; a composite one has several."""
    return [column.attname for column in model._meta.pk_fields]


def sorted_keys(rows: models.QuerySet[Any], order: Sequence[OrderBy | str]) -> models.QuerySet[Any]:
    """The primary keys of ``rows`` in the order of :meth:`Scope.order`, for use as a subselect.

    Of a subselect Django resolves the order last, when the tables of a mask in it can no longer be told from those
    around it: "is there a visible row of this key" would become "is there a visible row". An alias is resolved at once.
    """
    terms = {f"gm_chat_order_{number}": term for number, term in enumerate(order) if not isinstance(term, str)}
    rows = rows.alias(**{name: term.expression for name, term in terms.items()})
    sorts = [OrderBy(F(name), descending=term.descending, nulls_last=term.nulls_last) for name, term in terms.items()]
    return rows.order_by(*sorts, *(term for term in order if isinstance(term, str))).values("pk")


class _Masked(Case):
    """A value, or null. Where nothing can be shown, PostgreSQL still wants to know of what type."""

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Django leaves a bare NULL of a case whose conditions cannot hold."""
        sql, params = self.as_sql(compiler, connection, **context)
        return (f"NULL::{self.output_field.cast_db_type(connection)}" if sql == "NULL" else sql), params


@dataclass(frozen=True, slots=True)
class Outer:
    """The row that a whole condition is about, seen from a subselect of a subselect of it, ``level`` deep."""

    manager: str
    level: int


@dataclass(frozen=True, slots=True)
class Scope:
    """All managers of a source as one actor sees them, for the time of one call."""

    bindings: Mapping[str, Binding]
    actor: Actor
    check: Check = unbounded
    """Called wherever Python works for long: raises when the call's time is over."""
    _rows: dict[str, models.QuerySet[Any]] = field(default_factory=dict, init=False)
    _fields: dict[str, dict[str, FieldInfo]] = field(default_factory=dict, init=False)

    def rows(self, manager: str) -> models.QuerySet[Any]:
        """The visible rows, each once, unordered."""
        if manager not in self._rows:
            self._rows[manager] = self._limit(self.bindings[manager])
        return self._rows[manager]

    def is_restricted(self, manager: str) -> bool:
        """Whether any row of the table may be missing from :meth:`rows`."""
        return bool(self.rows(manager).query.where)

    def fields(self, manager: str) -> Mapping[str, FieldInfo]:
        """The manager's fields by name."""
        if manager not in self._fields:
            self._fields[manager] = {info.name: info for info in self.bindings[manager].info.fields}
        return self._fields[manager]

    def is_visible(self, manager: str, path: str) -> Exists:
        """Whether the row at ``path`` is visible: looked up by key, so it costs what the page costs."""
        return Exists(self.rows(manager).filter(pk=OuterRef(f"{path}__pk")))

    def linked(self, link: Link, relation: RelationBinding, related: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """The rows of ``link.model`` that stand for rows of ``related``; what joins the sides must be visible too."""
        if not link.prefix:
            return related.filter(**link.fixed) if link.fixed else related
        pairs: models.QuerySet[Any] = link.model._default_manager.order_by()
        through = self._joining(relation)
        if through and all(map(self.is_restricted, through)):
            shown = (Q(pk__in=self.rows(name).values("pk")) for name in through)
            pairs = pairs.filter(reduce(or_, shown))
        return pairs.filter(**{f"{link.prefix}in": related}) if related.query.where else pairs

    def _joining(self, relation: RelationBinding) -> Sequence[str]:
        """Of the managers of what joins the sides, those that the actor sees: the rows of others join nothing.

        With a single one the relation itself is hidden where that is.
        """
        if len(relation.through) < 2:
            return relation.through
        seen = [name for name in relation.through if sees(self.bindings[name], self.actor)]
        return seen or relation.through

    def _limit(self, binding: Binding) -> models.QuerySet[Any]:
        model = binding.model
        rows: Any = model._default_manager.all()
        if binding.visible_to is not None:
            rows = binding.visible_to(rows, self.actor)
        if not isinstance(rows, models.QuerySet) or rows.model._meta.concrete_model is not model._meta.concrete_model:
            kind = type(rows).__name__
            raise TypeError(f"{binding.info.name}.visible_to returned a {kind}; it must return its queryset, filtered")
        if _is_plain(rows.query):
            return rows.order_by()
        keys: Any = rows.values("pk") if rows.query.is_sliced else rows.order_by().values("pk")
        if rows.query.is_sliced and not _can_be_sliced_within(rows):
            keys = list(keys.values_list("pk", flat=True))
        return model._base_manager.using(rows.db).filter(pk__in=keys)

    # --- conditions ---------------------------------------------------------------------------------------------

    def condition(self, where: Where, manager: str, outer: Outer | None = None) -> Q:
        """Compile a condition over the manager's rows; ``outer`` is the row that all of it is about, if not that."""
        match where:
            case And(parts):
                return reduce(and_, (self.condition(part, manager, outer) for part in parts), Q())
            case Or(parts):
                return reduce(
                    or_, (self._never_empty(part, manager, outer) for part in parts), NOTHING if not parts else Q()
                )
            case Not(part):
                return ~self._never_empty(part, manager, outer)
            case Related(relation, part):
                return self._related(self.bindings[manager].relations[relation], part, manager, outer)
            case First():
                return self._first(where, manager)
            case Condition(path, lookup, value):
                if len(path) > 1:
                    return self.condition(Related(path[0], Condition(path[1:], lookup, value)), manager, outer)
                return self._leaf(path[0], lookup, value, manager, outer)
        assert_never(where)

    def _never_empty(self, where: Where, manager: str, outer: Outer | None) -> Q:
        """An empty ``Q`` vanishes under ``|`` and ``~``, where it should mean "true"."""
        return self.condition(where, manager, outer) or EVERYTHING

    def _first(self, first: First, manager: str) -> Q:
        rows = self.rows(manager)
        if first.where.parts:
            rows = rows.filter(self.condition(first.where, manager))
        if any(key.part and self.field(key.path, manager).type == "datetime" for key in first.per):
            require_time_zones(connections[rows.db])
        window = Window(
            Rank() if first.ties else RowNumber(),
            partition_by=[part_of(self.value(key.path, manager), key.part) for key in first.per] or None,
            order_by=self.order(first.order, manager)[: len(first.order) if first.ties else None],
        )
        return Q(IsFirst(pk_names(rows.model), rows, window))

    def _leaf(self, name: str, lookup: str, value: Any, manager: str, outer: Outer | None) -> Q:
        column = self.bindings[manager].columns[name]
        if lookup.split("__")[0] in _OF_DAYS and self.fields(manager)[name].type == "datetime":
            require_time_zones(connections[self.rows(manager).db])
        lookup = lookup.replace("weekday", "iso_week_day")
        if isinstance(value, FieldReference):
            return self._compared(column, self.fields(manager)[name].type, lookup, value, manager, outer)
        if self.fields(manager)[name].type == "decimal" and lookup != "isnull":
            # As a bare value it would be rounded to the column's places: 0.995 would match 1.00.
            wrap = DecimalField()
            value = [Value(item, wrap) for item in value] if isinstance(value, tuple) else Value(value, wrap)
        return Q(**{f"{column}__{lookup}": value})

    def _compared(
        self, column: str, kind: FieldType, lookup: str, reference: FieldReference, manager: str, outer: Outer | None
    ) -> Q:
        """Two fields. A comparison with null does not hold, so that its negation does, as everywhere."""
        other: Any
        of_days = {kind, reference.type} == {"date", "datetime"} or reference.part is not None
        if of_days and "datetime" in {kind, reference.type}:
            require_time_zones(connections[self.rows(manager).db])
        if reference.outer and outer is not None:
            other = self.bindings[outer.manager].columns[reference.path[0]]
            for _ in range(outer.level):
                other = OuterRef(other)
            if reference.type in _DATES:  # functions of dates look at the type before the name is resolved
                other = ExpressionWrapper(other, output_field=_DATES[reference.type])
        else:
            other = self.value(reference.path, manager)
        known = Q(IsNull(other, rhs=False))
        if reference.plus is not None:
            other = Shifted(other, *reference.plus, of=reference.type)
        if reference.part is not None:
            other = _EXTRACT[reference.part](other)
        elif kind == "datetime" and reference.type == "date":
            lookup = f"date__{lookup}"
        elif kind == "date" and reference.type == "datetime":
            other = TruncDate(other)
        return Q(**{f"{column}__{lookup}": other}) & known

    def _related(self, relation: RelationBinding, part: Where, manager: str, outer: Outer | None) -> Q:
        model = self.bindings[manager].model
        direct = relation.kind == "to_one" and model._meta.get_field(relation.query_name).concrete
        link = None if direct else link_of(model, relation.query_name)
        levels = (outer.level if outer else 0) + (2 if link is not None and link.prefix else 1)
        within = Outer(outer.manager if outer else manager, levels)
        rows = self.rows(relation.target).filter(self.condition(part, relation.target, within))
        if link is None:
            return Q(**{f"{relation.query_name}__in": rows})
        keys = (
            self.linked(link, relation, rows)
            .filter(**{f"{link.column}__isnull": False})
            .values_list(link.key() if link.is_text else link.column)
        )
        return Q(**{f"{link.parent_key}__in": keys})

    # --- order --------------------------------------------------------------------------------------------------

    def order(self, terms: tuple[Order, ...], manager: str) -> list[OrderBy | str]:
        """Compile ordering terms, nulls last, and end with the primary key so that pages never overlap."""
        compiled: list[OrderBy | str] = [self._term(term, manager) for term in terms]
        return [*compiled, *pk_names(self.bindings[manager].model)]

    def _term(self, term: Order, manager: str) -> OrderBy:
        info = self.field(term.path, manager)
        value = self.value(term.path, manager)
        nulls_last = True if len(term.path) > 1 or info.nullable else None
        ordered: OrderBy = value.desc(nulls_last=nulls_last) if term.descending else value.asc(nulls_last=nulls_last)
        return ordered

    def field(self, path: Path, manager: str) -> FieldInfo:
        """What stands at the end of a path."""
        for hop in path[:-1]:
            manager = self.bindings[manager].relations[hop].target
        return self.fields(manager)[path[-1]]

    def value(self, path: Path, manager: str) -> F | Case:
        """A field through to-one relations, null behind a hidden row: nothing computed from it may betray it."""
        binding, prefix, masks = self.bindings[manager], "", []
        for hop in path[:-1]:
            relation = binding.relations[hop]
            prefix += f"{relation.query_name}__"
            if self.is_restricted(relation.target):
                masks.append(self.is_visible(relation.target, prefix.removesuffix("__")))
            binding = self.bindings[relation.target]
        value = F(prefix + binding.columns[path[-1]])
        return _Masked(When(reduce(and_, (Q(mask) for mask in masks)), then=value)) if masks else value


def _can_be_sliced_within(rows: models.QuerySet[Any]) -> bool:
    """Whether the keys of a slice can be a subselect. MariaDB knows none such; of a key of several columns Django may
    make an EXISTS on SQLite, and there the slice is lost.
    """
    features: Any = connections[rows.db].features
    return features.allow_sliced_subqueries_with_in and (
        len(pk_names(rows.model)) == 1 or getattr(features, "supports_tuple_lookups", True)
    )


def _is_plain(query: Query) -> bool:
    """Whether the query gives each row once and can be filtered and counted on as it is."""
    joins = (getattr(join, "join_field", None) for join in query.alias_map.values())
    return (
        not (query.distinct or query.is_sliced or query.combinator or query.group_by or query.annotations)
        and not (query.extra_tables or query.select_related)
        and all(join is None or isinstance(join, models.ForeignKey) for join in joins)
    )
