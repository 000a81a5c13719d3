"""Findings about the rate limit: who counts, whether that can count, and whose address a visitor's is taken for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings as django_settings
from django.core import checks
from django.core.cache import caches
from django.core.cache.backends.base import BaseCache, InvalidCacheBackendError
from django.core.cache.backends.dummy import DummyCache
from django.core.cache.backends.filebased import FileBasedCache
from django.core.cache.backends.locmem import LocMemCache

from gm_chat.engine.budgets import has_budgets
from gm_chat.host.problems import Failed, attempt
from gm_chat.host.stores import chosen_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gm_chat.host import PluginHost
    from gm_chat.settings import ChatSettings

__all__ = ["limit_deployment_findings", "limit_findings"]


def limit_findings(settings: ChatSettings, host: PluginHost) -> Iterator[checks.CheckMessage]:
    """What is amiss wherever the project runs: nothing that is needed can count."""
    limit = settings.rate_limit
    if not has_budgets(limit):
        return
    store = attempt(lambda: chosen_store(limit.store, host).build())
    if isinstance(store, Failed):
        yield checks.Error(
            f"The chat's rate limit cannot be counted. {store.text}",
            hint='GM_CHAT["rate_limit"]["store"] = "cache"',
            id="gm_chat.E002",
        )
    elif limit.store == "cache":
        cache = attempt(lambda: caches[limit.cache])
        if isinstance(cache, Failed) and isinstance(cache.error, InvalidCacheBackendError):
            yield checks.Error(
                f"rate_limit['cache'] is {limit.cache!r}, which cannot be used: {cache.text}",
                hint=f"One of those in CACHES: {', '.join(map(repr, caches.settings))}.",
                id="gm_chat.E002",
            )
        elif isinstance(cache, DummyCache):
            yield _cache_warning(limit.cache, cache, "keeps nothing: the chat's rate limits cannot be counted.")


def limit_deployment_findings(settings: ChatSettings) -> Iterator[checks.CheckMessage]:
    """What is amiss in production: several processes, and a proxy in front of them."""
    limit = settings.rate_limit
    if not has_budgets(limit):
        return
    cache = attempt(lambda: caches[limit.cache])
    if limit.store == "cache" and isinstance(cache, BaseCache) and not isinstance(cache, DummyCache):
        if isinstance(cache, LocMemCache):
            problem = "counts for one process only: each worker grants the chat's whole rate limit."
            yield _cache_warning(limit.cache, cache, problem)
        elif isinstance(cache, FileBasedCache) or type(cache).incr is BaseCache.incr:
            problem = "reads, then writes: workers lose counts of the chat's rate limits."
            yield _cache_warning(limit.cache, cache, problem)
    if not limit.trusted_proxies and (django_settings.SECURE_PROXY_SSL_HEADER or django_settings.USE_X_FORWARDED_HOST):
        yield checks.Warning(
            "Django is told of a proxy, and the chat is not: all anonymous visitors may count as one address, the "
            "proxy's, and share its rate limit.",
            hint='GM_CHAT["rate_limit"]["trusted_proxies"] = ["10.0.0.0/8"], the addresses that your proxies connect '
            'from, or ["unix"] for a socket in the file system. A server that takes the address from the proxy '
            "itself, as uvicorn does with --proxy-headers, needs none.",
            id="gm_chat.W015",
        )


def _cache_warning(alias: str, cache: BaseCache, problem: str) -> checks.CheckMessage:
    return checks.Warning(
        f"The {alias} cache ({type(cache).__name__}) {problem}",
        hint=f'CACHES["{alias}"] = {{"BACKEND": "django.core.cache.backends.redis.RedisCache", '
        '"LOCATION": "redis://127.0.0.1:6379"}, or count elsewhere: GM_CHAT["rate_limit"]["store"] = "database"',
        id="gm_chat.W008",
    )
