"""Which mutations a manager offers, and what each takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from django.db import models

from gm_chat.managers.api import FieldInfo, InputInfo, MutationInfo, RelationInfo
from gm_chat.managers.introspect import Members, scalar_type
from gm_chat.managers.names import graphql_name, stem_of_manager

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Offer", "identity_of", "mutations_of"]

_VERBS: Final = {"create": "Create", "update": "Change", "delete": "Delete"}


@dataclass(frozen=True, slots=True)
class Offer:
    """One kind of mutation: the mutation itself, or why it cannot work."""

    mutation: MutationInfo | None
    problem: str = ""


def mutations_of(
    manager: str,
    model: type[models.Model],
    members: Members,
    fields: Mapping[str, FieldInfo],
    relations: Mapping[str, RelationInfo],
) -> dict[str, Offer]:
    """Describe create, update and delete over the manager's own fields and forward relations.

    ``id`` is the primary key, whatever its column's name. What is not declared for the manager is not writable.
    """
    inputs = tuple(_inputs(members, fields, relations))
    missing = sorted(_required(model) - {item.name for item in inputs})
    label = str(model._meta.verbose_name)
    identity = identity_of(members)

    def offer(kind: Any, arguments: Sequence[InputInfo]) -> Offer:
        name = kind + graphql_name(stem_of_manager(manager))
        return Offer(
            MutationInfo(
                name=name,
                manager=manager,
                kind=kind,
                inputs=tuple(arguments),
                description=f"{_VERBS[kind]} one {label}.",
            )
        )

    offers = {
        "create": Offer(None, f"the model requires {', '.join(map(repr, missing))}, which fields= leaves out"),
        "update": Offer(None, "the model has no primary key of one scalar column"),
        "delete": Offer(None, "the model has no primary key of one scalar column"),
    }
    if not missing:
        offers["create"] = offer("create", inputs)
    if identity is not None:
        primary_key = model._meta.pk.name
        changes = [replace(item, required=False) for item in inputs if item.name != primary_key]
        offers["update"] = offer("update", [identity, *changes])
        offers["delete"] = offer("delete", [identity])
    return offers


def identity_of(members: Members) -> InputInfo | None:
    """The input that names the row to change; ``None`` if no single scalar does."""
    column = next((item for item in members.columns.values() if item.source.primary_key), None)
    if column is None:
        return None
    text = "" if column.source.name == "id" else f"its {column.source.name}"
    return InputInfo(name="id", type=column.type, required=True, description=text)


def _inputs(
    members: Members, fields: Mapping[str, FieldInfo], relations: Mapping[str, RelationInfo]
) -> Iterator[InputInfo]:
    for name, info in fields.items():
        column = members.columns.get(name)
        if column is not None and name == column.source.name and _writable(column.source):
            yield InputInfo(
                name=name,
                type=info.type,
                required=_is_required(column.source),
                nullable=info.nullable,
                description=info.description,
                choices=info.choices,
            )
    for name, relation in relations.items():
        member = members.relations[name]
        key = scalar_type(member.model._meta.pk)
        if key is not None and member.source is not None and _settable(member.source):
            yield InputInfo(
                name=name,
                type=key,
                required=not relation.many and _is_required(member.source),
                nullable=not relation.many and relation.nullable,
                description=relation.description,
                relation=relation.target,
                many=relation.many,
            )


def _writable(source: Any) -> bool:
    """Whether a client may set the column: not what the database makes, and no key that has a default."""
    if isinstance(source, models.BinaryField):  # JSON has no bytes
        return False
    return bool(source.editable) and not (source.primary_key and (source.blank or _has_default(source)))


def _settable(source: Any) -> bool:
    """Whether ids are enough to set a forward relation: not if its through model has columns of its own."""
    if isinstance(source, models.ManyToManyField):
        through: Any = source.remote_field.through
        return bool(source.editable) and bool(through._meta.auto_created)
    return isinstance(source, models.ForeignKey) and source.editable and not source.remote_field.parent_link


def _required(model: type[models.Model]) -> set[str]:
    return {source.name for source in model._meta.concrete_fields if source.editable and _is_required(source)}


def _is_required(source: Any) -> bool:
    if source.null or source.blank or _has_default(source):
        return False
    return not (source.remote_field is not None and source.remote_field.parent_link)


def _has_default(source: Any) -> bool:
    return bool(source.has_default()) or source.db_default is not models.NOT_PROVIDED
