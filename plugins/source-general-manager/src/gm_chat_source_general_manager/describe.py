"""GeneralManager's classes as managers over their Django models.

Each class with ``chat_exposed`` becomes a declaration as a project would write it, so that the core describes and reads
it as its own. Its rows are those that the class's ``Permission`` lets through.
"""

from __future__ import annotations

import inspect
import types
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Union, get_args, get_origin
from uuid import UUID

from django.db.models import Model
from general_manager import GeneralManager
from general_manager.measurement import Measurement

from gm_chat.managers import ModelManager, computed
from gm_chat.managers.api import InputInfo
from gm_chat.managers.orm import ComputedField, describe, did_you_mean, is_secret_name, members_of
from gm_chat_source_general_manager.options import ManagerOptions
from gm_chat_source_general_manager.rights import Gate, user_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from django.db.models import Q, QuerySet

    from gm_chat.managers.api import FieldType, MutationInfo
    from gm_chat.managers.orm import Binding, Members
    from gm_chat.plugin import Actor
    from gm_chat_source_general_manager.options import Options

__all__ = ["ModelManagers", "describe_models", "exposed_managers", "model_of", "narrowed", "text_of", "type_of"]

_TYPES: Final[Mapping[type, FieldType]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    Decimal: "decimal",
    datetime: "datetime",
    date: "date",
    time: "time",
    timedelta: "duration",
    UUID: "uuid",
    str: "string",
    Measurement: "string",
}


@dataclass(frozen=True, slots=True)
class ModelManagers:
    """The managers that have a table: how they are read, and who may."""

    bindings: Mapping[str, Binding]
    gates: Mapping[str, Gate]
    limit: int


def exposed_managers(options: Options) -> dict[str, Any]:
    """The classes with ``chat_exposed`` by name. Raises ``ValueError`` for settings of a class that is none."""
    exposed = {
        manager.__name__: manager
        for manager in type(GeneralManager).all_classes
        if getattr(manager, "chat_exposed", False) and getattr(manager, "Interface", None) is not None
    }
    for name in options.managers:
        if name not in exposed:
            raise ValueError(
                f"plugins['general_manager']['managers']: {name!r} is no GeneralManager class with "
                f"chat_exposed = True; {did_you_mean(name, exposed)}"
            )
    return exposed


def model_of(manager: Any) -> type[Model] | None:
    """The Django model behind a class, if its rows are a table's."""
    model = getattr(manager.Interface, "_model", None)
    return model if isinstance(model, type) and issubclass(model, Model) else None


def text_of(manager: Any, options: ManagerOptions) -> str | None:
    """What the language model reads about a class: the settings' text, else its docstring."""
    own = vars(manager).get("__doc__")
    return options.description or (inspect.cleandoc(own) if own else None)


def type_of(hint: Any) -> FieldType | None:
    """The field type of a Python annotation; ``None`` for managers, lists and whatever has no scalar form."""
    if get_origin(hint) in (Union, types.UnionType):
        inner = [item for item in get_args(hint) if item is not type(None)]
        return type_of(inner[0]) if len(inner) == 1 else None
    if not isinstance(hint, type):
        return None
    return next((kind for base, kind in _TYPES.items() if issubclass(hint, base)), None)


def describe_models(exposed: Mapping[str, Any], options: Options) -> ModelManagers:
    """Describe the classes that have a model. Uses no database."""
    drafts = {
        name: draft
        for name, manager in exposed.items()
        if (draft := _Draft.of(manager, exposed, options.managers.get(name, ManagerOptions()))) is not None
    }
    gates = {name: draft.gate for name, draft in drafts.items()}
    described = describe(draft.declare(options.max_rows) for draft in drafts.values())
    bindings = {name: drafts[name].finish(binding) for name, binding in described.bindings.items()}
    return ModelManagers(bindings, gates, options.max_rows)


def narrowed(managers: ModelManagers, name: str, narrow: Q) -> dict[str, Binding]:
    """The bindings for a call that reaches the manager ``name`` nowhere but at its root, under a condition."""
    return {
        **managers.bindings,
        name: replace(managers.bindings[name], visible_to=_visible_to(managers.gates[name], managers.limit, narrow)),
    }


def _visible_to(gate: Gate, limit: int, narrow: Q | None = None) -> Callable[[QuerySet[Any], Actor], QuerySet[Any]]:
    return lambda rows, actor: gate.rows(rows, user_of(actor), limit, narrow)


@dataclass(slots=True)
class _Draft:
    """One class while it is described. ``attributes`` maps our names to GeneralManager's."""

    manager: Any
    model: type[Model]
    options: ManagerOptions
    members: Members
    attributes: dict[str, str] = field(default_factory=dict)
    relations: dict[str, str] = field(default_factory=dict)
    measured: dict[str, str] = field(default_factory=dict)
    computed: dict[str, FieldType] = field(default_factory=dict)
    gate: Gate = field(init=False)

    @classmethod
    def of(cls, manager: Any, exposed: Mapping[str, Any], options: ManagerOptions) -> _Draft | None:
        model = model_of(manager)
        if model is None:
            return None
        draft = cls(manager, model, options, members_of(model))
        for attribute, about in manager.Interface.get_attribute_types().items():
            draft._take(attribute, about, exposed)
        for name, item in manager.Interface.get_graph_ql_properties().items():
            kind = type_of(item.graphql_type_hint)
            if kind is not None and name not in draft.attributes:
                draft.computed[name] = kind
                draft.attributes[name] = name
        draft._choose()
        draft.gate = Gate.of(manager, draft.attributes)
        for name in draft.gate.by_row & draft.relations.keys():
            del draft.relations[name]  # whether it may be followed differs from row to row
        return draft if draft.names else None

    @property
    def names(self) -> list[str]:
        """The columns and relations that are shown."""
        shown = [name for name in self.attributes if name not in self.computed]
        return [name for name in shown if name in self.members.columns or name in self.relations]

    def _take(self, attribute: str, about: Mapping[str, Any], exposed: Mapping[str, Any]) -> None:
        name, kind = about.get("filter_lookup", attribute), about["type"]
        if isinstance(kind, type) and issubclass(kind, Measurement):
            self.computed[attribute] = "string"
            self.attributes[attribute] = attribute
            if f"{attribute}_value" in self.members.columns:
                self.measured[f"{attribute}_value"] = attribute
                self.attributes[f"{attribute}_value"] = attribute
        elif name in self.members.relations:
            target = next((each for each, manager in exposed.items() if manager is kind), None)
            if target is not None:
                self.relations[name] = target
                self.attributes[name] = attribute
        elif name in self.members.columns and not self._leads_to_manager(name):
            self.attributes[name] = attribute

    def _leads_to_manager(self, name: str) -> bool:
        """Whether the column is the key of a relation to another manager: it would tell of a hidden row."""
        source = self.members.columns[name].source
        if not source.is_relation or source.primary_key:
            return False
        return any(
            model_of(each) is source.related_model for each in type(GeneralManager).all_classes if each.Interface
        )

    def _choose(self) -> None:
        """Leave what the settings name; without them all but likely secrets."""
        wanted = self.options.fields
        for name in wanted or ():
            if name not in self.attributes:
                raise ValueError(
                    f"plugins['general_manager']['managers'][{self.manager.__name__!r}]['fields']: {name!r} is nothing "
                    f"that can be shown; {did_you_mean(name, self.attributes)}"
                )
        kept = (lambda name: not is_secret_name(name)) if wanted is None else wanted.__contains__
        for part in (self.attributes, self.relations, self.measured, self.computed):
            for name in [name for name in part if not kept(name)]:
                del part[name]

    def declare(self, limit: int) -> type[ModelManager]:
        """The declaration that a project would have written."""
        visible_to = _visible_to(self.gate, limit)
        namespace: dict[str, Any] = {
            "__module__": self.manager.__module__,
            "__doc__": text_of(self.manager, self.options),
            "chat_exposed": True,
            "model": self.model,
            "fields": self.names,
            "aliases": self.options.aliases,
            "descriptions": {
                name: f"{attribute} in {self._unit(attribute)}" for name, attribute in self.measured.items()
            },
            "relations": self.relations,
            "visible_to": classmethod(lambda _, rows, actor: visible_to(rows, actor)),
        }
        for name, kind in self.computed.items():
            namespace[name] = computed(kind, description=self._described(name))(self._reading(name))
        return type(self.manager.__name__, (ModelManager,), namespace)

    def _reading(self, name: str) -> Callable[[Any, Actor], Any]:
        """Reads a field in Python, of the rows of which the actor may read it: a column's value as it is stored."""
        gate, column = self.gate, self.members.columns.get(name)

        def read(row: Any, actor: Actor) -> Any:
            if not gate.may_read(row, name, user_of(actor)):
                return None
            value = (
                getattr(gate.item(row), gate.attributes[name]) if column is None else getattr(row, column.query_name)
            )
            return str(value) if isinstance(value, Measurement) else value

        return read

    def _unit(self, attribute: str) -> str:
        return str(getattr(self.model._meta.get_field(attribute), "base_unit", "its base unit"))

    def _described(self, name: str) -> str:
        item = self.manager.Interface.get_graph_ql_properties().get(name)
        return inspect.cleandoc(getattr(item, "__doc__", None) or "")

    def finish(self, binding: Binding) -> Binding:
        """What differs from a project's own: fields that a rule guards row by row, and GeneralManager's mutations."""
        guarded = self.gate.by_row & binding.columns.keys()
        fields = {item.name: item for item in binding.info.fields}
        for name in guarded:
            fields[name] = replace(fields[name], computed=True, lookups=(), nullable=True, key=False)
        info = replace(
            binding.info, fields=tuple(fields.values()), mutations=tuple(self._mutations(binding.info.mutations))
        )
        return replace(
            binding,
            info=info,
            columns={name: column for name, column in binding.columns.items() if name not in guarded},
            computed={
                **binding.computed,
                **{name: ComputedField(compute=self._reading(name), type=fields[name].type) for name in guarded},
            },
        )

    def _mutations(self, offered: Iterable[MutationInfo]) -> Iterator[MutationInfo]:
        """Those that the class's interface can do, under GeneralManager's names."""
        able = self.manager.Interface.get_capabilities()
        for item in offered:
            if item.kind in able:
                inputs = [each for each in item.inputs if each.name not in self.measured]
                if item.kind != "delete":
                    inputs += self._measured_inputs(item.kind)
                yield replace(item, name=f"{item.kind}{self.manager.__name__}", inputs=tuple(inputs))

    def _measured_inputs(self, kind: str) -> Iterator[InputInfo]:
        for name in self.computed:
            about = self.manager.Interface.get_attribute_types().get(name)
            if about is not None and about.get("is_editable"):
                yield InputInfo(
                    name=name,
                    type="string",
                    required=kind == "create" and bool(about.get("is_required")),
                    nullable=not about.get("is_required"),
                    description=f'a number and a unit, such as "2.5 {self._unit(name)}"',
                )
