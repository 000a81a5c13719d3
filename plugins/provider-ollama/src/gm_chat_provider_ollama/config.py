"""The keys of ``provider_config`` that this provider reads, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gm_chat.providers.configuration import ProviderConfig, check_count, is_http_url
from gm_chat.providers.ollama import OllamaBaseUrlError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OllamaConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OllamaConfig(ProviderConfig):
    """Validated configuration. (Specification: "Provider adapters".)

    ``num_ctx``: the context window in tokens. 0 leaves it to the server, whose own is 4,096 on most machines: too few
    for tools and a few results, and what exceeds it is cut silently.
    """

    model: str = "gemma4:e4b"
    base_url: str = "http://127.0.0.1:11434"
    num_ctx: int = 16_384

    @classmethod
    def check_base_url(cls, url: object) -> None:
        """Raise :class:`OllamaBaseUrlError`, for user names and passwords too: the SDK drops them."""
        if not is_http_url(url) or "@" in urlsplit(str(url)).netloc:
            raise OllamaBaseUrlError(url)

    @classmethod
    def check(cls, given: Mapping[str, Any]) -> None:
        """Check ``num_ctx``."""
        check_count(given, "num_ctx", of="tokens", minimum=0)
