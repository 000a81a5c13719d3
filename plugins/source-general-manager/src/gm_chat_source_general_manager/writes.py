"""Runs create, update and delete through GeneralManager's own methods: its permissions, rules and history hold.

Each is one transaction that counts whole or not at all. Rows are reached through what the actor may read: a hidden row
is "not found", and so is a hidden row that an input refers to. A row must still be readable after the write.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.core.exceptions import NON_FIELD_ERRORS, ObjectDoesNotExist, ValidationError
from django.db import DataError, IntegrityError, router, transaction
from django.db.models import ProtectedError, RestrictedError
from general_manager.api import PublicGraphQLError

from gm_chat.encoding import jsonable
from gm_chat.managers.orm import Scope, guard, shown
from gm_chat.plugin import ToolError
from gm_chat_source_general_manager.rights import user_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet

    from gm_chat.managers.api import InputInfo, MutationCall
    from gm_chat.managers.orm import Binding
    from gm_chat.plugin import Actor
    from gm_chat_source_general_manager.describe import ModelManagers

__all__ = ["run_mutation"]


def run_mutation(
    call: MutationCall, managers: ModelManagers, actor: Actor, *, deadline: float | None = None
) -> dict[str, Any]:
    """Run a validated call as the actor's user. Blocking.

    Returns ``{"id": ..., <each written input>: ...}`` in JSON types, relations as ids. Raises ``ToolError`` with
    ``not_found``, ``permission_denied``, ``timeout`` or ``validation_failed`` (``fields``: messages by input).
    """
    write = _Write(call, managers, actor)
    with guard(write.alias, deadline, read_only=False):
        try:
            with transaction.atomic(using=write.alias):
                return write.run()
        except PermissionError as error:  # GeneralManager's, whose text names what the actor may not see
            raise ToolError("permission_denied", f"you may not run {call.mutation.name}, or not on this row") from error
        except ValidationError as error:
            raise write.invalid(error) from error
        except PublicGraphQLError as error:  # what the project says to clients
            raise ToolError("validation_failed", str(error)) from error
        except (ProtectedError, RestrictedError) as error:
            raise ToolError("validation_failed", "it cannot be deleted: other data still refers to it") from error
        except (IntegrityError, DataError) as error:
            raise ToolError(
                "validation_failed", "the database refuses it: a value is taken, missing, or out of range"
            ) from error


@dataclass(slots=True)
class _Write:
    """One call while it runs."""

    call: MutationCall
    managers: ModelManagers
    actor: Actor
    binding: Binding = field(init=False)
    manager: Any = field(init=False)
    alias: str = field(init=False)
    scope: Scope = field(init=False)
    inputs: Mapping[str, InputInfo] = field(init=False)

    def __post_init__(self) -> None:
        name = self.call.mutation.manager
        self.binding, self.manager = self.managers.bindings[name], self.managers.gates[name].manager
        self.alias = getattr(self.manager.Interface, "database", None) or router.db_for_write(self.binding.model)
        self.scope = Scope(self.managers.bindings, self.actor)
        self.inputs = {item.name: item for item in self.call.mutation.inputs}

    def run(self) -> dict[str, Any]:
        values = dict(self.call.values)
        user = user_of(self.actor)
        match self.call.mutation.kind:
            case "create":
                key = self._key(self.manager.create(creator_id=user.pk, **self._arguments(values, None)))
            case "update":
                key = values.pop("id")
                item = self._target(key)
                item.update(creator_id=user.pk, **self._arguments(values, key))
            case "delete":
                key = values["id"]
                self._target(key).delete(creator_id=user.pk)
                return {"id": jsonable(key)}
            case kind:
                raise TypeError(f"{self.call.mutation.name} is a {kind} mutation, which no manager here offers")
        row = self._visible().filter(pk=key).first()
        if row is None:
            raise ToolError(
                "permission_denied", "the row would not be visible to you as it is then; it was not written"
            )
        return {"id": jsonable(key), **{name: self._written(row, name, values[name]) for name in values}}

    def _visible(self) -> QuerySet[Any]:
        """The rows as they are now: what was judged before the write may have changed by it."""
        return Scope(self.managers.bindings, self.actor).rows(self.binding.info.name).using(self.alias)

    def _key(self, item: Any) -> Any:
        identification = dict(item.identification)
        return self.binding.model._meta.pk.to_python(next(iter(identification.values())))

    def _target(self, key: Any) -> Any:
        """The item to change, its row locked, if the actor may see it. Hidden and absent cost the same statements."""
        rows: QuerySet[Any] = self.binding.model._base_manager.using(self.alias)
        row = rows.select_for_update().filter(pk=key).first()
        is_visible = self._visible().filter(pk=key).exists()
        if row is not None and is_visible:
            try:
                return self.manager(key)
            except ObjectDoesNotExist:
                pass
        raise ToolError("not_found", f"{self.binding.info.name} has no row with the id {shown(jsonable(key))}")

    def _arguments(self, values: Mapping[str, Any], key: Any) -> dict[str, Any]:
        """The values under GeneralManager's names. Raises ``ToolError`` for references to what the actor cannot see."""
        found: dict[str, Any] = {}
        for name, value in values.items():
            item = self.inputs[name]
            if item.relation is None:
                found[name] = value
            elif item.many:
                found[f"{name}_id_list"] = [*self._existing(name, value), *self._hidden_links(name, key)]
            else:
                found[f"{name}_id"] = None if value is None else self._existing(name, [value])[0]
        return found

    def _existing(self, name: str, keys: list[Any]) -> list[Any]:
        """The keys, if all their rows exist for the actor."""
        rows = self.scope.rows(str(self.inputs[name].relation)).using(self.alias).in_bulk(keys)
        for key in keys:
            if key not in rows:
                problem = f"there is no {self.inputs[name].relation} row with the id {shown(jsonable(key))}"
                raise ToolError("validation_failed", f"{name}: {problem}", fields={name: [problem]})
        return list(dict.fromkeys(keys))

    def _hidden_links(self, name: str, key: Any) -> list[Any]:
        """What the row is linked to that the actor cannot see, which stays as it is."""
        relation = self.binding.relations[name]
        if key is None or not self.scope.is_restricted(relation.target):
            return []
        links = getattr(self.binding.model._base_manager.using(self.alias).get(pk=key), relation.query_name)
        return list(
            links.exclude(pk__in=self.scope.rows(relation.target).using(self.alias).values("pk")).values_list(
                "pk", flat=True
            )
        )

    def _written(self, row: Any, name: str, value: Any) -> Any:
        """The value as it was stored."""
        if self.inputs[name].relation or name not in self.binding.columns:
            return jsonable(value)
        return jsonable(getattr(row, self.binding.columns[name]))

    def invalid(self, error: ValidationError) -> ToolError:
        """Messages by input; what concerns no input of the call stands in the message alone, without its name."""
        by_field = error.message_dict if hasattr(error, "error_dict") else {NON_FIELD_ERRORS: error.messages}
        fields: dict[str, list[str]] = {}
        parts: list[str] = []
        for name, messages in by_field.items():
            own = next(
                (
                    each
                    for each in (name, name.removesuffix("_id"), name.removesuffix("_id_list"))
                    if each in self.inputs
                ),
                None,
            )
            if own is None:
                parts += messages
            else:
                fields.setdefault(own, []).extend(messages)
                parts.append(f"{own}: {' '.join(messages)}")
        return ToolError("validation_failed", " ".join(parts), fields=fields)
