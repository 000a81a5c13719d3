"""The entry point: what this distribution offers to gm-chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gm_chat.plugin import ProviderSpec, hookimpl
from gm_chat_provider_anthropic.provider import AnthropicProvider

if TYPE_CHECKING:
    from collections.abc import Iterable

GM_CHAT_CONTRACT = 1


@hookimpl
def gm_chat_providers() -> Iterable[ProviderSpec]:
    """Offer the provider ``anthropic``."""
    yield ProviderSpec(
        name="anthropic",
        build=AnthropicProvider,
        capabilities=AnthropicProvider.capabilities,
        required_extra=AnthropicProvider.required_extra,
        check=AnthropicProvider.check_configuration,
    )
