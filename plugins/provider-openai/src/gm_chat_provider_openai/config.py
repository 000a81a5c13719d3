"""The keys of ``provider_config`` that this provider reads, with their defaults."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OpenAIConfig"]

_HOST_KEYS: Final = frozenset({"stream_timeout_seconds"})
"""Keys that gm-chat itself reads from the same mapping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIConfig:
    """Validated configuration. (Specification: "Provider adapters".)

    ``api_key`` and ``base_url``: ``None`` leaves them to the SDK's own environment variables.
    ``timeout_seconds``: how long the SDK waits for a connection, and for each piece of the answer.
    """

    model: str = "gpt-4.1-mini"
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    timeout_seconds: float = 60.0

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Self:
        """Read ``provider_config``; raise ``ValueError`` naming the key that is unknown or unusable."""
        known = cls.__dataclass_fields__.keys()
        for key in config.keys() - known - _HOST_KEYS:
            close = difflib.get_close_matches(str(key), known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; known keys: {', '.join(sorted(known))}"
            raise ValueError(f"provider_config has the unknown key {key!r}{hint}")
        given = {key: value for key, value in config.items() if key in known and value not in (None, "")}
        for key in ("model", "api_key", "base_url"):
            if not isinstance(given.get(key, ""), str):
                raise ValueError(f"provider_config[{key!r}] is a {type(given[key]).__name__}: expected a string")
        timeout = given.get("timeout_seconds", 1)
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
            raise ValueError(f"provider_config['timeout_seconds'] is {timeout!r}: expected a number of seconds above 0")
        if "base_url" in given and not _is_http_url(given["base_url"]):
            raise ValueError(
                "provider_config['base_url'] is not an http:// or https:// address: expected one such as "
                "'http://127.0.0.1:8000/v1'"
            )
        return cls(**given)


def _is_http_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
