"""From declarations to values: each :class:`ModelManager` becomes a ``ManagerInfo`` and its ``Binding``.

All declarations are described together, because a relation is offered only where its target has an exposed manager.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from django.db import models
from django.db.models.base import ModelBase

from gm_chat.managers.api import FieldInfo, ManagerInfo, MutationInfo, RelationInfo
from gm_chat.managers.binding import Binding, ComputedField, RelationBinding
from gm_chat.managers.custom import bind_mutations
from gm_chat.managers.declare import MUTATION_KINDS, Computed, CustomMutation, ModelManager, fail
from gm_chat.managers.inputs import mutations_of
from gm_chat.managers.introspect import LOOKUPS, Column, Members, Relation, members_of
from gm_chat.managers.names import did_you_mean, is_secret_name

__all__ = ["Description", "describe"]

ALL: Final = "__all__"
_Exposed = Mapping[Any, Sequence[str]]
"""The names of the exposed managers of each model that has a table."""
_OPTIONS: Final = frozenset(name for name in vars(ModelManager) if not name.startswith("_"))


@dataclass(frozen=True, slots=True)
class Description:
    """What the declarations of a project come to.

    ``bindings`` holds exposed managers only. ``warnings`` are (manager, field) pairs of fields that look like
    secrets and were asked for by name; ``notes`` say what was left out and why.
    """

    bindings: Mapping[str, Binding]
    warnings: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Draft:
    """One declaration while it is described."""

    manager: type[ModelManager]
    model: type[models.Model]
    members: Members
    computed: Mapping[str, Computed]
    custom: Mapping[str, CustomMutation]
    names: Sequence[str] = ()
    explicit: bool = False
    warnings: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.manager.__name__


def describe(managers: Iterable[type[ModelManager]]) -> Description:
    """Describe declarations, hidden ones too (their mistakes count), and return the exposed ones.

    Raises :class:`~gm_chat.managers.declare.DeclarationError` at the first mistake. Uses no database.
    """
    drafts: dict[str, _Draft] = {}
    for manager in managers:
        draft = _draft(manager)
        if draft is None:
            continue
        other = drafts.setdefault(draft.name, draft)
        if other is not draft:
            fail(
                manager,
                "__name__",
                f"{draft.name!r} is also declared in {other.manager.__module__}; rename one of them",
            )
    exposed = _exposed(drafts)
    bindings, warnings, notes = {}, [], []
    for name, draft in drafts.items():
        binding = _bind(draft, exposed)
        if binding.info.exposed:
            bindings[name] = binding
            warnings += draft.warnings
            notes += draft.notes
    return Description(MappingProxyType(bindings), tuple(warnings), tuple(notes))


# --- reading a declaration --------------------------------------------------------------------------------------


def _draft(manager: type[ModelManager]) -> _Draft | None:
    """Read and check one declaration by itself; ``None`` for a base class that declares no model."""
    computed, custom = _attributes(manager)
    model = manager.model
    if model is None:
        if "chat_exposed" in vars(manager):
            fail(
                manager,
                "model",
                "is missing: write model = <a model class> (a shared base leaves out chat_exposed too)",
            )
        return None
    if not isinstance(model, ModelBase):
        fail(manager, "model", f"{model!r} is no Django model class")
    if model._meta.abstract or model._meta.swapped:
        state = "abstract" if model._meta.abstract else f"swapped for {model._meta.swapped}"
        fail(manager, "model", f"{model.__name__!r} is {state}; name the model that has a table")
    draft = _Draft(manager, model, members_of(model), computed, custom)
    _check_types(draft)
    _choose_names(draft)
    return draft


def _attributes(manager: type[ModelManager]) -> tuple[dict[str, Computed], dict[str, CustomMutation]]:
    """Collect computed fields and mutations along the class's bases, refusing attributes that nobody reads."""
    computed: dict[str, Computed] = {}
    custom: dict[str, CustomMutation] = {}
    for base in reversed(manager.__mro__):
        if base is object or base is ModelManager:
            continue
        for name, value in vars(base).items():
            if isinstance(value, Computed):
                computed[name] = value
            elif isinstance(value, CustomMutation):
                custom[name] = value
            elif not name.startswith("_") and name not in _OPTIONS:
                _refuse_stray(manager, name, value)
    return computed, custom


def _refuse_stray(manager: type[ModelManager], name: str, value: Any) -> None:
    hint = did_you_mean(name, _OPTIONS)
    is_helper = inspect.isroutine(value) or isinstance(value, property | classmethod | staticmethod)
    if not is_helper or hint.startswith("did"):  # a misspelt hook would silently show every row
        fail(manager, name, f"{name!r} means nothing to a manager; {hint}")


def _check_types(draft: _Draft) -> None:
    manager = draft.manager
    for option in ("chat_exposed", "public", "preview"):
        if not isinstance(getattr(manager, option), bool):
            fail(manager, option, f"{getattr(manager, option)!r} is neither True nor False")
    for option in ("aliases", "mutations", "fields"):
        value = getattr(manager, option)
        if option == "fields" and value == ALL:
            continue
        if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(v, str) for v in value):
            fail(manager, option, f'{value!r} is no list of names; write {option} = ["..."]')
    for option in ("descriptions", "relations"):
        value = getattr(manager, option)
        if not isinstance(value, Mapping):
            fail(manager, option, f'{value!r} is no mapping; write {option} = {{"name": "..."}}')
    for kind in manager.mutations:
        if kind not in MUTATION_KINDS:
            fail(manager, "mutations", f"{kind!r} is no mutation; {did_you_mean(kind, MUTATION_KINDS)}")


def _choose_names(draft: _Draft) -> None:
    """Decide which members the manager has, in order; computed fields come last unless they are listed."""
    manager, members = draft.manager, draft.members
    known = members.columns | members.relations
    for name, item in draft.computed.items():
        if name in known:
            fail(manager, name, f"a computed field may not take the name of {_field(draft, name)}")
        for needed in item.needs:
            if needed not in members.columns and needed not in members.relations:
                fail(manager, name, f"needs={needed!r}: {_unknown(draft, needed)}")
    if manager.fields == ALL:
        chosen = list(members.default)
    else:
        draft.explicit = True
        chosen = list(manager.fields)
        for name in chosen:
            if name not in known and name not in draft.computed:
                fail(manager, "fields", f"{name!r}: {_unknown(draft, name)}")
        doubled = next((name for name in chosen if chosen.count(name) > 1), None)
        if doubled is not None:
            fail(manager, "fields", f"{doubled!r} is listed twice")
        draft.warnings += [(draft.name, name) for name in chosen if name in members.columns and is_secret_name(name)]
    draft.names = [*chosen, *(name for name in draft.computed if name not in chosen)]
    for option in ("descriptions", "relations"):
        offered = (
            draft.names if option == "descriptions" else [name for name in draft.names if name in members.relations]
        )
        for name in getattr(manager, option):
            if name not in offered:
                fail(manager, option, f"{name!r} is not offered by this manager; {did_you_mean(name, offered)}")


def _unknown(draft: _Draft, name: str) -> str:
    reason = draft.members.unusable.get(name)
    if reason is not None:
        return f"{_field(draft, name)} cannot be offered: {reason}"
    known = [*draft.members.columns, *draft.members.relations, *draft.computed]
    return f"{draft.model._meta.label} has no such field or relation; {did_you_mean(name, known)}"


def _field(draft: _Draft, name: str) -> str:
    return f"{draft.model._meta.label}.{name}"


# --- building the values ----------------------------------------------------------------------------------------


def _bind(draft: _Draft, exposed: _Exposed) -> Binding:
    manager, members = draft.manager, draft.members
    fields: dict[str, FieldInfo] = {}
    relations: dict[str, RelationInfo] = {}
    for name in draft.names:
        if name in members.columns:
            fields[name] = _field_info(draft, members.columns[name])
        elif name in members.relations:
            target = _target(draft, members.relations[name], exposed)
            if target is not None:
                relations[name] = _relation_info(draft, members.relations[name], target)
        else:
            fields[name] = _computed_info(draft, name)
    if not fields and not relations:
        fail(manager, "fields", "leave nothing to show; name at least one field")
    generated = _mutations(draft, fields, relations)
    custom = bind_mutations(manager, members, draft.custom, exposed, taken=[item.name for item in generated])
    info = ManagerInfo(
        name=draft.name,
        description=_description(draft),
        fields=tuple(fields.values()),
        relations=tuple(relations.values()),
        mutations=(*generated, *(item for item, _ in custom)),
        aliases=tuple(manager.aliases),
        public=manager.public,
        exposed=manager.chat_exposed,
    )
    return Binding(
        info=info,
        model=draft.model,
        columns={name: members.columns[name].query_name for name in fields if name in members.columns},
        relations={
            name: RelationBinding(
                query_name=members.relations[name].query_name,
                target=relation.target,
                kind="to_many" if relation.many else "to_one",
                through=_through(draft, members.relations[name], exposed),
            )
            for name, relation in relations.items()
        },
        computed={
            name: ComputedField(compute=item.function, type=item.type, needs=item.needs)
            for name, item in draft.computed.items()
        },
        visible_to=manager.visible_to if _overrides(manager, "visible_to") else None,
        visible_fields=manager.visible_fields if _overrides(manager, "visible_fields") else None,
        custom={item.name: bound for item, bound in custom},
        preview=manager.preview,
    )


def _overrides(manager: type[ModelManager], hook: str) -> bool:
    own, default = getattr(manager, hook), getattr(ModelManager, hook)
    if not inspect.ismethod(own):
        fail(manager, hook, "must be a classmethod: put @classmethod above it")
    return own.__func__ is not default.__func__


def _description(draft: _Draft) -> str:
    own = draft.manager.__doc__  # a class does not inherit __doc__
    if own:
        return inspect.cleandoc(own)
    text = inspect.cleandoc(draft.model.__doc__ or "")
    generated = text.startswith(f"{draft.model.__name__}(")  # Django writes one for models without a docstring
    return str(draft.model._meta.verbose_name).capitalize() if generated or not text else text


def _field_info(draft: _Draft, column: Column) -> FieldInfo:
    return FieldInfo(
        name=column.name,
        type=column.type,
        description=_text(draft, column.name, column.source),
        nullable=column.source.null,
        choices=column.choices,
        lookups=LOOKUPS[column.type],
        key=column.query_name == "pk" or bool(getattr(column.source, "primary_key", False)),
    )


def _computed_info(draft: _Draft, name: str) -> FieldInfo:
    item = draft.computed[name]
    text = draft.manager.descriptions.get(name, item.description)
    return FieldInfo(name=name, type=item.type, description=text, nullable=item.nullable, computed=True)


def _relation_info(draft: _Draft, relation: Relation, target: str) -> RelationInfo:
    return RelationInfo(
        name=relation.name,
        target=target,
        many=relation.many,
        description=_text(draft, relation.name, relation.source),
        nullable=relation.nullable,
    )


def _text(draft: _Draft, name: str, source: Any) -> str:
    """The declared description, else help_text, else a verbose name that says more than the name."""
    text = draft.manager.descriptions.get(name) or str(getattr(source, "help_text", ""))
    if text or source is None:
        return text
    verbose = str(getattr(source, "verbose_name", None) or "")
    return "" if verbose.lower() in ("", name.replace("_", " ").lower(), "id") else verbose


def _target(draft: _Draft, relation: Relation, exposed: _Exposed) -> str | None:
    """The exposed manager that a relation leads to, or ``None`` where it leads out of what is exposed."""
    chosen = draft.manager.relations.get(relation.name)
    candidates = exposed.get(_table(relation.model), ())
    if chosen is not None:
        if chosen in candidates:
            return chosen
        known = did_you_mean(chosen, candidates)
        fail(draft.manager, "relations", f"{chosen!r} is no exposed manager of {relation.model._meta.label}; {known}")
    usual = f"{relation.model.__name__}Manager"
    if len(candidates) == 1 or usual in candidates:
        return candidates[0] if len(candidates) == 1 else usual
    if candidates and draft.explicit:
        names = " or ".join(candidates)
        fail(draft.manager, "relations", f"{relation.name!r} leads to {names}: choose with relations = {{...}}")
    if draft.explicit or candidates:
        why = f"{' and '.join(candidates)} are equally near" if candidates else "has no exposed manager"
        draft.notes.append(f"{draft.name}.{relation.name} is left out: {relation.model._meta.label} {why}")
    return None


def _through(draft: _Draft, relation: Relation, exposed: _Exposed) -> tuple[str, ...]:
    """The exposed managers of a many-to-many relation's own through model."""
    member: Any = draft.model._meta.get_field(relation.query_name)
    if not member.many_to_many:
        return ()
    near: Any = member.remote_field if isinstance(member, models.ManyToManyField) else member
    return tuple(exposed.get(_table(near.through), ()))


def _exposed(drafts: Mapping[str, _Draft]) -> _Exposed:
    exposed: dict[Any, list[str]] = defaultdict(list)
    for name, draft in drafts.items():
        if draft.manager.chat_exposed:
            exposed[_table(draft.model)].append(name)
    return dict(exposed)


def _table(model: type[models.Model]) -> Any:
    """The model that has the table: of a proxy, the one that it stands for."""
    return model._meta.concrete_model


def _mutations(
    draft: _Draft, fields: Mapping[str, FieldInfo], relations: Mapping[str, RelationInfo]
) -> tuple[MutationInfo, ...]:
    manager = draft.manager
    offers = mutations_of(draft.name, draft.model, draft.members, fields, relations)
    mutations = []
    for kind in MUTATION_KINDS:
        if kind not in manager.mutations:
            continue
        offer = offers[kind]
        if offer.mutation is not None:
            mutations.append(offer.mutation)
        elif manager.mutations is not ModelManager.mutations:
            fail(manager, "mutations", f"{kind!r} cannot work: {offer.problem}")
        else:
            draft.notes.append(f"{draft.name} has no {kind}: {offer.problem}")
    return tuple(mutations)
