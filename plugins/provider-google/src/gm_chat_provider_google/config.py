"""The keys of ``provider_config`` that this provider reads, with their defaults."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from gm_chat.providers.configuration import ProviderConfig, check_count

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["GoogleConfig"]

_MODEL: Final = re.compile(r"(?!.*\.\.)[\w.:@/-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoogleConfig(ProviderConfig):
    """Validated configuration. (Specification: "Provider adapters".)

    ``base_url``: without the version of the API, which the SDK adds. ``max_output_tokens``: thinking counts too.
    ``thinking_budget``: tokens for thinking; 0 turns it off, -1 leaves the amount to the model.
    ``None`` leaves either to the server.
    """

    example_url: ClassVar[str] = "http://127.0.0.1:8000"

    model: str = "gemini-2.5-flash"
    max_output_tokens: int | None = None
    thinking_budget: int | None = None

    @classmethod
    def check(cls, given: Mapping[str, Any]) -> None:
        """Check the numbers of tokens, and that ``model`` can stand in the path of an address."""
        check_count(given, "max_output_tokens", of="tokens")
        check_count(given, "thinking_budget", of="tokens", minimum=-1)
        if "model" in given and not _MODEL.fullmatch(given["model"]):
            raise ValueError(
                "provider_config['model'] is no name of a model: expected one such as 'gemini-2.5-flash', or a path "
                "such as 'publishers/google/models/gemini-2.5-flash'"
            )
