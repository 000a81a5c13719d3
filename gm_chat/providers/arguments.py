"""Reading the arguments of a tool call: a JSON object, or words for the model about what was wrong with it.

Broken arguments are never repaired. A call whose arguments the output limit cut off may have lost the very condition
that made it harmless, so the adapter hands it on with an error and the host tells the model instead of running it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final, NoReturn

__all__ = ["CUT_OFF", "decode_arguments", "finite", "refuse_constant", "strict_json"]

CUT_OFF: Final = (
    "cut off: the output limit was reached before the arguments were complete, so the call was not run; "
    "send a shorter one"
)


def decode_arguments(raw: object, *, cut: bool = False) -> tuple[Mapping[str, Any], str | None]:
    """Return ``(arguments, None)``, or ``({}, error)`` with an error for the model.

    ``raw`` is what the wire carried: JSON text, an object that the SDK has decoded already, or nothing, which means
    "no arguments". ``cut`` says that the output limit, or a filter, ended the stream: then nothing is not ``{}``.
    """
    if isinstance(raw, Mapping):
        return dict(raw), None
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return ({}, CUT_OFF) if cut else ({}, None)
    if not isinstance(raw, str):
        return {}, _not_an_object(raw)
    try:
        value = strict_json(raw)
    except ValueError as error:
        return (
            {},
            CUT_OFF if cut else f"not JSON: {error}; the call was not run, send its arguments as one JSON object",
        )
    if value is None:
        return {}, None
    return (value, None) if isinstance(value, dict) else ({}, _not_an_object(value))


def strict_json(text: str) -> Any:
    """Return the value that ``text`` is; raise ``ValueError`` for what is not JSON, NaN and doubled keys included."""
    try:
        return _STRICT.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key, item in pairs:
        if key in value:  # which of two ids is the one to delete?
            raise ValueError(f"the key {key[:80]!r} stands twice in one object")
        value[key] = item
    return value


def refuse_constant(name: str) -> NoReturn:
    """Read NaN or Infinity, for the ``parse_constant`` of a ``JSONDecoder``: raise ``ValueError``."""
    raise ValueError(f"{name} is not a JSON value")


def finite(digits: str) -> float:
    """Read a number, for the ``parse_float`` of a ``JSONDecoder``; raise ``ValueError`` for one that overflows."""
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:80]} is too large a number")
    return number


def _not_an_object(value: object) -> str:
    kind = {str: "a string", list: "an array", bool: "a boolean"}.get(type(value), "a number")
    return f"not a JSON object: the arguments are {kind}; the call was not run, send them as one JSON object"


_STRICT: Final = json.JSONDecoder(parse_constant=refuse_constant, parse_float=finite, object_pairs_hook=_object)
