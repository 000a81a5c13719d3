"""Reading JSON values as a wire format has them.

Adapters read plain values and not an SDK's models: servers that imitate an API leave keys out or send null, for which
the models have no form, and building a model for each chunk costs many times what reading it does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gm_chat.providers.arguments import finite, refuse_constant
from gm_chat.providers.base import ProviderMalformedError

__all__ = ["array_of", "count_of", "is_count", "object_of", "text_of", "value_of"]

# One for all: json.loads() makes a new one for each call that asks for more than the default.
_DECODER: Final = json.JSONDecoder(parse_constant=refuse_constant, parse_float=finite)


def value_of(data: bytes) -> Any:
    """Return the value that a whole piece of JSON is. Raise :class:`ProviderMalformedError` for anything else.

    What is not JSON: NaN and Infinity, numbers that overflow to it, wrong UTF-8, and nesting that has no end.
    """
    try:
        return _DECODER.decode(data.decode())
    except (ValueError, RecursionError) as error:
        raise ProviderMalformedError(f"the stream holds what is not JSON ({error}): {data[:80]!r}") from error


def object_of(value: object, what: str) -> Mapping[str, Any]:
    """Return an object; null counts as an empty one. Raise :class:`ProviderMalformedError` for anything else."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ProviderMalformedError(f"{what} is {value!r:.80}: expected a JSON object")
    return value


def array_of(value: object, what: str) -> Sequence[Any]:
    """Return an array; null counts as an empty one. Raise :class:`ProviderMalformedError` for anything else."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ProviderMalformedError(f"{what} is {value!r:.80}: expected an array")
    return value


def text_of(value: object, what: str) -> str:
    """Return a string; null counts as an empty one. Raise :class:`ProviderMalformedError` for anything else."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ProviderMalformedError(f"{what} is {value!r:.80}: expected a string")
    return value


def is_count(value: object) -> bool:
    """Whether it is a whole number, 0 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def count_of(value: object) -> int:
    """Return a number of tokens; whatever is none counts as 0, since usage is no reason to lose an answer."""
    return value if isinstance(value, int) and is_count(value) else 0
