"""Reading JSON values as a wire format has them.

Adapters read plain values and not an SDK's models: servers that imitate an API leave keys out or send null, for which
the models have no form, and building a model for each chunk costs many times what reading it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gm_chat.providers.base import ProviderMalformedError

__all__ = ["array_of", "count_of", "is_count", "object_of", "text_of"]


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
