"""The entry point: what this distribution offers to gm-chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gm_chat.plugin import ProviderSpec, hookimpl
from gm_chat_provider_offline.provider import OfflineProvider

if TYPE_CHECKING:
    from collections.abc import Iterable

GM_CHAT_CONTRACT = 1


@hookimpl
def gm_chat_providers() -> Iterable[ProviderSpec]:
    """Offer the provider ``offline``."""
    yield ProviderSpec(
        name="offline",
        build=OfflineProvider,
        capabilities=OfflineProvider.capabilities,
        check=OfflineProvider.check_configuration,
    )
