"""Mutations of the project's own: a decorated function's parameters become inputs.

The annotations are read here, when every app is ready, and not where the function is decorated: they may name models
and managers that come later in the file. Those of the row, of ``actor`` and of the result are not looked at.
"""

from __future__ import annotations

import inspect
import uuid
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from django.db.models import Model

from gm_chat.encoding import to_json
from gm_chat.managers.api import FieldType, InputInfo, MutationInfo
from gm_chat.managers.binding import BoundMutation
from gm_chat.managers.declare import ModelManager, fail
from gm_chat.managers.inputs import identity_of
from gm_chat.managers.introspect import scalar_type

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import TypeAlias

    from gm_chat.managers.declare import CustomMutation
    from gm_chat.managers.introspect import Members

    Exposed: TypeAlias = Mapping[Any, Sequence[str]]
    """The names of the exposed managers by their concrete models: rows are checked through them."""

__all__ = ["bind_mutations"]

_SCALARS: Final[Mapping[type, FieldType]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    Decimal: "decimal",
    datetime: "datetime",
    date: "date",
    time: "time",
    timedelta: "duration",
    uuid.UUID: "uuid",
}
_KNOWN: Final = (
    f"{', '.join(kind.__name__ for kind in _SCALARS)}, an Enum, a Literal, a Django model or a manager, "
    "a list of these, each of them | None"
)


def bind_mutations(
    manager: type[ModelManager],
    members: Members,
    mutations: Mapping[str, CustomMutation],
    exposed: Exposed,
    *,
    taken: Collection[str] = (),
) -> list[tuple[MutationInfo, BoundMutation]]:
    """Describe a manager's own mutations, which are given by attribute name.

    Raises ``DeclarationError`` for an annotation that no input can be made of, and for a name in ``taken``.
    """
    bound: dict[str, tuple[MutationInfo, BoundMutation]] = {}
    for attribute, mutation in mutations.items():
        if mutation.name in taken or mutation.name in bound:
            fail(manager, attribute, f"the manager has a mutation {mutation.name!r} already; choose another name")
        bound[mutation.name] = _bind(manager, attribute, members, mutation, exposed)
    return list(bound.values())


def _bind(
    manager: type[ModelManager],
    attribute: str,
    members: Members,
    mutation: CustomMutation,
    exposed: Exposed,
) -> tuple[MutationInfo, BoundMutation]:
    inputs: list[InputInfo] = []
    if mutation.on_row:
        identity = identity_of(members)
        if identity is None:
            fail(manager, attribute, "it takes a row, and the model has no primary key of one scalar column")
        inputs.append(identity)
    enums: dict[str, type[Enum]] = {}
    for parameter, hint in zip(mutation.parameters, _hints(manager, attribute, mutation), strict=True):
        try:
            kind = _Kind.of(hint, exposed)
        except _UnusableError as error:
            fail(manager, attribute, f"the input {parameter.name!r} {error}")
        if kind.enum is not None:
            enums[parameter.name] = kind.enum
        inputs.append(kind.input(parameter))
    info = MutationInfo(
        name=mutation.name,
        manager=manager.__name__,
        kind="custom",
        inputs=tuple(inputs),
        description=mutation.description,
    )
    bound = BoundMutation(
        function=mutation.function, on_row=mutation.on_row, permission=mutation.permission, enums=enums
    )
    return info, bound


def _hints(manager: type[ModelManager], attribute: str, mutation: CustomMutation) -> list[Any]:
    """The annotations as objects, also where the module postpones their evaluation."""

    def only_the_inputs() -> None: ...

    only_the_inputs.__annotations__ = {item.name: item.annotation for item in mutation.parameters}
    try:
        hints = get_type_hints(only_the_inputs, mutation.function.__globals__, include_extras=True)
    except Exception as error:  # noqa: BLE001 - evaluating an annotation runs the project's code
        why = f"{type(error).__name__}: {error}"
        fail(manager, attribute, f"its annotations cannot be read: {why} (not imported under TYPE_CHECKING?)")
    return [hints[item.name] for item in mutation.parameters]


class _UnusableError(Exception):
    """Says what is wrong with an annotation, after the parameter's name."""


@dataclass(slots=True)
class _Kind:
    """What an annotation says of an input."""

    scalar: FieldType
    choices: tuple[tuple[Any, str], ...] = ()
    relation: str | None = None
    enum: type[Enum] | None = None
    many: bool = False
    nullable: bool = False
    description: str = ""

    @classmethod
    def of(cls, hint: Any, exposed: Exposed) -> _Kind:
        """Take the wrappings off, from without: ``Annotated``, ``| None``, ``list``."""
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            kind = cls.of(arguments[0], exposed)
            texts = [item for item in arguments[1:] if isinstance(item, str)]
            kind.description = " ".join([*texts, kind.description]).strip()
            return kind
        if origin in (Union, UnionType):
            inner = [item for item in arguments if item is not NoneType]
            if len(inner) != 1 or len(arguments) != 2:
                raise _UnusableError(f"is one of several types, {hint}; known: {_KNOWN}")
            kind = cls.of(inner[0], exposed)
            kind.nullable = True
            return kind
        if origin is list:
            kind = cls.of(arguments[0], exposed)
            if kind.many or kind.nullable:
                raise _UnusableError(f"is {hint}; a list holds neither lists nor None")
            kind.many = True
            return kind
        if origin is Literal:
            return cls(_type_of_values(arguments), tuple((value, str(value)) for value in arguments))
        return cls._of_class(hint, exposed)

    @classmethod
    def _of_class(cls, hint: Any, exposed: Exposed) -> _Kind:
        if not inspect.isclass(hint):
            raise _UnusableError(f"is annotated as {hint!r:.80}; known: {_KNOWN}")
        if hint in _SCALARS:
            return cls(_SCALARS[hint])
        if issubclass(hint, Enum):
            pairs = getattr(hint, "choices", None) or [(member.value, member.name) for member in hint]
            choices = tuple((value, str(label)) for value, label in pairs if value is not None)
            return cls(_type_of_values([value for value, _ in choices]), choices, enum=hint)
        if issubclass(hint, Model | ModelManager):
            manager, model = _manager_of(hint, exposed)
            key = scalar_type(model._meta.pk)
            if key is None:
                raise _UnusableError(f"is a row of {manager}, whose model has no primary key of one scalar column")
            return cls(key, relation=manager)
        raise _UnusableError(f"is annotated as {hint.__qualname__}; known: {_KNOWN}")

    def input(self, parameter: inspect.Parameter) -> InputInfo:
        texts = [self.description]
        if parameter.default is not parameter.empty and parameter.default is not None:
            texts.append(f"(default: {_shown(parameter.default)})")
        return InputInfo(
            name=parameter.name,
            type=self.scalar,
            required=parameter.default is parameter.empty,
            nullable=self.nullable,
            description=" ".join(filter(None, texts)),
            choices=self.choices,
            relation=self.relation,
            many=self.many,
        )


def _type_of_values(values: Collection[Any]) -> FieldType:
    kinds = {_SCALARS.get(type(value)) for value in values}
    if len(kinds) == 1 and (kind := kinds.pop()) is not None:
        return kind
    raise _UnusableError(f"has choices of several types or none that JSON has: {list(values)!r:.80}")


def _manager_of(hint: Any, exposed: Exposed) -> tuple[str, Any]:
    """The exposed manager of a model, or the one that is named, with its model."""
    is_named = issubclass(hint, ModelManager)
    model = hint.model if is_named else hint
    model = None if model is None else model._meta.concrete_model
    candidates = exposed.get(model, ())
    usual = hint.__name__ if is_named else f"{hint.__name__}Manager"
    if usual in candidates:
        return usual, model
    if is_named:
        raise _UnusableError(f"is a row of {usual}, which is not exposed")
    if not candidates:
        raise _UnusableError(f"is a {hint.__name__}, which has no exposed manager")
    if len(candidates) > 1:
        raise _UnusableError(f"could be a row of {' or '.join(candidates)}; annotate it with the manager")
    return candidates[0], model


def _shown(default: Any) -> str:
    try:
        return to_json(default)
    except TypeError:
        return repr(default)
