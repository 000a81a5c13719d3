"""The entry point: what this distribution offers to gm-chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gm_chat.plugin import ProviderSpec, hookimpl
from gm_chat_provider_openai.provider import OpenAIProvider

if TYPE_CHECKING:
    from collections.abc import Iterable

GM_CHAT_CONTRACT = 1


@hookimpl
def gm_chat_providers() -> Iterable[ProviderSpec]:
    """Offer the provider ``openai``."""
    yield ProviderSpec(
        name="openai",
        build=OpenAIProvider,
        capabilities=OpenAIProvider.capabilities,
        required_extra=OpenAIProvider.required_extra,
        check=OpenAIProvider.check_configuration,
    )
