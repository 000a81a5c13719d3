"""The one strict JSON encoder: tool results, events, audit, evidence and stored messages all pass through it.

Encoding of values that JSON lacks (the same everywhere, documented for clients and models):

* ``Decimal``: a plain decimal string (``"12.50"``); integers beyond 2**53 stay JSON integers.
* dates, times, datetimes: ISO 8601; durations: seconds as a number; UUID: its canonical text.
* bytes: ``"base64:..."``; NaN and infinities: ``null``; a set: a sorted list.
* text: lone surrogates and NUL become U+FFFD; U+2028/U+2029 are escaped (RFC 8259 allows both forms).
"""

from __future__ import annotations

import base64
import json
import math
import re
import uuid
from collections.abc import Callable, Collection, Mapping, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final

__all__ = ["UnencodableError", "canonical_json", "jsonable", "to_json"]

MAX_DEPTH: Final = 64
_UNSAFE_TEXT: Final = re.compile("[\x00\ud800-\udfff]")


class UnencodableError(TypeError):
    """A value has no JSON form here; the message names its type and where it stands (``$.rows[3].x``)."""

    def __init__(self, problem: str) -> None:
        """Say what is wrong; what holds the value adds the place on the way out, of which most values need none."""
        super().__init__(problem)
        self.place = ""

    def __str__(self) -> str:
        return f"${self.place}: {self.args[0]}"


def jsonable(value: Any) -> Any:
    """Return ``value`` in plain JSON types, or raise :class:`UnencodableError` naming the place (``$.rows[3].x``)."""
    return _encode(value, 0)


def _encode(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return _text(value)
    if kind in _UNCHANGED:
        return value
    if kind is dict:
        return _object(value, depth)
    if kind is list or kind is tuple:
        return _array(value, depth)
    encode = _SCALARS.get(kind) or _scalar_encoder(value)
    if encode is not None:
        return encode(value)
    if isinstance(value, Mapping):
        return _object(value, depth)
    if isinstance(value, list | tuple | Set):
        items = _array(value, depth)
        return sorted(items, key=canonical_json) if isinstance(value, Set) else items
    if kind.__module__ == "django.utils.functional":  # a lazy translation is text once it is asked for
        return _text(str(value))
    raise UnencodableError(f"a {kind.__name__} has no JSON form")


def _object(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    if depth >= MAX_DEPTH:
        raise UnencodableError(f"nested deeper than {MAX_DEPTH} levels")
    encoded: dict[str, Any] = {}
    key: Any = None
    try:
        for key, item in value.items():
            encoded[_text(key) if type(key) is str else _key(key)] = _encode(item, depth + 1)
    except UnencodableError as error:
        error.place = f".{key}{error.place}"
        raise
    return encoded


def _array(value: Collection[Any], depth: int) -> list[Any]:
    if depth >= MAX_DEPTH:
        raise UnencodableError(f"nested deeper than {MAX_DEPTH} levels")
    encoded: list[Any] = []
    try:
        for item in value:
            encoded.append(_encode(item, depth + 1))  # noqa: PERF401 - how many there are says where one failed
    except UnencodableError as error:
        error.place = f"[{len(encoded)}]{error.place}"
        raise
    return encoded


def _text(value: str) -> str:
    if value.isascii() and "\0" not in value:  # most text, told at once
        return value
    return _UNSAFE_TEXT.sub("\ufffd", value)


def _identity(value: Any) -> Any:
    return value


def _iso(value: date | time) -> str:
    return value.isoformat()


def _binary(value: bytes | bytearray | memoryview) -> str:
    return "base64:" + base64.b64encode(bytes(value)).decode("ascii")


_UNCHANGED: Final = frozenset({type(None), bool, int})

# In the order in which subclasses are tried: a bool is an int, a datetime a date.
_SCALARS: Final[Mapping[type, Callable[[Any], Any]]] = {
    type(None): _identity,
    bool: _identity,
    Enum: lambda value: jsonable(value.value),
    str: lambda value: _text(str.__str__(value)),  # a subclass may return itself
    int: int,
    float: lambda value: value if math.isfinite(value) else None,
    Decimal: lambda value: format(value, "f") if value.is_finite() else None,
    datetime: _iso,
    date: _iso,
    time: _iso,
    timedelta: timedelta.total_seconds,
    uuid.UUID: str,
    bytes: _binary,
    bytearray: _binary,
    memoryview: _binary,
}


def _scalar_encoder(value: Any) -> Callable[[Any], Any] | None:
    return next((encode for kind, encode in _SCALARS.items() if isinstance(value, kind)), None)


# Made once, as json.dumps makes one for each call. What jsonable gives has no circles.
_WIRE: Final = json.JSONEncoder(check_circular=False, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
_CANONICAL: Final = json.JSONEncoder(check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def to_json(value: Any) -> str:
    """Encode for the wire: compact, UTF-8 text as it is, safe inside one SSE ``data:`` line."""
    return _WIRE.encode(jsonable(value)).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def canonical_json(value: Any) -> str:
    """Encode for comparison and hashing: sorted keys, compact, ASCII. Equal values give equal text."""
    return _CANONICAL.encode(jsonable(value))


def _key(key: object) -> str:
    if isinstance(key, str):
        return _text(str.__str__(key))
    if isinstance(key, (int, uuid.UUID, date)) and not isinstance(key, bool):
        return str(key)
    raise UnencodableError(f"{key!r} is not usable as an object key")
