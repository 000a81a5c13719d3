"""The core's rate-limit stores count for many processes at once: the cache in Redis, the database in PostgreSQL.

That of the plugin ``ratelimit-redis`` passes the same in the plugin's own tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import psycopg
import pytest
from testproject.counting import ROOT, race
from testproject.redis_server import PrivateRedis, required_module

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES = [(1, 150, 150, 150), (7, 1000, 143, 1001)]
MANY = [(1, 1000, 1000, 1000), (7, 6995, 1000, 7000)]


@pytest.fixture
def redis_url() -> Iterator[str]:
    required_module("redis")
    with PrivateRedis() as server:
        yield server.url


@pytest.fixture
def database() -> Iterator[dict[str, str]]:
    """What processes need to know of an empty database with the chat's tables."""
    host, user = os.environ.get("PGHOST", "127.0.0.1"), os.environ.get("PGUSER", "postgres")
    try:
        admin = psycopg.connect(dbname="postgres", user=user, host=host, autocommit=True, connect_timeout=3)
    except psycopg.OperationalError as error:
        reason = f"PostgreSQL cannot be reached: {str(error).splitlines()[0]}"
        if "postgres" in os.environ.get("GM_CHAT_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
    name = f"gm_chat_counting_{os.getpid()}"
    admin.execute(f'CREATE DATABASE "{name}"')
    environment = {"DJANGO_SETTINGS_MODULE": "testproject.worker_settings", "GM_CHAT_TEST_DATABASE": name}
    paths = os.pathsep.join([str(ROOT / "tests"), str(ROOT)])
    try:
        command = [sys.executable, "-m", "django", "migrate", "gm_chat", "--verbosity", "0"]
        subprocess.run(command, env={**os.environ, **environment, "PYTHONPATH": paths}, check=True, timeout=120)
        yield environment
    finally:
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
        admin.close()


@pytest.mark.parametrize(
    ("amount", "limit", "granted", "counted", "processes"),
    [
        *((*case, 4) for case in CASES),
        *(pytest.param(*case, 32, marks=pytest.mark.exhaustive) for case in MANY),
    ],
)
class TestManyProcesses:
    def test_in_a_redis_cache(
        self, redis_url: str, amount: int, limit: int, granted: int, counted: int, processes: int
    ) -> None:
        seen, used = race("cache", amount=amount, limit=limit, processes=processes, COUNTING_URL=redis_url)
        assert (seen, used >= counted) == (granted, True)

    def test_in_a_postgresql_database(
        self, database: dict[str, str], amount: int, limit: int, granted: int, counted: int, processes: int
    ) -> None:
        assert race("database", amount=amount, limit=limit, processes=processes, **database) == (granted, counted)
