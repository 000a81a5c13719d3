"""Column values into JSON types, by the rules of ``gm_chat.encoding.jsonable`` without its dispatch on each value."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from gm_chat.encoding import jsonable

if TYPE_CHECKING:
    from django.db.models import Model

    from gm_chat.managers.api import FieldType

__all__ = ["CONVERT", "Convert", "decimal_places", "decimal_text", "fitting"]

_encode: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode
Convert = Callable[[Any], Any]


def decimal_places(model: type[Model], query_name: str) -> int:
    """The decimals of a column."""
    source: Any = model._meta.pk if query_name == "pk" else model._meta.get_field(query_name)
    places: int = getattr(source, "output_field", source).decimal_places
    return places


def decimal_text(model: type[Model], query_name: str, *, binary: bool) -> Convert:
    """Plain decimal text; ``binary`` databases, as SQLite, give floats, of which it is the column's places."""
    if binary:
        places: Convert = f"%.{decimal_places(model, query_name)}f".__mod__
        return places
    return lambda value: format(value, "f") if value.is_finite() else None


CONVERT: Final[Mapping[FieldType, Convert]] = {
    "number": lambda value: value if math.isfinite(value) else None,
    "date": lambda value: value.isoformat(),
    "datetime": lambda value: value.isoformat(),
    "time": lambda value: value.isoformat(),
    "duration": lambda value: value.total_seconds(),
    "uuid": str,
    "json": jsonable,
    "binary": jsonable,
}
"""The rules of :func:`gm_chat.encoding.jsonable`, without its dispatch on every value. Other types are JSON already."""


def fitting(data: Sequence[Any], budget: int | None) -> int:
    """How many leading rows fit into ``budget`` bytes of JSON; rows are dropped whole, never cut."""
    if budget is None:
        return len(data)
    used = 2
    for index, row in enumerate(data):
        used += len(_encode(row).encode("utf-8", "replace")) + 1
        if used > budget:
            return index
    return len(data)
