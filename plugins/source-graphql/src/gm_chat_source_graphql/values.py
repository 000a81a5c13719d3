"""Scalars and enums of a schema as field types, and their results as Python values that compare."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.utils import timezone
from django.utils.dateparse import parse_duration
from graphql import GraphQLEnumType, GraphQLScalarType, get_nullable_type, is_leaf_type, is_list_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gm_chat.managers.api import FieldType

__all__ = ["Scalar", "nullable", "scalar_of"]

_TYPES: Final[Mapping[str, FieldType]] = {
    "int": "integer",
    "bigint": "integer",
    "long": "integer",
    "float": "number",
    "string": "string",
    "id": "string",
    "globalid": "string",
    "boolean": "boolean",
    "date": "date",
    "datetime": "datetime",
    "time": "time",
    "decimal": "decimal",
    "uuid": "uuid",
    "duration": "duration",
    "timedelta": "duration",
}
"""By the scalar's name without case and underscores; any other is ``json``: shown as it comes, not compared."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf type. ``choices`` are an enum's (value, label) pairs, ``names`` what each value is called in GraphQL.

    ``selection`` is what to ask of it where a subclass makes one value of an object.
    """

    type: FieldType
    name: str
    choices: tuple[tuple[Any, str], ...] = ()
    names: Mapping[Any, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    selection: str = ""

    def parse(self, raw: Any) -> Any:
        """A result as a Python value. Raises ``ValueError`` if it is none of its type."""
        if raw is None:
            return None
        if self.names:
            return self.values[raw]
        try:
            return _PARSE[self.type](raw) if self.type in _PARSE else self._document(raw)
        except (TypeError, ArithmeticError) as error:
            raise ValueError(f"{raw!r:.60} is no {self.type}") from error

    def _document(self, raw: Any) -> Any:
        return json.loads(raw) if self.name == "JSONString" and isinstance(raw, str) else raw


def nullable(type_: Any) -> Any:
    """The type without its ``!``. graphql-core types it by what may stand there, which fits nowhere."""
    return get_nullable_type(type_)


def scalar_of(type_: Any) -> Scalar | None:
    """The scalar that stands behind an output or input type; ``None`` where an object does.

    A list of scalars is ``json``. An enum's values are those that Python code sees, if they are text or numbers (for a
    Django field with choices that is what the database holds), else their names.
    """
    bare = nullable(type_)
    if is_list_type(bare):
        inner = nullable(bare.of_type)
        return Scalar("json", "") if is_leaf_type(inner) or (is_list_type(inner) and scalar_of(inner)) else None
    if isinstance(bare, GraphQLEnumType):
        return _enum(bare)
    if isinstance(bare, GraphQLScalarType):
        return Scalar(_TYPES.get(bare.name.replace("_", "").lower(), "json"), bare.name)
    return None


def _enum(type_: GraphQLEnumType) -> Scalar:
    stored = {name: _plain(item.value) for name, item in type_.values.items()}
    kinds = {type(value) for value in stored.values()}
    if kinds not in ({str}, {int}) or len(set(stored.values())) < len(stored):
        stored = {name: name for name in stored}
    choices = tuple(
        (value, type_.values[name].description or str(name).replace("_", " ").capitalize())
        for name, value in stored.items()
    )
    is_number = all(isinstance(value, int) for value in stored.values())
    return Scalar(
        "integer" if is_number else "string",
        type_.name,
        choices,
        {value: name for name, value in stored.items()},
        stored,
    )


def _plain(value: Any) -> Any:
    value = getattr(value, "value", value) if isinstance(value, Enum) or type(value).__name__ == "EnumValue" else value
    return str.__str__(value) if isinstance(value, str) else value


def _date(raw: Any) -> date:
    return raw if type(raw) is date else date.fromisoformat(raw)


def _datetime(raw: Any) -> datetime:
    moment = raw if isinstance(raw, datetime) else datetime.fromisoformat(raw)
    if timezone.is_naive(moment) == settings.USE_TZ:
        return timezone.make_aware(moment) if settings.USE_TZ else timezone.make_naive(moment)
    return moment


def _time(raw: Any) -> time:
    return raw if isinstance(raw, time) else time.fromisoformat(raw)


def _duration(raw: Any) -> timedelta:
    if isinstance(raw, timedelta):
        return raw
    length = parse_duration(raw) if isinstance(raw, str) else timedelta(seconds=raw)
    if length is None:
        raise ValueError(f"{raw!r:.60} is no duration")
    return length


_PARSE: Final[Mapping[FieldType, Callable[[Any], Any]]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "decimal": lambda raw: raw if isinstance(raw, Decimal) else Decimal(str(raw)),
    "date": _date,
    "datetime": _datetime,
    "time": _time,
    "duration": _duration,
    "uuid": lambda raw: raw if isinstance(raw, uuid.UUID) else uuid.UUID(str(raw)),
}
