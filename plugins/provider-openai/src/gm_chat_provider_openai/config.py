"""The keys of ``provider_config`` that this provider reads, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from gm_chat.providers.configuration import check_seconds, check_text, known_values, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OpenAIConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIConfig:
    """Validated configuration. (Specification: "Provider adapters".)

    ``api_key`` and ``base_url``: ``None`` leaves them to the SDK's own environment variables.
    ``timeout_seconds``: how long the SDK waits for a connection, and for each piece of the answer.
    ``temperature``: 0 to 2; ``None`` leaves it to the server. Small models call tools more reliably at 0.
    """

    model: str = "gpt-4.1-mini"
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = field(default=None, repr=False)
    timeout_seconds: float = 60.0
    temperature: float | None = None

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Self:
        """Read ``provider_config``; raise ``ValueError`` naming the key that is unknown or unusable."""
        given = known_values(config, cls.__dataclass_fields__)
        check_text(given, "model", "api_key", "base_url")
        check_seconds(given, "timeout_seconds")
        temperature = given.get("temperature", 0)
        if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not 0 <= temperature <= 2:
            raise ValueError(f"provider_config['temperature'] is {shown(temperature)}: expected a number from 0 to 2")
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
