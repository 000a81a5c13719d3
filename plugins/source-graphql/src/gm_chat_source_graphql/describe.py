"""A schema's lists as managers: what the settings expose of it, and how each part is asked for."""

from __future__ import annotations

import dataclasses
import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from graphql import GraphQLObjectType, is_non_null_type

from gm_chat.managers.api import FieldInfo, ManagerInfo, RelationInfo
from gm_chat.managers.introspect import LOOKUPS
from gm_chat.managers.names import did_you_mean, is_secret_name, split_words
from gm_chat_source_graphql.options import EVERYTHING, ManagerOptions
from gm_chat_source_graphql.shapes import bare, filters_of, list_shape, order_of, required
from gm_chat_source_graphql.values import nullable, scalar_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphql import GraphQLField, GraphQLSchema

    from gm_chat_source_graphql.options import Options
    from gm_chat_source_graphql.shapes import ListShape, OrderArgument, Slot
    from gm_chat_source_graphql.values import Scalar

__all__ = ["Binding", "Relation", "describe", "is_bare_key", "key_of", "members_of", "stem_of", "with_mutations"]

_KEYS: Final = ("id", "pk", "uuid")
_SUFFIXES: Final = ("Type", "Node", "ObjectType")


@dataclass(frozen=True, slots=True)
class Relation:
    """A field that leads to another manager's rows: to one if it has no ``shape``."""

    target: str
    shape: ListShape | None


@dataclass(frozen=True, slots=True)
class Binding:
    """A manager and what stands behind it: the list field ``root`` of the query type, and its type's fields.

    ``key`` is the field that tells rows apart, if the type has one; it need not be shown. ``names`` holds what the
    schema calls fields and relations that have another name here.
    """

    info: ManagerInfo
    root: str
    shape: ListShape
    fields: Mapping[str, Scalar]
    relations: Mapping[str, Relation]
    key: str | None
    filters: Mapping[tuple[str, str], Slot]
    order: OrderArgument | None
    names: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def asked(self, name: str) -> str:
        """The field as a selection names it, so that its value comes under our name."""
        own = self.names.get(name, name)
        return name if own == name else f"{name}: {own}"

    def nullable(self, name: str) -> bool:
        """Whether the type says that the field may be null."""
        return not is_non_null_type(self.shape.node.fields[self.names.get(name, name)].type)


def describe(schema: GraphQLSchema, options: Options) -> dict[str, Binding]:
    """Describe what ``options`` expose, without executing anything. Raises ``ValueError`` naming the setting."""
    lists = _exposed_lists(schema, options)
    names: dict[str, str] = {}
    owners: dict[GraphQLObjectType, str] = {}
    for root, (shape, chosen) in lists.items():
        name = chosen.name or f"{stem_of(shape.node.name)}Manager"
        if name in names:
            raise ValueError(
                f"plugins['graphql']['managers']: {names[name]!r} and {root!r} both make a {name!r}; "
                f'give one another name: {{"{root}": {{"name": "..."}}}}'
            )
        names[name] = root
        owners.setdefault(shape.node, name)
    return {
        name: _bind(name, root, schema.query_type.fields[root], *lists[root], owners=owners)
        for name, root in names.items()
        if schema.query_type is not None
    }


def stem_of(type_name: str) -> str:
    """What a type is about: ``PartType`` and ``PartNode`` are parts."""
    for suffix in _SUFFIXES:
        if type_name.endswith(suffix) and type_name != suffix:
            return type_name.removesuffix(suffix)
    return type_name


def key_of(node: GraphQLObjectType) -> str | None:
    """The field that tells a type's objects apart, if it has one."""
    return next((key for key in _KEYS if key in node.fields and not required(node.fields[key].args)), None)


def _exposed_lists(schema: GraphQLSchema, options: Options) -> dict[str, tuple[ListShape, ManagerOptions]]:
    """The named lists in the settings' order; then, for ``"*"``, one list of each type that none of them has."""
    query = schema.query_type
    if query is None:
        raise ValueError("plugins['graphql']['schema'] has no query type")
    usable = {name: shape for name, field in query.fields.items() if (shape := list_shape(field)) is not None}
    found: dict[str, tuple[ListShape, ManagerOptions]] = {}
    for name, chosen in options.managers.items():
        if name == EVERYTHING:
            continue
        if name not in usable:
            known = did_you_mean(name, usable)
            problem = "is no list of objects that can be asked for as it is" if name in query.fields else "is no field"
            raise ValueError(f"plugins['graphql']['managers']: {name!r} {problem} of the query type; {known}")
        found[name] = (usable[name], chosen)
    if EVERYTHING in options.managers:
        types = {shape.node for shape, _ in found.values()}
        for name, shape in usable.items():
            if shape.node not in types:
                types.add(shape.node)
                found[name] = (shape, options.managers[EVERYTHING])
    return found


def _bind(
    name: str,
    root: str,
    field: GraphQLField,
    shape: ListShape,
    chosen: ManagerOptions,
    *,
    owners: Mapping[GraphQLObjectType, str],
) -> Binding:
    scalars, relations = members_of(shape.node, owners)
    if chosen.fields is None:
        hidden = {member for member in scalars if is_secret_name(member) or is_bare_key(member, shape.node)}
        scalars = {member: scalar for member, scalar in scalars.items() if member not in hidden}
    else:
        known = {**scalars, **relations}
        for member in chosen.fields:
            if member not in known:
                raise ValueError(
                    f"plugins['graphql']['managers']['{root}']['fields']: {member!r} is no field that can be shown of "
                    f"{shape.node.name}; {did_you_mean(member, known)}"
                )
        scalars = {member: scalars[member] for member in chosen.fields if member in scalars}
        relations = {member: relations[member] for member in chosen.fields if member in relations}
    info = ManagerInfo(
        name=name,
        description=chosen.description or _description(shape.node, field),
        fields=tuple(_field_info(member, scalar, shape.node) for member, scalar in scalars.items()),
        relations=tuple(_relation_info(member, item, shape.node) for member, item in relations.items()),
        aliases=chosen.aliases,
        public=chosen.public,
    )
    filters = filters_of(shape, scalars)
    order = order_of(shape, scalars)
    return Binding(info, root, shape, scalars, relations, key_of(shape.node), filters, order)


def members_of(
    node: GraphQLObjectType, owners: Mapping[GraphQLObjectType, str]
) -> tuple[dict[str, Scalar], dict[str, Relation]]:
    """The fields that can be asked for without arguments, and those that lead to an exposed manager."""
    scalars: dict[str, Scalar] = {}
    relations: dict[str, Relation] = {}
    for name, field in node.fields.items():
        output = nullable(field.type)
        if isinstance(output, GraphQLObjectType) and output in owners:
            if not required(field.args):
                relations[name] = Relation(owners[output], None)
            continue
        shape = list_shape(field)
        if shape is not None:
            if shape.node in owners:
                relations[name] = Relation(owners[shape.node], shape)
            continue
        scalar = scalar_of(field.type)
        if scalar is not None and not required(field.args):
            scalars[name] = scalar
    return scalars, relations


def is_bare_key(name: str, node: GraphQLObjectType) -> bool:
    """Whether a field is the key of a relation (``supplierId`` beside ``supplier``): it would betray a hidden row."""
    spelled = bare(name)
    stem = next((spelled.removesuffix(key) for key in ("id", "pk") if spelled.endswith(key)), "")
    objects = {bare(other) for other, field in node.fields.items() if _leads_to_objects(field)}
    return bool(stem) and stem in objects


def _leads_to_objects(field: GraphQLField) -> bool:
    return isinstance(nullable(field.type), GraphQLObjectType)


def _description(node: GraphQLObjectType, field: GraphQLField) -> str:
    text = inspect.cleandoc(node.description or "")
    if not text or text.startswith(f"{stem_of(node.name)}("):  # Django's own docstring for a model without one
        text = inspect.cleandoc(field.description or "")
    return text or " ".join(split_words(stem_of(node.name))).capitalize()


def _field_info(name: str, scalar: Scalar, node: GraphQLObjectType) -> FieldInfo:
    field = node.fields[name]
    return FieldInfo(
        name=name,
        type=scalar.type,
        description=_text(field),
        nullable=not is_non_null_type(field.type),
        choices=scalar.choices,
        lookups=LOOKUPS[scalar.type],
        key=name == key_of(node),
    )


def _relation_info(name: str, relation: Relation, node: GraphQLObjectType) -> RelationInfo:
    field = node.fields[name]
    return RelationInfo(
        name=name,
        target=relation.target,
        many=relation.shape is not None,
        description=_text(field),
        nullable=relation.shape is not None or not is_non_null_type(field.type),
    )


def _text(field: Any) -> str:
    return inspect.cleandoc(field.description or "")


def with_mutations(bindings: dict[str, Binding], mutations: Mapping[str, Any]) -> dict[str, Binding]:
    """The same with ``mutations`` (lists of ``MutationInfo`` by manager) in their descriptions."""
    return {
        name: replace(binding, info=replace(binding.info, mutations=tuple(mutations.get(name, ()))))
        for name, binding in bindings.items()
    }
