"""What a model wrote, read strictly: one JSON object of bounded size, or a sentence that says what is wrong with it.

Plans, an executor's actions and answers all pass through here before anybody looks inside. Python's own reader takes
the last of two equal keys, knows ``NaN``, and lets nesting end in a ``RecursionError``; none of that reaches a caller.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NoReturn

__all__ = [
    "MAX_BITS",
    "MAX_CHARACTERS",
    "MAX_DEPTH",
    "MAX_VALUES",
    "DefectError",
    "UnreadableError",
    "plain_json",
    "read_object",
    "shown",
]

MAX_CHARACTERS: Final = 64_000
"""Characters in all, of a text before it is read, and of the texts and keys inside a value."""

MAX_DEPTH: Final = 16
MAX_VALUES: Final = 4_000
"""Objects, arrays and scalars in all; one that stands in several places counts in each."""

MAX_BITS: Final = 1_024
"""The size of an integer."""

_SHOWN: Final = 60
_TOO_LONG: Final = "a number with too many digits"
_UNSAFE: Final = re.compile("[\x00\ud800-\udfff]")


class DefectError(ValueError):
    """What a model wrote cannot be used. ``detail`` tells it what to mend, and quotes little of what it wrote."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class UnreadableError(DefectError):
    """It is not one JSON object of bounded size."""


def read_object(text: str) -> dict[str, Any]:
    """Return the one JSON object that ``text`` consists of; a Markdown fence around it is no fault."""
    if len(text) > MAX_CHARACTERS:
        raise UnreadableError(f"the text has {len(text)} characters, more than the {MAX_CHARACTERS} allowed")
    try:
        value = json.loads(_unfenced(text), object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError:
        raise UnreadableError(f"the JSON is nested deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        raise UnreadableError(f"the text is not JSON: {error.msg} at character {error.pos}") from None
    except UnreadableError:
        raise
    except ValueError:  # an integer of more digits than Python converts
        raise UnreadableError(f"the JSON holds {_TOO_LONG}") from None
    if not isinstance(value, dict):
        raise UnreadableError(f"the text must be one JSON object, not {_kind(value)}")
    return plain_json(value)  # type: ignore[no-any-return]  # a dict stays one


def plain_json(value: object) -> Any:
    """Return a copy of a JSON value in exactly JSON's types, or raise :class:`UnreadableError`.

    The size is counted while it is copied, so that a value that is too large, or holds itself, ends at its bounds.
    """
    return _Copy().of(value, "$", 0)


def shown(value: object) -> str:
    """The beginning of a value that :func:`plain_json` has taken, as JSON, for a message to the model."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


class _Copy:
    """Copies one value and counts."""

    def __init__(self) -> None:
        self._values = 0
        self._characters = 0

    def of(self, value: object, place: str, depth: int) -> Any:
        self._values += 1
        if self._values > MAX_VALUES:
            raise UnreadableError(f"there are more than {MAX_VALUES} values")
        # `is`, and the methods of the base class: a subclass may do anything when it is asked something.
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            if value.bit_length() > MAX_BITS:  # type: ignore[attr-defined]  # an int, as just tested
                raise UnreadableError(f"{place} is {_TOO_LONG}")
            return value
        if kind is float:
            if not math.isfinite(value):  # type: ignore[arg-type]  # a float, as just tested
                raise UnreadableError(f"{place} is {value!r}, which is no JSON number")
            return value
        if issubclass(kind, str):
            return self._text(value, place)
        if depth >= MAX_DEPTH and issubclass(kind, dict | list):
            raise UnreadableError(f"the JSON is nested deeper than {MAX_DEPTH} levels")
        if issubclass(kind, dict):
            return self._object(value, place, depth)
        if issubclass(kind, list):
            items: list[Any] = list.copy(value)  # type: ignore[arg-type]  # as just tested
            return [self.of(item, f"{place}[{number}]", depth + 1) for number, item in enumerate(items)]
        raise UnreadableError(f"{place} is {_kind(value)}, which JSON does not have")

    def _object(self, value: Any, place: str, depth: int) -> dict[str, Any]:
        copy = {}
        for key, item in list(dict.items(value)):
            if not issubclass(type(key), str):
                raise UnreadableError(f"{place} has {_kind(key)} as a key; keys are texts")
            name = self._text(key, place)
            copy[name] = self.of(item, f"{place}.{name[:_SHOWN]}", depth + 1)
        return copy

    def _text(self, value: Any, place: str) -> str:
        text = str.__str__(value)
        self._characters += len(text)
        if self._characters > MAX_CHARACTERS:
            raise UnreadableError(f"the texts have more than {MAX_CHARACTERS} characters in all")
        if _UNSAFE.search(text):
            raise UnreadableError(f"{place} holds a NUL or half of a character (a lone surrogate)")
        return text


def _unfenced(text: str) -> str:
    stripped = text.strip()
    first, newline, rest = stripped.partition("\n")
    if newline and first in {"```", "```json"} and rest.endswith("```"):
        return rest.removesuffix("```")
    return stripped


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise UnreadableError(f"the key {shown(twice)} stands twice in one object")
    return members


def _no_constant(name: str) -> NoReturn:
    raise UnreadableError(f"{name} is no JSON number")


def _kind(value: object) -> str:
    names = {dict: "an object", list: "an array", type(None): "null", bool: "a truth value", str: "a text"}
    return names.get(type(value)) or f"a value of type {type(value).__name__}"
