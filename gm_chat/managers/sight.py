"""What an actor sees of one row: the values that ``query`` would show, and what choices and referenced rows are called.

A row that another refers to is called by a field of it that the actor sees, never by the model's ``__str__``, which may
tell more. One statement reads a row whatever it refers to, one more each of its many-to-many relations that is asked
for: their number says nothing of what is hidden.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Case, F, When

from gm_chat.encoding import canonical_json, jsonable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from gm_chat.managers.api import FieldInfo, ManagerVisibility
    from gm_chat.managers.binding import Binding, RelationBinding
    from gm_chat.managers.rows import Scope

__all__ = ["MAX_NAMES", "MAX_SHOWN", "Seen", "Sight", "brief", "label_of"]

MAX_SHOWN: Final = 500
"""Characters of a value that is shown whole."""
MAX_NAMES: Final = 20
"""How many rows of a list are called by their names."""
_NAMES: Final = ("name", "title", "label", "number", "code")


@dataclass(frozen=True, slots=True)
class Seen:
    """A value as it is read, in JSON types and short enough to be shown, and what it is called if that says more."""

    raw: Any
    value: Any
    label: Any = None


def brief(value: Any) -> Any:
    """The value in JSON types; in place of a long one its start, its length and a digest, equal for equal values."""
    value = jsonable(value)
    text = value if isinstance(value, str) else canonical_json(value)
    if len(text) <= MAX_SHOWN:
        return value
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return {"start": text[:MAX_SHOWN], "length": len(text), "sha256": digest}


def label_of(value: Any, choices: Iterable[tuple[Any, str]]) -> str | None:
    """What a choice is called, if that is more than its value."""
    return next((label for choice, label in choices if choice == value and label != str(value)), None)


@dataclass(frozen=True, slots=True)
class Sight:
    """Rows as the actor of ``scope`` sees them, read from the database ``alias``. ``rights`` are those of the actor."""

    scope: Scope
    rights: Mapping[str, ManagerVisibility]
    alias: str

    def of_row(self, manager: str, key: Any, *, many: Collection[str] = ()) -> dict[str, Seen] | None:
        """The row's visible columns and the rows that it refers to, by name; of to-many relations those in ``many``.

        ``None`` if there is no such row, or none that the actor sees.
        """
        binding, fields, relations = self.scope.bindings[manager], self.fields(manager), self._to_one(manager)
        columns: dict[str, Any] = {item.name: F(binding.columns[item.name]) for item in fields}
        for name, relation in relations.items():
            columns[f"{name} key"] = self._masked(relation, "pk")
            called = self.name_column(relation.target)
            if called is not None:
                columns[f"{name} name"] = self._masked(relation, called)
        aliases = {f"gm_chat_{index}": column for index, column in enumerate(columns.values())}
        rows = self.scope.rows(manager).using(self.alias).filter(pk=key).annotate(**aliases)
        found = list(rows.values_list("pk", *aliases)[:1])
        if not found:
            return None
        values = dict(zip(columns, found[0][1:], strict=True))
        seen = {}
        for item in fields:
            raw = values[item.name]
            seen[item.name] = Seen(raw, brief(raw), label_of(raw, item.choices))
        for name in relations:
            raw, label = values[f"{name} key"], values.get(f"{name} name")
            seen[name] = Seen(raw, brief(raw), None if label is None else brief(label))
        return seen | {name: self._linked(manager, name, key) for name in many}

    def fields(self, manager: str) -> list[FieldInfo]:
        """The visible fields that are columns, in the manager's order."""
        binding, visible = self.scope.bindings[manager], self.rights[manager].fields
        return [item for item in binding.info.fields if item.name in binding.columns and item.name in visible]

    def names(self, manager: str) -> list[str]:
        """All that :meth:`of_row` may tell of a row, in the manager's order."""
        relations = [item.name for item in self.scope.bindings[manager].info.relations]
        return [*(item.name for item in self.fields(manager)), *relations]

    def name_column(self, manager: str) -> str | None:
        """The ORM name of the field that a row is called by: of the visible texts one named so, or the first."""
        name = self._name_field(manager)
        return None if name is None else self.scope.bindings[manager].columns[name]

    def _name_field(self, manager: str) -> str | None:
        if manager not in self.rights:
            return None
        texts = [item.name for item in self.fields(manager) if item.type == "string" and not item.choices]
        return next((name for name in _NAMES if name in texts), texts[0] if texts else None)

    def call(self, manager: str, seen: Mapping[str, Seen]) -> Any:
        """What a row is called that was read whole: where it has no name of its own, by the rows that it refers to."""
        name = self._name_field(manager)
        relations = [seen[item].label for item in self._to_one(manager) if item in seen]
        named = [label for label in relations if isinstance(label, str)]
        if name not in _NAMES and named:
            return ", ".join(named)
        return None if name is None or name not in seen else seen[name].value

    def name_of(self, manager: str, row: Any) -> Any:
        """What a visible row is called, from an instance."""
        column = self.name_column(manager)
        return None if column is None else brief(getattr(row, column))

    def _to_one(self, manager: str) -> dict[str, RelationBinding]:
        binding: Binding = self.scope.bindings[manager]
        return {
            name: relation
            for name, relation in binding.relations.items()
            if relation.kind == "to_one"
            and name in self.rights[manager].relations
            and binding.model._meta.get_field(relation.query_name).concrete
        }

    def _masked(self, relation: RelationBinding, column: str) -> F | Case:
        """A column of the referenced row, null if that is hidden."""
        value = F(f"{relation.query_name}__{column}")
        if not self.scope.is_restricted(relation.target):
            return value
        return Case(When(self.scope.is_visible(relation.target, relation.query_name), then=value))

    def _linked(self, manager: str, name: str, key: Any) -> Seen:
        """The keys of the visible rows behind a many-to-many relation, and the names of the first of them."""
        binding = self.scope.bindings[manager]
        relation = binding.relations[name]
        links: Any = getattr(binding.model(pk=key), relation.query_name)
        called = self.name_column(relation.target)
        rows = self.scope.rows(relation.target).using(self.alias).filter(pk__in=links.using(self.alias).values("pk"))
        found = list(rows.order_by("pk").values_list("pk", "pk" if called is None else called))
        names = None if called is None else [brief(row[1]) for row in found[:MAX_NAMES]]
        keys = [row[0] for row in found]
        return Seen(keys, brief(keys), names)
