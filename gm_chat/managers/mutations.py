"""Runs create, update and delete over Django models, each in one transaction that either counts whole or not at all.

Rows are reached through what the actor may see: a hidden row is "not found", and so is a hidden row that an input
refers to. A row must still be visible to the actor after the write, or the write is undone: nobody can put a row
where they could not reach it. The model's own ``full_clean()`` and ``save()`` decide what is valid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import DataError, IntegrityError, models, router, transaction

from gm_chat.encoding import jsonable
from gm_chat.managers.deadline import guard
from gm_chat.managers.rows import Scope
from gm_chat.managers.spelling import shown
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.managers.api import InputInfo, MutationCall
    from gm_chat.managers.binding import Binding, RelationBinding
    from gm_chat.plugin import Actor

__all__ = ["execute_mutation"]


def execute_mutation(
    call: MutationCall, bindings: Mapping[str, Binding], actor: Actor, *, deadline: float | None = None
) -> dict[str, Any]:
    """Run a validated call under the actor's rights on rows; permissions are the caller's to check. Blocking.

    Returns ``{"id": ..., <each written input>: ...}`` in JSON types, relations as ids. Raises ``ToolError`` with
    ``not_found``, ``permission_denied``, ``timeout`` or ``validation_failed`` (``fields``: messages by input).
    """
    write = _Write(call, Scope(bindings, actor))
    with guard(write.alias, deadline, read_only=False):
        try:
            with transaction.atomic(using=write.alias):
                return write.run()
        except ValidationError as error:
            raise _invalid(error, write.binding, call) from error
        except (models.ProtectedError, models.RestrictedError) as error:
            raise ToolError("validation_failed", "it cannot be deleted: other data still refers to it") from error
        except (IntegrityError, DataError) as error:
            raise ToolError(
                "validation_failed", "the database refuses it: a value is taken, missing, or out of range"
            ) from error


class _Write:
    """One call while it runs."""

    def __init__(self, call: MutationCall, scope: Scope) -> None:
        self.binding = scope.bindings[call.mutation.manager]
        self.alias = router.db_for_write(self.binding.model)
        self._call = call
        self._scope = scope
        self._inputs: dict[str, InputInfo] = {item.name: item for item in call.mutation.inputs}

    def run(self) -> dict[str, Any]:
        values = dict(self._call.values)
        match self._call.mutation.kind:
            case "create":
                return self._save(self.binding.model(), values)
            case "update":
                return self._save(self._target(values.pop("id")), values)
            case "delete":
                key = values["id"]
                self._target(key).delete()
                return {"id": jsonable(key)}
        raise TypeError(f"{self._call.mutation.name} is a {self._call.mutation.kind} mutation; its own code runs it")

    def _target(self, key: Any) -> models.Model:
        """The row to change, locked, if the actor may see it. A hidden and an absent one cost the same statements."""
        rows: models.QuerySet[Any] = self.binding.model._base_manager.using(self.alias)
        row: models.Model | None = rows.select_for_update().filter(pk=key).first()
        is_visible = self._is_visible(key)
        if row is None or not is_visible:
            raise ToolError("not_found", f"{self.binding.info.name} has no row with the id {shown(jsonable(key))}")
        return row

    def _is_visible(self, key: Any) -> bool:
        return self._scope.rows(self.binding.info.name).using(self.alias).filter(pk=key).exists()

    def _save(self, row: Any, values: Mapping[str, Any]) -> dict[str, Any]:
        many: dict[str, list[Any]] = {}
        for name, value in values.items():
            relation = self.binding.relations.get(name) if self._inputs[name].relation else None
            if relation is None:
                setattr(row, self.binding.columns[name], value)
            elif self._inputs[name].many:
                many[name] = self._related(name, value)
            else:
                setattr(row, relation.query_name, None if value is None else self._related(name, [value])[0])
        row.full_clean()
        if row._state.adding:
            row.save(using=self.alias, force_insert=True)
        else:
            row.save(using=self.alias)
        for name, related in many.items():
            self._link(row, self.binding.relations[name], related)
        if not self._is_visible(row.pk):
            raise ToolError(
                "permission_denied", "the row would not be visible to you as it is then; it was not written"
            )
        written = {name: self._written(row, name, values[name]) for name in values}
        return {"id": jsonable(row.pk), **written}

    def _link(self, row: Any, relation: RelationBinding, related: list[Any]) -> None:
        """Make ``related`` all that the actor sees behind the relation; links to hidden rows stay as they are."""
        links = getattr(row, relation.query_name)
        if self._scope.is_restricted(relation.target):
            visible = self._scope.rows(relation.target).using(self.alias)
            related = [*related, *links.exclude(pk__in=visible.values("pk"))]
        links.set(related)

    def _related(self, name: str, keys: list[Any]) -> list[Any]:
        """The rows that an input refers to, in order; hidden ones do not exist."""
        rows = self._scope.rows(str(self._inputs[name].relation)).using(self.alias).in_bulk(keys)
        for key in keys:
            if key not in rows:
                problem = f"there is no {self._inputs[name].relation} row with the id {shown(jsonable(key))}"
                raise ToolError("validation_failed", f"{name}: {problem}", fields={name: [problem]})
        return [rows[key] for key in dict.fromkeys(keys)]

    def _written(self, row: Any, name: str, value: Any) -> Any:
        """The value as it was stored: what a model's cleaning made of it."""
        stored = value if self._inputs[name].relation else getattr(row, self.binding.columns[name])
        return jsonable(stored)


_TAKEN: Final = "Another row has these values already."


def _names_hidden(fault: ValidationError, name: str, names: Mapping[str, str], known: set[str]) -> bool:
    """Whether Django's message about values that are taken names a column that the actor is not shown."""
    match fault.code:
        case "unique" | "unique_for_date" | "unique_for_month" | "unique_for_year":
            return name not in known
        case "unique_together":
            return not known.issuperset(names.get(item, item) for item in (fault.params or {}).get("unique_check", ()))
    return False


def _invalid(error: ValidationError, binding: Binding, call: MutationCall) -> ToolError:
    """Messages by input name; what concerns no input of the call, or several, stands in the message alone."""
    by_field: Mapping[str, list[ValidationError]] = (
        error.error_dict if hasattr(error, "error_dict") else {NON_FIELD_ERRORS: error.error_list}
    )
    names = {query_name: name for name, query_name in binding.columns.items()}
    names |= {relation.query_name: name for name, relation in binding.relations.items()}
    known = {item.name for item in call.mutation.inputs}
    fields: dict[str, list[str]] = {}
    parts: list[str] = []
    for field, faults in by_field.items():
        name = names.get(field, field)
        messages = [_TAKEN if _names_hidden(fault, name, names, known) else fault.messages[0] for fault in faults]
        if name in known:
            fields[name] = messages
            parts.append(f"{name}: {' '.join(messages)}")
        else:  # a column that the actor is not shown is not named either
            parts.append(" ".join(messages))
    return ToolError("validation_failed", " ".join(parts), fields=fields)
