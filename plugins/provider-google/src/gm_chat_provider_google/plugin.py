"""The entry point: what this distribution offers to gm-chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gm_chat.plugin import ProviderSpec, hookimpl
from gm_chat_provider_google.provider import GeminiProvider

if TYPE_CHECKING:
    from collections.abc import Iterable

GM_CHAT_CONTRACT = 1


@hookimpl
def gm_chat_providers() -> Iterable[ProviderSpec]:
    """Offer the provider ``google``."""
    yield ProviderSpec(
        name="google",
        build=GeminiProvider,
        capabilities=GeminiProvider.capabilities,
        required_extra=GeminiProvider.required_extra,
        check=GeminiProvider.check_configuration,
    )
