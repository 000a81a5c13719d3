"""A schema's mutations: which manager each belongs to, what it takes, and what came of it.

Taken are flat arguments, or one input object, whose fields then are the inputs. A relation's ``{set: id}`` is offered
as the id alone.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from django.db import transaction
from graphql import (
    GraphQLInputObjectType,
    GraphQLObjectType,
    GraphQLUnionType,
    get_named_type,
    is_leaf_type,
    is_list_type,
    is_non_null_type,
    is_required_argument,
    is_required_input_field,
)

from gm_chat.encoding import jsonable
from gm_chat.managers.api import InputInfo, MutationInfo
from gm_chat.managers.names import did_you_mean
from gm_chat.plugin import ToolError
from gm_chat_source_graphql.deadline import watched
from gm_chat_source_graphql.describe import key_of, stem_of
from gm_chat_source_graphql.document import Document
from gm_chat_source_graphql.errors import is_denial, log_errors, messages_of
from gm_chat_source_graphql.options import EVERYTHING
from gm_chat_source_graphql.shapes import bare, required
from gm_chat_source_graphql.values import nullable, scalar_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from graphql import GraphQLField, GraphQLSchema

    from gm_chat.managers.api import MutationCall
    from gm_chat_source_graphql.describe import Binding
    from gm_chat_source_graphql.library import Executable

__all__ = ["Mutation", "describe_mutations", "run_mutation"]

Kind = Literal["create", "update", "delete", "custom"]
_KINDS: Final[Mapping[str, Kind]] = {"create": "create", "add": "create", "update": "update", "delete": "delete"}
_IGNORED: Final = ("clientmutationid",)


@dataclass(frozen=True, slots=True)
class Mutation:
    """``wrapper`` is the argument whose object holds the inputs; ``sets`` are the inputs given as ``{set: ...}``."""

    info: MutationInfo
    field: GraphQLField
    wrapper: str | None
    types: Mapping[str, Any]
    sets: frozenset[str]


def describe_mutations(
    schema: GraphQLSchema, bindings: Mapping[str, Binding], wanted: Mapping[str, str | None]
) -> dict[str, Mutation]:
    """Describe the mutations that the settings name. Raises ``ValueError`` for one that does not exist or fit."""
    fields = {} if schema.mutation_type is None else schema.mutation_type.fields
    found: dict[str, Mutation] = {}
    for name, manager in wanted.items():
        if name == EVERYTHING:
            continue
        if name not in fields:
            raise ValueError(f"plugins['graphql']['mutations']: there is no {name!r}; {did_you_mean(name, fields)}")
        owner = manager if manager is not None else _owner(name, fields[name], bindings)
        if owner is None or owner not in bindings:
            hint = f'name it: {{"{name}": "PartManager"}}' if owner is None else did_you_mean(owner, bindings)
            raise ValueError(f"plugins['graphql']['mutations']: {name!r} belongs to no exposed manager; {hint}")
        found[name] = _mutation(name, fields[name], bindings[owner])
    if EVERYTHING in wanted:
        for name, field in fields.items():
            owner = None if name in found else _owner(name, field, bindings)
            if owner is not None:
                found[name] = _mutation(name, field, bindings[owner])
    return found


def _owner(name: str, field: GraphQLField, bindings: Mapping[str, Binding]) -> str | None:
    """The manager whose row the mutation returns, or which its name ends in."""
    by_type: dict[Any, str] = {}
    stems: dict[str, str] = {}
    for manager, binding in bindings.items():
        by_type.setdefault(binding.shape.node, manager)
        stems.setdefault(bare(stem_of(binding.shape.node.name)), manager)
    for type_ in _objects(field):
        if type_ in by_type:
            return by_type[type_]
    spelled = bare(name)
    fitting = sorted((stem for stem in stems if spelled.endswith(stem)), key=len)
    return stems[fitting[-1]] if fitting else None


def _objects(field: GraphQLField) -> Iterator[GraphQLObjectType]:
    """The object types that a mutation returns, or wraps in a payload, which has no key of its own."""
    output = get_named_type(field.type)
    outer = output.types if isinstance(output, GraphQLUnionType) else (output,)
    for type_ in outer:
        if isinstance(type_, GraphQLObjectType):
            yield type_
            if key_of(type_) is None:
                inner = (nullable(item.type) for item in type_.fields.values())
                yield from (item for item in inner if isinstance(item, GraphQLObjectType))


def _mutation(name: str, field: GraphQLField, binding: Binding) -> Mutation:
    wrapper, types = None, {key: (item.type, is_required_argument(item), item) for key, item in field.args.items()}
    if len(types) == 1:
        ((only, (type_, _, _)),) = types.items()
        inner = nullable(type_)
        if isinstance(inner, GraphQLInputObjectType):
            wrapper = only
            types = {key: (item.type, is_required_input_field(item), item) for key, item in inner.fields.items()}
    sets: set[str] = set()
    inputs = []
    for key, (type_, is_required, item) in types.items():
        if bare(key) not in _IGNORED or is_required:
            inputs.append(_input(key, type_, item, binding, sets, is_required=is_required))
    kind: Kind = next((kind for verb, kind in _KINDS.items() if name.lower().startswith(verb)), "custom")
    if kind == "update" and all(item.name != "id" for item in inputs):
        kind = "custom"  # its inputs do not say which of them is the row's
    info = MutationInfo(
        name=name,
        manager=binding.info.name,
        kind=kind,
        inputs=tuple(inputs),
        description=inspect.cleandoc(field.description or ""),
    )
    return Mutation(info, field, wrapper, {key: type_ for key, (type_, _, _) in types.items()}, frozenset(sets))


def _input(name: str, type_: Any, item: Any, binding: Binding, sets: set[str], *, is_required: bool) -> InputInfo:
    bare_type = nullable(type_)
    if isinstance(bare_type, GraphQLInputObjectType) and "set" in bare_type.fields:
        inner = bare_type.fields["set"].type
        if is_leaf_type(get_named_type(inner)):
            sets.add(name)
            bare_type = nullable(inner)
    many = is_list_type(bare_type) and is_leaf_type(get_named_type(bare_type))
    scalar = scalar_of(get_named_type(bare_type) if many else bare_type)
    relation = next(
        (item.target for key, item in binding.relations.items() if bare(name) in (bare(key), bare(key) + "id")), None
    )
    return InputInfo(
        name=name,
        type="json" if scalar is None else scalar.type,
        required=is_required,
        nullable=not is_non_null_type(type_),
        description=inspect.cleandoc(item.description or ""),
        choices=() if scalar is None else scalar.choices,
        relation=relation if scalar is not None else None,
        many=many,
    )


# --- running one ------------------------------------------------------------------------------------------------


def run_mutation(
    call: MutationCall, mutation: Mutation, library: Executable, binding: Binding, context: Any, deadline: float | None
) -> dict[str, Any]:
    """Run a validated call in one transaction of the default database, undone whole if the schema reports an error.

    Returns the row's fields that the manager shows, and scalars beside it. Blocking. Raises ``ToolError`` with
    ``permission_denied``, ``validation_failed`` (``fields``: messages by input), ``timeout`` or ``failed``.
    """
    document = Document("mutation")
    values = {name: _raw(name, value, mutation) for name, value in call.values.items()}
    given = values if mutation.wrapper is None else {mutation.wrapper: values}
    selection = _selection(mutation.field, binding)
    text = document.text(
        f"{mutation.info.name}{document.arguments(given, mutation.field.args)}{f' {selection}' if selection else ''}"
    )
    with transaction.atomic():
        with watched(deadline):
            result = library.execute(text, document.variables, context)
        errors = list(result.errors or ())
        if errors:
            raise _refusal(errors, mutation)
        payload = (result.data or {}).get(mutation.info.name)
        _raise_payload(payload, mutation)
        return _written(payload, binding)


def _raw(name: str, value: Any, mutation: Mutation) -> Any:
    """The value as the schema's input takes it: enums by name, relations in ``{set: ...}``."""
    type_ = nullable(mutation.types[name])
    if name in mutation.sets:
        type_ = nullable(nullable(type_).fields["set"].type)
    scalar = scalar_of(get_named_type(type_))
    names = {} if scalar is None else scalar.names

    def one(item: Any) -> Any:
        return names.get(item, item) if names else jsonable(item)

    raw = [one(item) for item in value] if isinstance(value, list) and is_list_type(type_) else one(value)
    return {"set": raw} if name in mutation.sets else raw


def _selection(field: GraphQLField, binding: Binding) -> str:
    """What to ask back: scalars, the manager's row one level below, and what describes refusals."""
    output = get_named_type(field.type)
    if isinstance(output, GraphQLUnionType):
        parts = [f"... on {type_.name} {_fields(type_, binding)}" for type_ in output.types]
        return "{ __typename " + " ".join(parts) + " }"
    return _fields(output, binding) if isinstance(output, GraphQLObjectType) else ""


def _fields(type_: GraphQLObjectType, binding: Binding, depth: int = 0) -> str:
    parts = ["__typename"]
    for name, field in type_.fields.items():
        inner = get_named_type(field.type)
        if required(field.args) or (type_ is binding.shape.node and name not in binding.fields):
            continue
        if scalar_of(field.type) is not None:
            parts.append(name)
        elif isinstance(inner, GraphQLObjectType) and depth == 0 and type_ is not binding.shape.node:
            is_row = inner is binding.shape.node and not is_list_type(nullable(field.type))
            if is_row or bare(name) in ("errors", "messages"):
                parts.append(f"{name} {_fields(inner, binding, depth + 1)}")
    return "{ " + " ".join(parts) + " }"


def _written(payload: Any, binding: Binding) -> dict[str, Any]:
    """The row that a payload is or holds, with the payload's scalars."""
    if not isinstance(payload, dict):
        return {"result": jsonable(payload)}
    found: dict[str, Any] = {}
    for name, value in payload.items():
        if isinstance(value, dict):
            found |= _written(value, binding)
        elif name == "__typename" or bare(name) in ("errors", "messages"):
            continue
        else:
            is_row = payload.get("__typename") == binding.shape.node.name and name in binding.fields
            found[name] = jsonable(binding.fields[name].parse(value) if is_row else value)
    return found


def _raise_payload(payload: Any, mutation: Mutation) -> None:
    """Refuse what a payload tells as data: ``errors {field messages}``, ``messages {field message kind}``."""
    if not isinstance(payload, dict):
        return
    pairs: list[tuple[str, str]] = []
    for name, entries in payload.items():
        if bare(name) not in ("errors", "messages") or not isinstance(entries, list):
            continue
        for entry in entries:
            if isinstance(entry, dict):
                kind = str(entry.get("kind") or "").upper()
                if kind == "PERMISSION":
                    raise _denied(mutation)
                if kind in ("INFO", "WARNING"):
                    continue
                texts = entry.get("messages") or [entry.get("message")]
                pairs += [(str(entry.get("field") or ""), str(text)) for text in texts if text]
            elif entry:
                pairs.append(("", str(entry)))
    if pairs:
        raise _invalid(pairs, mutation)


def _refusal(errors: Sequence[Any], mutation: Mutation) -> ToolError:
    if any(map(is_denial, errors)):
        return _denied(mutation)
    pairs = [pair for error in errors for pair in messages_of(error)]
    if pairs:
        return _invalid(pairs, mutation)
    log_errors(errors, f"the mutation {mutation.info.name}")
    return ToolError("failed", f"{mutation.info.name} failed: its schema reports an error; nothing was written")


def _denied(mutation: Mutation) -> ToolError:
    return ToolError("permission_denied", f"you may not run {mutation.info.name}, or not on this row")


def _invalid(pairs: Sequence[tuple[str, str]], mutation: Mutation) -> ToolError:
    known = {bare(item.name): item.name for item in mutation.info.inputs}
    fields: dict[str, list[str]] = {}
    parts = []
    for name, message in pairs:
        own = known.get(bare(name))
        if own is not None:
            fields.setdefault(own, []).append(message)
        parts.append(message if own is None else f"{own}: {message}")
    return ToolError("validation_failed", " ".join(parts), fields=fields)
