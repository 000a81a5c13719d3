"""The keys of ``provider_config`` that this provider reads, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from gm_chat.providers.configuration import check_seconds, check_text, known_values, shown
from gm_chat.providers.ollama import OllamaBaseUrlError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OllamaConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OllamaConfig:
    """Validated configuration. (Specification: "Provider adapters".)

    ``timeout_seconds``: how long the SDK waits for a connection, and for each piece of the answer. ``num_ctx``: the
    context window in tokens; ``None`` leaves it to the server, whose default is small and cuts silently.
    """

    model: str = "gemma4:e4b"
    base_url: str = "http://127.0.0.1:11434"
    timeout_seconds: float = 60.0
    num_ctx: int | None = None

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Self:
        """Read ``provider_config``; raise ``ValueError`` naming the key that is unknown or unusable."""
        given = known_values(config, cls.__dataclass_fields__)
        check_text(given, "model")
        check_seconds(given, "timeout_seconds")
        tokens = given.get("num_ctx", 1)
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
            raise ValueError(
                f"provider_config['num_ctx'] is {shown(tokens)}: expected a whole number of tokens above 0"
            )
        if "base_url" in given:
            _check_base_url(given["base_url"])
        return cls(**given)


def _check_base_url(url: object) -> None:
    if not isinstance(url, str) or any(character.isspace() for character in url):
        raise OllamaBaseUrlError(url)
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise OllamaBaseUrlError(url) from None
    if not usable or parts.query or parts.fragment or "@" in parts.netloc:
        raise OllamaBaseUrlError(url)
