"""The entry point: what this distribution offers to gm-chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gm_chat.plugin import ProviderSpec, hookimpl
from gm_chat_provider_ollama.provider import OllamaProvider

if TYPE_CHECKING:
    from collections.abc import Iterable

GM_CHAT_CONTRACT = 1


@hookimpl
def gm_chat_providers() -> Iterable[ProviderSpec]:
    """Offer the provider ``ollama``."""
    yield ProviderSpec(
        name="ollama",
        build=OllamaProvider,
        capabilities=OllamaProvider.capabilities,
        required_extra=OllamaProvider.required_extra,
        check=OllamaProvider.check_configuration,
    )
