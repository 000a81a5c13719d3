"""One of many processes that take from one budget at once: ``python -m testproject.counting STORE AMOUNT LIMIT``.

Says ``ready``, waits for a line, takes a hundred times side by side, and says how often that was granted and what
counts then. STORE is ``redis`` (the plugin's store), ``cache`` (on a Redis cache), both at ``COUNTING_URL``, or
``database`` in the PostgreSQL database ``GM_CHAT_TEST_DATABASE``.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from gm_chat.plugin import Charge

if TYPE_CHECKING:
    from gm_chat.plugin import RateLimitStore

ROOT = Path(__file__).resolve().parents[2]
TAKES = 100
KEY = "user:acceptance:requests"


def store_of(kind: str) -> RateLimitStore:
    if kind == "redis":
        from gm_chat_ratelimit_redis.store import RedisRateLimitStore

        return RedisRateLimitStore(os.environ["COUNTING_URL"], timeout_seconds=30)
    import django

    if kind == "database":
        from gm_chat.persistence import threads

        # PostgreSQL grants a hundred connections; 32 processes of one thread each leave room for others.
        threads._pool._size = 1
        django.setup()
        from gm_chat.defaults.database_store import DatabaseRateLimitStore

        return DatabaseRateLimitStore()
    from django.conf import settings

    backend = "django.core.cache.backends.redis.RedisCache"
    settings.configure(
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "gm_chat"],
        CACHES={"default": {"BACKEND": backend, "LOCATION": os.environ["COUNTING_URL"]}},
    )
    django.setup()
    from gm_chat.defaults.cache_store import CacheRateLimitStore

    return CacheRateLimitStore()


async def take_all(store: RateLimitStore, amount: int, limit: int) -> str:
    charge = Charge(KEY, amount, limit)
    tallies = await asyncio.gather(*(store.take([charge], window_seconds=10**9) for _ in range(TAKES)))
    return f"{sum(tally.granted for tally in tallies)} {max(tally.standings[0].used for tally in tallies)}"


def race(kind: str, *, amount: int, limit: int, processes: int, **environment: str) -> tuple[int, int]:
    """Let so many processes take at once; return how often it was granted, and what counts in the end."""
    command = [sys.executable, "-m", "testproject.counting", kind, str(amount), str(limit)]
    paths = [ROOT / "tests", ROOT, ROOT / "plugins" / "ratelimit-redis" / "src"]
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), **environment}
    pipe = subprocess.PIPE
    with ExitStack() as stack:
        runners = [
            stack.enter_context(subprocess.Popen(command, env=surroundings, stdin=pipe, stdout=pipe, text=True))
            for _ in range(processes)
        ]
        for runner in runners:
            stack.callback(runner.kill)
        for runner in runners:
            assert runner.stdout is not None
            assert runner.stdout.readline() == "ready\n"
        for runner in runners:
            assert runner.stdin is not None
            runner.stdin.write("go\n")
            runner.stdin.flush()
        answers = [runner.communicate(timeout=240)[0].split() for runner in runners]
    return sum(int(granted) for granted, _ in answers), max(int(used) for _, used in answers)


if __name__ == "__main__":
    chosen = store_of(sys.argv[1])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    sys.stdout.write(asyncio.run(take_all(chosen, int(sys.argv[2]), int(sys.argv[3]))) + "\n")
