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
from collections.abc import Callable, Mapping, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final

__all__ = ["UnencodableError", "canonical_json", "jsonable", "to_json"]

MAX_DEPTH: Final = 64
_UNSAFE_TEXT: Final = re.compile("[\x00\ud800-\udfff]")


class UnencodableError(TypeError):
    """A value has no JSON form here; the message names its type and where it stands."""


def jsonable(value: Any, path: str = "$", depth: int = 0) -> Any:
    """Return ``value`` in plain JSON types, or raise :class:`UnencodableError` naming the place (``$.rows[3].x``)."""
    encode = _SCALARS.get(type(value)) or _scalar_encoder(value)
    if encode is not None:
        return encode(value)
    if depth >= MAX_DEPTH:
        raise UnencodableError(f"{path}: nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        return {_key(key, path): jsonable(item, f"{path}.{key}", depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
    if isinstance(value, Set):
        return sorted((jsonable(item, path, depth + 1) for item in value), key=canonical_json)
    if type(value).__module__ == "django.utils.functional":  # a lazy translation is text once it is asked for
        return _text(str(value))
    raise UnencodableError(f"{path}: a {type(value).__name__} has no JSON form")


def _text(value: str) -> str:
    return _UNSAFE_TEXT.sub("\ufffd", value) if _UNSAFE_TEXT.search(value) else str(value)


def _identity(value: Any) -> Any:
    return value


def _iso(value: date | time) -> str:
    return value.isoformat()


def _binary(value: bytes | bytearray | memoryview) -> str:
    return "base64:" + base64.b64encode(bytes(value)).decode("ascii")


# In the order in which subclasses are tried: a bool is an int, a datetime a date.
_SCALARS: Final[Mapping[type, Callable[[Any], Any]]] = {
    type(None): _identity,
    bool: _identity,
    Enum: lambda value: jsonable(value.value),
    str: _text,
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


def to_json(value: Any) -> str:
    """Encode for the wire: compact, UTF-8 text as it is, safe inside one SSE ``data:`` line."""
    text = json.dumps(jsonable(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def canonical_json(value: Any) -> str:
    """Encode for comparison and hashing: sorted keys, compact, ASCII. Equal values give equal text."""
    return json.dumps(jsonable(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _key(key: object, path: str) -> str:
    if isinstance(key, str):
        return _text(key)
    if isinstance(key, (int, uuid.UUID, date)) and not isinstance(key, bool):
        return str(key)
    raise UnencodableError(f"{path}: {key!r} is not usable as an object key")
