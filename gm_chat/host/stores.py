"""Rate-limit stores: guarded, and the one that the setting ``rate_limit["store"]`` names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gm_chat.host.guards import attributed, timed
from gm_chat.settings import ChatConfigurationError, suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gm_chat.host.facade import PluginHost
    from gm_chat.host.problems import Origin
    from gm_chat.plugin.charges import Charge, Tally
    from gm_chat.plugin.protocols import RateLimitStore
    from gm_chat.plugin.specs import RateLimitStoreSpec

__all__ = ["STORE_SECONDS", "GuardedStore", "chosen_store"]

STORE_SECONDS: Final = 3.0
"""What a store may take for one answer."""

_EXTRAS: Final = {"redis": "chat-redis-limits"}
"""The extra of gm-chat that brings the store of each name."""


class GuardedStore:
    """A store whose failures name its plugin, and which answers within :data:`STORE_SECONDS` or fails."""

    def __init__(self, origin: Origin, name: str, store: RateLimitStore) -> None:
        """Guard ``store``, which ``origin`` offers as ``name``."""
        self.store: Final = store
        self._take = attributed(origin, f"rate-limit store {name!r}, take", timed(STORE_SECONDS, store.take))
        self._correct = attributed(origin, f"rate-limit store {name!r}, correct", timed(STORE_SECONDS, store.correct))

    async def take(self, charges: Sequence[Charge], *, window_seconds: int) -> Tally:
        """See :meth:`gm_chat.plugin.RateLimitStore.take`."""
        return await self._take(charges, window_seconds=window_seconds)

    async def correct(self, charges: Sequence[Charge], *, window_seconds: int, at: float) -> Tally:
        """See :meth:`gm_chat.plugin.RateLimitStore.correct`."""
        return await self._correct(charges, window_seconds=window_seconds, at=at)


def chosen_store(name: str, host: PluginHost) -> RateLimitStoreSpec:
    """The store of that name, or :class:`~gm_chat.settings.ChatConfigurationError` that says what to type."""
    if name in host.rate_limit_stores:
        return host.rate_limit_stores[name]
    hint = suggestion(name, [*host.rate_limit_stores, *_EXTRAS])
    if name in _EXTRAS:
        hint = f"Type: pip install 'gm-chat[{_EXTRAS[name]}]'"
    for problem in host.problems:
        if problem.hook == "gm_chat_rate_limit_stores":
            hint = str(problem)
    raise ChatConfigurationError(f"rate_limit['store'] names {name!r}, which no plugin offers. {hint}")
