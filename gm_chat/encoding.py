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
from collections.abc import Mapping, Set
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
    match value:
        case None | bool():
            return value
        case Enum():
            return jsonable(value.value, path, depth)
        case str():
            return _UNSAFE_TEXT.sub("\ufffd", value) if _UNSAFE_TEXT.search(value) else str(value)
        case int():
            return int(value)
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return format(value, "f") if value.is_finite() else None
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case uuid.UUID():
            return str(value)
        case bytes() | bytearray() | memoryview():
            return "base64:" + base64.b64encode(bytes(value)).decode("ascii")
    if depth >= MAX_DEPTH:
        raise UnencodableError(f"{path}: nested deeper than {MAX_DEPTH} levels")
    match value:
        case Mapping():
            return {_key(key, path): jsonable(item, f"{path}.{key}", depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [jsonable(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
        case Set():
            return sorted((jsonable(item, path, depth + 1) for item in value), key=canonical_json)
    if type(value).__str__ is not object.__str__ and type(value).__module__.startswith("django.utils.functional"):
        return jsonable(str(value), path, depth)
    raise UnencodableError(f"{path}: a {type(value).__name__} has no JSON form")


def to_json(value: Any) -> str:
    """Encode for the wire: compact, UTF-8 text as it is, safe inside one SSE ``data:`` line."""
    text = json.dumps(jsonable(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def canonical_json(value: Any) -> str:
    """Encode for comparison and hashing: sorted keys, compact, ASCII. Equal values give equal text."""
    return json.dumps(jsonable(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _key(key: object, path: str) -> str:
    if isinstance(key, str):
        return _UNSAFE_TEXT.sub("\ufffd", key)
    if isinstance(key, (int, uuid.UUID, date)) and not isinstance(key, bool):
        return str(key)
    raise UnencodableError(f"{path}: {key!r} is not usable as an object key")
