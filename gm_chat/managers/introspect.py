"""What a Django model offers: its scalar columns and its relations of every kind, by name.

Left out, because no single value or no single key stands behind them: composite primary keys and what points to
them through several columns, generic foreign keys (their ``object_id`` is an ordinary column), and fields whose
Python type has no JSON form that we know.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django.db import models

from gm_chat.managers.names import is_secret_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gm_chat.managers.api import FieldType

__all__ = ["LOOKUPS", "Column", "Members", "Relation", "members_of", "scalar_type"]

_COMPARED: Final = ("exact", "in", "gt", "gte", "lt", "lte", "range", "isnull")
_TEXT: Final = (
    *("exact", "iexact", "in", "contains", "icontains", "startswith", "istartswith", "endswith", "iendswith"),
    *("gt", "gte", "lt", "lte", "isnull"),
)
LOOKUPS: Final[dict[FieldType, tuple[str, ...]]] = {
    "string": _TEXT,
    "integer": _COMPARED,
    "number": _COMPARED,
    "decimal": _COMPARED,
    "boolean": ("exact", "isnull"),
    "date": (*_COMPARED, "year", "quarter", "month", "day", "weekday"),
    "datetime": (*_COMPARED, "date", "year", "quarter", "month", "day", "weekday", "hour"),
    "time": _COMPARED,
    "duration": _COMPARED,
    "uuid": ("exact", "in", "isnull"),
    "json": ("isnull",),
    "binary": ("isnull",),
}
"""What a filter may apply to a field, by its type."""

_TYPES: Final[tuple[tuple[type[models.Field[Any, Any]], FieldType], ...]] = (
    (models.BooleanField, "boolean"),
    (models.IntegerField, "integer"),  # every AutoField is one
    (models.FloatField, "number"),
    (models.DecimalField, "decimal"),
    (models.DateTimeField, "datetime"),  # before its base class
    (models.DateField, "date"),
    (models.TimeField, "time"),
    (models.DurationField, "duration"),
    (models.UUIDField, "uuid"),
    (models.JSONField, "json"),
    (models.BinaryField, "binary"),
    (models.CharField, "string"),
    (models.TextField, "string"),
    (models.FileField, "string"),
    (models.FilePathField, "string"),
    (models.GenericIPAddressField, "string"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A scalar under its public name. ``source`` is the model field, ``query_name`` what ``filter()`` understands."""

    name: str
    query_name: str
    type: FieldType
    source: models.Field[Any, Any]

    @property
    def choices(self) -> tuple[tuple[Any, str], ...]:
        """Values and labels, groups flattened, without the blank choice."""
        return tuple((value, str(label)) for value, label in self.source.flatchoices if value not in (None, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A relation under its public name. ``source`` is the forward field, ``None`` for the reverse side of one."""

    name: str
    query_name: str
    model: type[models.Model]
    many: bool
    nullable: bool
    source: models.Field[Any, Any] | None = None


@dataclass(slots=True)
class Members:
    """Everything that a declaration may name. ``default`` is what ``"__all__"`` stands for, in order."""

    columns: dict[str, Column] = field(default_factory=dict)
    relations: dict[str, Relation] = field(default_factory=dict)
    default: list[str] = field(default_factory=list)
    unusable: dict[str, str] = field(default_factory=dict)
    """Names of the model that cannot be offered, and why."""

    def add(self, member: Column | Relation, *, default: bool = True) -> None:
        """Take a member in, unless its name is taken."""
        if member.name in self.columns or member.name in self.relations:
            return
        if isinstance(member, Column):
            self.columns[member.name] = member
            default = default and not is_secret_name(member.name)
        else:
            self.relations[member.name] = member
        if default:
            self.default.append(member.name)


def members_of(model: type[models.Model]) -> Members:
    """Introspect a model; forward fields come before reverse relations, each in the order of declaration."""
    members = Members()
    options = model._meta
    forward = [*options.fields, *options.many_to_many, *options.private_fields]
    for source in forward:
        for member, default in _forward(source, members):
            members.add(member, default=default)
    for reverse in options.related_objects:
        for relation, default in _reverse(reverse, members):
            members.add(relation, default=default)
    primary_key = options.pk
    scalar = scalar_type(primary_key)
    if scalar is None:
        members.unusable |= dict.fromkeys({"id", "pk"} - members.columns.keys(), "several columns stand behind it")
    else:  # add() leaves it out where the key's own name is "id"
        column = Column(name="id", query_name="pk", type=scalar, source=primary_key)
        members.add(column, default=primary_key.is_relation)
    return members


def _forward(source: Any, members: Members) -> Iterator[tuple[Column | Relation, bool]]:
    if source.is_relation and source.related_model is None:
        members.unusable[source.name] = "a generic foreign key points to no one model"
    elif source.many_to_many or source.one_to_many:  # the latter is a GenericRelation
        yield _relation(source, many=True), True
    elif isinstance(source, models.ForeignKey):  # a OneToOneField is one
        yield _relation(source, many=False), True
        scalar = scalar_type(source)
        if scalar is not None:
            yield Column(name=source.attname, query_name=source.attname, type=scalar, source=source), False
    elif source.column is None:
        members.unusable[source.name] = "several columns stand behind it"
    elif (scalar := scalar_type(source)) is not None:
        yield Column(name=source.name, query_name=source.name, type=scalar, source=source), True
    else:
        members.unusable[source.name] = f"a {type(source).__name__} has no scalar type; use a computed field"


def _relation(source: Any, *, many: bool) -> Relation:
    return Relation(
        name=source.name,
        query_name=source.name,
        model=source.related_model,
        many=many,
        nullable=many or source.null,
        source=source,
    )


def _reverse(reverse: Any, members: Members) -> Iterator[tuple[Relation, bool]]:
    """The far side of a relation, under the name that ``filter()`` uses and under its accessor's.

    With a ``related_name`` the accessor is how people know it; without, Django's ``part_set`` is noise.
    """
    accessor, query_name = reverse.get_accessor_name(), reverse.field.related_query_name()
    if not isinstance(reverse.field, models.ForeignKey | models.ManyToManyField):
        members.unusable[accessor] = "several columns stand behind it"
        return
    many = not reverse.one_to_one
    names = [accessor, query_name] if reverse.related_name else [query_name, accessor]
    for position, name in enumerate(dict.fromkeys(names)):
        relation = Relation(name=name, query_name=query_name, model=reverse.related_model, many=many, nullable=True)
        yield relation, position == 0


def scalar_type(source: Any) -> FieldType | None:
    """The type of a model field's column (a foreign key: its target's); ``None`` where no scalar stands behind it."""
    if isinstance(source, models.ForeignKey):
        return scalar_type(source.target_field)
    if isinstance(source, models.GeneratedField):
        return scalar_type(source.output_field)
    return next((name for base, name in _TYPES if isinstance(source, base)), None)
