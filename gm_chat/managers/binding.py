"""How a declared manager is bound to its Django model: what the executor needs and the index never shows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from django.db import models

if TYPE_CHECKING:
    from enum import Enum

    from gm_chat.managers.api import FieldType, ManagerInfo
    from gm_chat.plugin.context import Actor

__all__ = ["Binding", "BoundMutation", "ComputedField", "RelationBinding", "VisibleFields", "VisibleTo"]

VisibleTo = Callable[[models.QuerySet[Any], "Actor"], models.QuerySet[Any]]
VisibleFields = Callable[[frozenset[str], "Actor"], Collection[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationBinding:
    """A relation by its ORM query name (what ``filter()`` understands) and the target manager's name.

    ``through`` names the exposed managers of the model that joins the two sides of a many-to-many relation: a row of it
    that none of them shows joins nothing.
    """

    query_name: str
    target: str
    kind: Literal["to_one", "to_many"]
    through: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedField:
    """A field computed in Python from an instance; ``needs`` names the model fields that it reads."""

    compute: Callable[[Any, Actor], Any]
    type: FieldType
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundMutation:
    """A mutation of the project's own: called as ``function(row, actor, **inputs)``, without the row if not ``on_row``.

    ``permission`` as :class:`~gm_chat.managers.declare.CustomMutation` has it; ``enums`` are the inputs that are
    members of an enumeration.
    """

    function: Callable[..., Any]
    on_row: bool
    permission: str | Callable[[Actor], bool] | None = None
    enums: Mapping[str, type[Enum]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """One manager over one model.

    ``columns`` maps each scalar field's public name to its ORM query name; ``visible_to`` limits rows for an actor
    and is ``None`` when every row is visible to whoever sees the manager; ``visible_fields`` does so for fields and
    relations. ``custom`` holds the project's own mutations by name; ``preview`` says whether any may be tried first.
    """

    info: ManagerInfo
    model: type[models.Model]
    columns: Mapping[str, str]
    relations: Mapping[str, RelationBinding] = field(default_factory=dict)
    computed: Mapping[str, ComputedField] = field(default_factory=dict)
    visible_to: VisibleTo | None = None
    visible_fields: VisibleFields | None = None
    custom: Mapping[str, BoundMutation] = field(default_factory=dict)
    preview: bool = True
