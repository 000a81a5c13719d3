"""One hidden row of each model, beside the shop's rows and joined with them, and a key that no row has."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.db import models

from gm_chat.managers import ModelManager, expose, mutation, registry
from gm_chat.managers.describe import describe
from testproject.shop import models as shop

if TYPE_CHECKING:
    from gm_chat.managers.binding import Binding, VisibleTo

__all__ = ["ABSENT_TEXT", "HIDDEN_TEXT", "HiddenRow", "hide_one_each"]

HIDDEN_TEXT, ABSENT_TEXT = "zq hidden", "zq absent"
_KEYS: list[tuple[type[models.Field[Any, Any]], Any, Any]] = [
    (models.UUIDField, uuid.UUID(int=2**127 + 1), uuid.UUID(int=2**127 + 2)),
    (models.IntegerField, -987_654_321, -987_654_322),  # MariaDB would go on counting from a large one
    (models.CharField, "zq-hidden", "zq-absent"),
]


@dataclass(frozen=True)
class HiddenRow:
    """A row of a manager that nobody may see; ``key`` identifies it, ``absent`` is such a key of no row."""

    manager: str
    name: str
    key: Any
    absent: Any
    row: models.Model


def hide_one_each() -> tuple[dict[str, Binding], list[HiddenRow]]:
    """Add them to a filled shop. What may refer to them does so once, also from rows that are shown."""
    bindings = {name: binding for name, binding in registry.bindings().items() if binding.info.exposed}
    found = []
    for name, binding in bindings.items():
        key = next((item for item in binding.info.fields if item.key), None)
        if key is None:  # a key of two columns: neither identifies a row
            continue
        hidden, absent = next(pair[1:] for pair in _KEYS if isinstance(binding.model._meta.pk, pair[0]))
        found.append(HiddenRow(name, key.name, hidden, absent, _twin(binding.model, hidden)))
    exposed = {binding.model for binding in bindings.values()}
    for item in found:
        _join(item.row, exposed)
    keys = {item.manager: item.key for item in found}
    bindings["PartManager"] = _with_a_mutation_of_its_own(bindings["PartManager"], *exposed)
    return {
        name: replace(binding, visible_to=_rule(keys[name]) if name in keys else None)
        for name, binding in bindings.items()
    }, found


@mutation
def re_assign(part: Any, actor: Any, material: shop.Material, projects: list[shop.Project]) -> None:
    part.material = material
    part.save()


def _with_a_mutation_of_its_own(binding: Binding, *models_: type[models.Model]) -> Binding:
    described = describe(
        [
            type(
                "PartManager",
                (ModelManager,),
                {"chat_exposed": True, "model": shop.Part, "fields": ("id",), "re_assign": re_assign},
            ),
            *(expose(model) for model in models_ if model is not shop.Part),
        ]
    ).bindings["PartManager"]
    info = replace(binding.info, mutations=(*binding.info.mutations, described.info.mutations[-1]))
    return replace(binding, info=info, custom=described.custom)


def _rule(key: Any) -> VisibleTo:
    return lambda rows, actor: rows.exclude(pk=key)


def _twin(model: type[models.Model], key: Any) -> models.Model:
    """A copy of the first row, but for its key, its texts and what must be unique."""
    row = model._default_manager.order_by("pk")[0]
    row.pk, row._state.adding = key, True
    for field in model._meta.fields:
        if field.primary_key or field.choices:
            continue
        if isinstance(field, models.OneToOneField):
            taken = model._default_manager.values(field.attname)
            free = field.related_model._default_manager.exclude(pk__in=taken)
            setattr(row, field.attname, free.order_by("pk")[0].pk)
        elif isinstance(field, models.CharField | models.TextField) and not field.is_relation:
            setattr(row, field.attname, HIDDEN_TEXT[: field.max_length])
    row.save(force_insert=True)
    return row


def _join(row: models.Model, exposed: set[type[models.Model]]) -> None:
    """Let a shown row refer to the hidden one over each foreign key, and be linked with it over each other relation."""
    for relation in row._meta.related_objects:
        if isinstance(relation.field, models.OneToOneField) or relation.related_model not in exposed:
            continue
        if isinstance(relation, models.ManyToManyRel):
            if relation.through is not None and relation.through._meta.auto_created:
                getattr(row, str(relation.get_accessor_name())).add(*relation.related_model._default_manager.all()[:2])
            continue
        rows = relation.related_model._default_manager.order_by("pk")
        shown = next(each.pk for each in rows[1:3] if each.pk != row.pk)
        rows.filter(pk=shown).update(**{relation.field.attname: row.pk})
