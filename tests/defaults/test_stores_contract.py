"""The stores ``cache`` and ``database`` keep the contract, in each cache that can count for one process at least."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import override_settings
from testproject.redis_server import required_redis

from gm_chat.defaults.cache_store import CacheRateLimitStore
from gm_chat.defaults.database_store import DatabaseRateLimitStore
from gm_chat.plugin import RateLimitStoreSpec, hookimpl
from gm_chat.testing.hook_contracts import RateLimitStoresContract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.django_db(transaction=True)

BACKENDS = {
    "local memory": "locmem.LocMemCache",
    "files": "filebased.FileBasedCache",
    "database": "db.DatabaseCache",
    "redis": "redis.RedisCache",
}


class Store:
    """A plugin that offers one store alone."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self._build = build

    @hookimpl
    def gm_chat_rate_limit_stores(self) -> list[RateLimitStoreSpec]:
        return [RateLimitStoreSpec(name="tried", build=self._build)]


class TestCache(RateLimitStoresContract):
    windows = "fixed"
    plugin = Store(CacheRateLimitStore)

    @pytest.fixture(autouse=True, params=BACKENDS)
    def _cache(self, request: pytest.FixtureRequest, tmp_path: Path, transactional_db: None) -> Iterator[None]:
        kind = request.param
        places = {"database": "contract_cache", "redis": required_redis() if kind == "redis" else ""}
        cache = {
            "BACKEND": f"django.core.cache.backends.{BACKENDS[kind]}",
            "LOCATION": places.get(kind, str(tmp_path)),
            "KEY_PREFIX": str(tmp_path),
        }
        with override_settings(CACHES={"default": cache}):
            if kind == "database":
                call_command("createcachetable", verbosity=0)
            yield
            if kind == "database":
                with connection.cursor() as cursor:
                    cursor.execute("DROP TABLE contract_cache")


class TestDatabase(RateLimitStoresContract):
    windows = "fixed"
    plugin = Store(DatabaseRateLimitStore)
