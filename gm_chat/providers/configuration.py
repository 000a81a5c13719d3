"""Reading ``provider_config``: what the adapters' configurations have in common."""

from __future__ import annotations

import difflib
import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["check_seconds", "check_text", "known_values", "shown"]

_HOST_KEYS: Final = frozenset({"stream_timeout_seconds"})
"""Keys that gm-chat itself reads from the same mapping."""


def known_values(config: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return the values given for ``known`` keys; raise ``ValueError`` for a key that nobody reads.

    ``None`` and an empty string count as not given, so that an unset environment variable is no value.
    """
    for key in config.keys() - set(known) - _HOST_KEYS:
        close = difflib.get_close_matches(str(key), known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; known keys: {', '.join(sorted(known))}"
        raise ValueError(f"provider_config has the unknown key {key!r}{hint}")
    return {key: value for key, value in config.items() if key in known and value is not None and value != ""}


def check_text(values: Mapping[str, Any], *keys: str) -> None:
    """Raise ``ValueError`` unless the given ones of ``keys`` are strings. The value, maybe a secret, is not shown."""
    for key in keys:
        if key in values and not isinstance(values[key], str):
            raise ValueError(f"provider_config[{key!r}] is of type {type(values[key]).__name__}: expected a string")


def check_seconds(values: Mapping[str, Any], *keys: str) -> None:
    """Raise ``ValueError`` unless the given ones of ``keys`` are finite numbers above 0."""
    for key in keys:
        value = values.get(key, 1)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise ValueError(f"provider_config[{key!r}] is {shown(value)}: expected a number of seconds above 0")


def shown(value: object) -> str:
    """A value in an error message: of what may hold a secret only the type."""
    harmless = value is None or isinstance(value, int | float)
    return repr(value) if harmless else f"of type {type(value).__name__}"
