"""Reading ``provider_config``: what the adapters' configurations have in common."""

from __future__ import annotations

import difflib
import math
import os
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, get_args
from urllib.parse import urlsplit

from gm_chat.providers.base import CheckWarning

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = [
    "HOST_KEYS",
    "NO_KEY",
    "ProviderConfig",
    "ToolCallFormat",
    "check_choice",
    "check_count",
    "check_number",
    "check_seconds",
    "check_text",
    "is_http_url",
    "known_values",
    "shown",
]

ToolCallFormat = Literal["native", "text"]

HOST_KEYS: Final = frozenset({"stream_timeout_seconds", "max_retries"})
"""Keys that gm-chat itself reads from the same mapping, whatever the provider."""


NO_KEY: Final = "not-needed"
"""For an SDK that insists on a key, where a server of one's own is configured without any: such servers ignore it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """The keys that every adapter reads. An adapter derives its own, with its defaults and further keys.

    ``api_key`` and ``base_url``: ``None`` leaves them to the SDK, which has environment variables for them.
    ``timeout_seconds``: how long the SDK waits for a connection, and for each piece of the answer. ``temperature``:
    0 to :attr:`max_temperature`; ``None`` leaves it to the server. ``tool_call_format``: "text" lets
    :mod:`gm_chat.providers.text_calls` read calls that a model writes as text.

    An instance is immutable and hashable, hence a key for :class:`~gm_chat.providers.pool.ClientPool`; its ``repr``
    shows neither key nor address.
    """

    max_temperature: ClassVar[float] = 2.0
    example_url: ClassVar[str] = "http://127.0.0.1:8000/v1"

    model: str
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = field(default=None, repr=False)
    timeout_seconds: float = 60.0
    temperature: float | None = None
    tool_call_format: ToolCallFormat = "native"

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Self:
        """Read ``provider_config``; raise ``ValueError`` naming the key that is unknown or unusable."""
        given = known_values(config, [item.name for item in fields(cls)])
        check_text(given, "model", "api_key")
        check_seconds(given, "timeout_seconds")
        check_number(given, "temperature", maximum=cls.max_temperature)
        check_choice(given, "tool_call_format", get_args(ToolCallFormat))
        if "base_url" in given:
            cls.check_base_url(given["base_url"])
        cls.check(given)
        return cls(**given)

    def missing_key(self, *variables: str, own_server: str | None = None) -> list[CheckWarning]:
        """Return a warning if there is no key: neither here nor in those of the SDK's ``variables`` that are set here.

        The process that calls the service may have one. A server of one's own, which ``base_url`` or the variable
        ``own_server`` names, may want none.
        """
        if self.api_key or self.base_url or any(map(os.environ.get, [*variables, *filter(None, [own_server])])):
            return []
        return [
            CheckWarning(
                id="gm_chat.W012",
                message="there is no key, neither in provider_config['api_key'] nor in this process's environment.",
                hint=f"Where the chat runs, type: export {variables[0]}=... For a server of your own that wants none, "
                "set provider_config['base_url'].",
            )
        ]

    @classmethod
    def check_base_url(cls, url: object) -> None:
        """Raise ``ValueError`` for an address that cannot be one. It may hold a password and is not shown."""
        if not is_http_url(url):
            raise ValueError(
                "provider_config['base_url'] is not an http:// or https:// address without query: expected one such "
                f"as {cls.example_url!r}"
            )

    @classmethod
    def check(cls, given: Mapping[str, Any]) -> None:
        """Raise ``ValueError`` for an unusable value of a key that only this adapter has. Empty ones are left out."""


def known_values(config: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return the values given for ``known`` keys; raise ``ValueError`` for a key that nobody reads.

    ``None`` and an empty string count as not given, so that an unset environment variable is no value.
    """
    keys = HOST_KEYS.union(known)
    for key in config.keys() - keys:
        close = difflib.get_close_matches(str(key), keys, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; known keys: {', '.join(sorted(keys))}"
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
        if not _is_number(value) or not 0 < value < math.inf:
            raise ValueError(f"provider_config[{key!r}] is {shown(value)}: expected a number of seconds above 0")


def check_number(values: Mapping[str, Any], key: str, *, maximum: float) -> None:
    """Raise ``ValueError`` unless ``key`` is a number from 0 to ``maximum``, or not given."""
    value = values.get(key, 0)
    if not _is_number(value) or not 0 <= value <= maximum:
        raise ValueError(f"provider_config[{key!r}] is {shown(value)}: expected a number from 0 to {maximum:g}")


def check_count(values: Mapping[str, Any], key: str, *, of: str, minimum: int = 1) -> None:
    """Raise ``ValueError`` unless ``key`` is a whole number of ``of`` ("tokens"), or not given."""
    value = values.get(key, minimum)
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        expected = f"a whole number of {of}, {minimum} or more"
        raise ValueError(f"provider_config[{key!r}] is {shown(value)}: expected {expected}")


def check_choice(values: Mapping[str, Any], key: str, choices: Collection[str]) -> None:
    """Raise ``ValueError`` unless ``key`` is one of ``choices``, or not given."""
    if key in values and values[key] not in choices:
        expected = " or ".join(map(repr, choices))
        raise ValueError(f"provider_config[{key!r}] is {shown(values[key])}: expected {expected}")


def is_http_url(url: object) -> bool:
    """Whether ``url`` can be the address of an HTTP API, to which paths are appended: no query, no fragment."""
    if not isinstance(url, str) or any(character.isspace() for character in url):
        return False
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return usable and not (parts.query or parts.fragment)


def shown(value: object) -> str:
    """A value in an error message: of what may hold a secret only the type."""
    harmless = value is None or isinstance(value, int | float)
    return repr(value) if harmless else f"of type {type(value).__name__}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
