"""Untrusted JSON values into the Python values of a field's type.

What is accepted, the same for filters and for mutation inputs:

* ``string``: text of at most 10,000 characters, without NUL and lone surrogates, which databases refuse.
* ``integer``: a JSON integer of 64 bits (``5.0`` counts, ``"5"`` does not, ``true`` does not).
* ``number``: a finite JSON number. ``decimal``: a JSON number or its text, as our results show it (``"12.50"``).
* ``boolean``: ``true`` or ``false`` alone.
* ``date``, ``time``, ``datetime``: ISO 8601 text; a datetime without an offset is in the project's time zone.
* ``duration``: seconds, or text as Django or ISO 8601 write it. ``uuid``: its text.
* ``json``: any JSON value of bounded depth. ``binary``: ``"base64:..."``, as our results show it.
* A field with choices takes a choice's value or its label, whatever the label's case.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.utils import timezone
from django.utils.dateparse import parse_duration

from gm_chat.managers.spelling import MAX_ALLOWED, nearest, shown
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from gm_chat.managers.api import FieldType

__all__ = ["MAX_TEXT", "WrongValueError", "called_so", "coerce", "plain_date", "unquoted"]

MAX_TEXT: Final = 10_000
"""Longest text of a value, in characters. (SQLite refuses LIKE patterns over 50,000 bytes.)"""
MAX_JSON_DEPTH: Final = 20
MAX_DIGITS: Final = 60
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_DECIMAL: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_INTEGER: Final = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_LONGEST: Final = timedelta(days=100_000_000)  # in microseconds it fits 64 bits, as SQLite and MariaDB store it


class _RefusedError(Exception):
    """Carries what the value must be."""


class WrongValueError(ToolError):
    """A value under ``name`` is none of its type. ``meant`` is one that it may have been meant for, or ``None``."""

    def __init__(self, code: str, message: str, *, name: str, value: Any, meant: Any, **details: Any) -> None:
        """Take the error as it is, and what would mend it."""
        super().__init__(code, message, **details)
        self.name = name
        self.value = value
        self.meant = meant


def coerce(
    value: Any, type: FieldType, *, name: str, choices: Sequence[tuple[Any, str]] = (), max_text: int | None = MAX_TEXT
) -> Any:
    """Return ``value`` as ``type``, or raise ``WrongValueError("invalid_value")`` that says what ``name`` takes."""
    if choices:
        return _choice(value, choices, name)
    try:
        if isinstance(value, str):
            _check_text(value, max_text)
        return _COERCE[type](value)
    except _RefusedError as refused:
        message = f"{name}: expected {refused}, got {shown(value)}"
        meant = _meant(value, type)
        raise WrongValueError("invalid_value", message, name=name, value=value, meant=meant, expected=type) from None


def plain_date(value: Any) -> date | None:
    """The date, if ``value`` is the text of one and has no time of day."""
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return None
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def unquoted(value: Any) -> Any:
    """The number or truth value that a text is, ``"5"``, ``"2.50"``, ``"true"``; of anything else ``None``."""
    text = value.strip() if isinstance(value, str) else ""
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return float(text)
    return {"true": True, "false": False}.get(text.casefold())


def _meant(value: Any, type: FieldType) -> Any:
    """What a model meant that put a number in quotes, or forgot them around text of digits."""
    is_count = isinstance(value, int) and not isinstance(value, bool)
    found = str(value) if type == "string" and is_count and value.bit_length() < 64 else unquoted(value)
    try:
        if found is not None:
            _COERCE[type](found)
    except _RefusedError:
        return None
    return found


def called_so(choices: Sequence[tuple[Any, str]], lookup: str, text: str) -> tuple[Any, ...]:
    """The choices that a text lookup finds by their labels alone: those are what people read."""
    operator = lookup.removeprefix("i")

    def is_found(read: str) -> bool:
        sought = text
        if operator != lookup:
            sought, read = text.casefold(), read.casefold()
        match operator:
            case "contains":
                return sought in read
            case "startswith":
                return read.startswith(sought)
            case "endswith":
                return read.endswith(sought)
        return read == sought

    def is_stored(value: str) -> bool:
        return value.isascii() and is_found(value)  # SQLite's text lookups know the cases of no other letters

    return tuple(value for value, label in choices if is_found(label) and not is_stored(str(value)))


def _choice(value: Any, choices: Sequence[tuple[Any, str]], name: str) -> Any:
    if not isinstance(value, Mapping | list):
        for stored, _ in choices:
            if stored == value and isinstance(stored, bool) == isinstance(value, bool):
                return stored
        if isinstance(value, str):
            matches = [stored for stored, label in choices if label.casefold() == value.casefold()]
            if len(matches) == 1:
                return matches[0]
    texts = {str(stored): stored for stored, _ in choices}
    allowed = [texts[key] for key in nearest(value if isinstance(value, str) else "", texts, limit=MAX_ALLOWED)]
    raise WrongValueError(
        "invalid_value",
        f"{name}: {shown(value)} is not one of its choices",
        name=name,
        value=value,
        meant=None,
        allowed=allowed,
    )


def _check_text(value: str, max_text: int | None) -> None:
    if max_text is not None and len(value) > max_text:
        raise _RefusedError(f"at most {max_text} characters")
    if _UNSTORABLE.search(value):
        raise _RefusedError("text without NUL characters and lone surrogates")


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise _RefusedError("text in quotes")
    return value


def _integer(value: Any) -> int:
    if isinstance(value, float) and value.is_integer() and abs(value) <= 2**53:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _RefusedError("an integer without quotes")
    if not -(2**63) <= value < 2**63:
        raise _RefusedError("an integer of at most 64 bits")
    return value


def _number(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise _RefusedError("a finite number without quotes")


def _decimal(value: Any) -> Decimal:
    number: Decimal | None = None
    try:
        match value:
            case bool():
                pass
            case int() if value.bit_length() <= 4 * MAX_DIGITS:
                number = Decimal(value)
            case float():
                number = Decimal(repr(value))
            case str() if _DECIMAL.fullmatch(value.strip()):
                number = Decimal(value.strip())
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite():
        raise _RefusedError('a decimal number such as 12.5 or "12.50"')
    if abs(number.adjusted()) > MAX_DIGITS or len(number.as_tuple().digits) > MAX_DIGITS:
        raise _RefusedError(f"a decimal number of at most {MAX_DIGITS} digits")
    return number


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _RefusedError("true or false without quotes")
    return value


def _date(value: Any) -> date:
    found = plain_date(value)
    if found is None:
        raise _RefusedError('a date such as "2024-12-31"')
    return found


def _datetime(value: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(_string(value))
        if not 2 <= moment.year <= 9998:  # beyond, a change of time zone overflows
            raise ValueError
        if settings.USE_TZ:
            return moment if timezone.is_aware(moment) else timezone.make_aware(moment)
        return moment if timezone.is_naive(moment) else timezone.make_naive(moment)
    except (ValueError, _RefusedError):
        raise _RefusedError('a date and time such as "2024-12-31T23:59:00"') from None


def _time(value: Any) -> time:
    try:
        moment = time.fromisoformat(_string(value))
    except (ValueError, _RefusedError):
        moment = None
    if moment is None or moment.tzinfo is not None:
        raise _RefusedError('a time of day such as "23:59:00"')
    return moment


def _duration(value: Any) -> timedelta:
    length: timedelta | None = None
    try:
        if isinstance(value, str):
            length = parse_duration(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            length = timedelta(seconds=value)
    except (OverflowError, ValueError):
        length = None
    if length is None or abs(length) > _LONGEST:
        raise _RefusedError('seconds, or a duration such as "1 12:00:00" or "P1DT12H"')
    return length


def _uuid(value: Any) -> uuid.UUID:
    try:
        return uuid.UUID(_string(value))
    except (ValueError, _RefusedError):
        raise _RefusedError('a UUID such as "3f2504e0-4f89-11d3-9a0c-0305e82c3301"') from None


def _json(value: Any, depth: int = 0) -> Any:
    match value:
        case str():
            _check_text(value, None)
            return value
        case None | bool():
            return value
        case int() | float():
            return _integer(value) if isinstance(value, int) else _number(value)
        case _ if depth >= MAX_JSON_DEPTH:
            raise _RefusedError(f"JSON of at most {MAX_JSON_DEPTH} levels")
        case Mapping():
            return {_json(_string(key)): _json(item, depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [_json(item, depth + 1) for item in value]
    raise _RefusedError("a JSON value")


def _binary(value: Any) -> bytes:
    head, _, body = _string(value).partition(":")
    try:
        if head == "base64":
            return base64.b64decode(body, validate=True)
    except binascii.Error:
        pass
    raise _RefusedError('"base64:" and the bytes in Base64')


_COERCE: Final[Mapping[FieldType, Callable[[Any], Any]]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "decimal": _decimal,
    "boolean": _boolean,
    "date": _date,
    "datetime": _datetime,
    "time": _time,
    "duration": _duration,
    "uuid": _uuid,
    "json": _json,
    "binary": _binary,
}
