"""One mutation over a Django model, step by step: find its row, check it, make it ready, do it.

Rows are reached through what the actor may see: a hidden row is "not found", and so is a hidden row that an input
refers to. A row must still be visible to the actor after create and update, or the write is undone: nobody can put a
row where they could not reach it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gm_chat.encoding import jsonable
from gm_chat.managers.spelling import shown
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from django.db import models

    from gm_chat.managers.api import InputInfo, MutationCall
    from gm_chat.managers.binding import BoundMutation, RelationBinding
    from gm_chat.managers.rows import Scope

__all__ = ["Writing"]


class Writing:
    """A call while it runs, inside a transaction: :meth:`lock`, :meth:`prepare` and :meth:`apply`, in this order."""

    def __init__(self, call: MutationCall, scope: Scope, alias: str) -> None:
        """Use the database ``alias`` for everything."""
        self.call = call
        self.binding = scope.bindings[call.mutation.manager]
        self.inputs: dict[str, InputInfo] = {item.name: item for item in call.mutation.inputs}
        self.key: Any = call.values.get("id") if self.has_target else None
        self.values = {name: value for name, value in call.values.items() if not (name == "id" and self.has_target)}
        """The inputs without the key of the row."""
        self.row: Any = None
        """The row that is written: the locked one, or the new one."""
        self.related: dict[str, list[Any]] = {}
        """By input, the visible rows that it refers to. Complete once the call is prepared."""
        self._scope = scope
        self.alias = alias

    @property
    def has_target(self) -> bool:
        """Whether the call is about a row that exists."""
        kind = self.call.mutation.kind
        return self._custom.on_row if kind == "custom" else kind != "create"

    @property
    def _custom(self) -> BoundMutation:
        name = self.call.mutation.name
        if name not in self.binding.custom:
            raise TypeError(f"{self.binding.info.name} has no function for the mutation {name!r}")
        return self.binding.custom[name]

    def lock(self) -> None:
        """Get the row to change, locked, if the actor may see it. A hidden and an absent one cost the same."""
        if not self.has_target:
            return
        rows: models.QuerySet[Any] = self.binding.model._base_manager.using(self.alias)
        self.row = rows.select_for_update().filter(pk=self.key).first()
        is_visible = self._is_visible(self.key)
        if self.row is None or not is_visible:
            problem = f"{self.binding.info.name} has no row with the id {shown(jsonable(self.key))}"
            raise ToolError("not_found", problem)

    def prepare(self) -> None:
        """Find what the inputs refer to; of create and update, put the values into the row and validate it."""
        for name, value in self.values.items():
            if self.inputs[name].relation and value is not None:
                self.related[name] = self._rows(name, value if self.inputs[name].many else [value])
        kind = self.call.mutation.kind
        if kind == "create":
            self.row = self.binding.model()
        if kind in ("create", "update"):
            self._assign()

    def apply(self) -> dict[str, Any]:
        """Do it; return what is told of it, in JSON types."""
        match self.call.mutation.kind:
            case "create" | "update":
                return self._save()
            case "delete":
                self.row.delete()
                return {"id": jsonable(self.key)}
            case "custom":
                return self._call()

    def _assign(self) -> None:
        for name, value in self.values.items():
            relation = self.binding.relations.get(name) if self.inputs[name].relation else None
            if relation is None:
                setattr(self.row, self.binding.columns[name], value)
            elif not self.inputs[name].many:
                setattr(self.row, relation.query_name, None if value is None else self.related[name][0])
        self.row.full_clean()

    def _save(self) -> dict[str, Any]:
        if self.row._state.adding:
            self.row.save(using=self.alias, force_insert=True)
        else:
            self.row.save(using=self.alias)
        for name, rows in self.related.items():
            if self.inputs[name].many:
                self._link(self.binding.relations[name], rows)
        if not self._is_visible(self.row.pk):
            raise ToolError(
                "permission_denied", "the row would not be visible to you as it is then; it was not written"
            )
        return {"id": jsonable(self.row.pk), **{name: self._written(name) for name in self.values}}

    def _call(self) -> dict[str, Any]:
        """Run the project's own function. What it returns must have a JSON form, or nothing counts."""
        custom = self._custom
        arguments = {name: self._argument(name, value) for name, value in self.values.items()}
        rows = (self.row,) if custom.on_row else ()
        result = jsonable(custom.function(*rows, self._scope.actor, **arguments))
        if isinstance(result, Mapping):
            return dict(result)
        about = {"id": jsonable(self.key)} if custom.on_row else {}
        return about if result is None else {**about, "result": result}

    def _argument(self, name: str, value: Any) -> Any:
        item = self.inputs[name]
        if value is None:
            return None
        if item.relation:
            return self.related[name] if item.many else self.related[name][0]
        enum = self._custom.enums.get(name)
        if enum is None:
            return value
        return [enum(each) for each in value] if item.many else enum(value)

    def _link(self, relation: RelationBinding, related: list[Any]) -> None:
        """Make ``related`` all that the actor sees behind the relation; links to hidden rows stay as they are."""
        links = getattr(self.row, relation.query_name)
        if self._scope.is_restricted(relation.target):
            visible = self._scope.rows(relation.target).using(self.alias)
            related = [*related, *links.exclude(pk__in=visible.values("pk"))]
        links.set(related)

    def _rows(self, name: str, keys: list[Any]) -> list[Any]:
        """The rows that an input refers to, in order; hidden ones do not exist."""
        rows = self._scope.rows(str(self.inputs[name].relation)).using(self.alias).in_bulk(keys)
        for key in keys:
            if key not in rows:
                problem = f"there is no {self.inputs[name].relation} row with the id {shown(jsonable(key))}"
                raise ToolError("validation_failed", f"{name}: {problem}", fields={name: [problem]})
        return [rows[key] for key in dict.fromkeys(keys)]

    def _is_visible(self, key: Any) -> bool:
        return self._scope.rows(self.binding.info.name).using(self.alias).filter(pk=key).exists()

    def _written(self, name: str) -> Any:
        """The value as it was stored: what a model's cleaning made of it."""
        is_relation = self.inputs[name].relation
        return jsonable(self.values[name] if is_relation else getattr(self.row, self.binding.columns[name]))
