"""The keys of ``provider_config`` that this provider reads, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass

from gm_chat.providers.configuration import ProviderConfig

__all__ = ["OpenAIConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIConfig(ProviderConfig):
    """Validated configuration. (Specification: "Provider adapters".)

    Small models call tools more reliably at the ``temperature`` 0.
    """

    model: str = "gpt-4.1-mini"
