"""The entry point: the plugin's settings and the store that it offers to gm-chat."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from gm_chat.plugin import RateLimitStoreSpec, hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gm_chat.plugin import RateLimitStore

__all__ = ["GM_CHAT_CONTRACT", "Options", "gm_chat_rate_limit_stores"]

GM_CHAT_CONTRACT: Final = 1
_SCHEMES: Final = ("redis://", "rediss://", "unix://")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The settings under ``plugins["ratelimit_redis"]``. ``url`` may hold a password, and is in no ``repr``."""

    url: str = field(default="redis://127.0.0.1:6379/0", repr=False)
    prefix: str = "gm_chat"
    timeout_seconds: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what redis-py would only notice when somebody asks."""
        url: object = self.url  # a setting may be anything
        if not isinstance(url, str) or not url.startswith(_SCHEMES):
            raise ValueError(f"'url' must begin with one of {', '.join(_SCHEMES)}")
        prefix: object = self.prefix
        if not isinstance(prefix, str) or set(prefix) & set("{}"):
            raise ValueError("'prefix' must be text without braces")
        seconds: object = self.timeout_seconds
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= 3:
            raise ValueError("'timeout_seconds' must be a number above 0 and at most 3")


@hookimpl
def gm_chat_rate_limit_stores(options: Options) -> Iterator[RateLimitStoreSpec]:
    """Offer the store ``redis``."""
    yield RateLimitStoreSpec(name="redis", build=partial(_build, options))


def _build(options: Options) -> RateLimitStore:
    # Imported here: a process that counts elsewhere, or not at all, needs no client.
    from gm_chat_ratelimit_redis.store import RedisRateLimitStore

    return RedisRateLimitStore(options.url, prefix=options.prefix, timeout_seconds=options.timeout_seconds)
