"""Redis for tests: the one that runs on this machine, or one of a test's own, which it may stop."""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from types import TracebackType

URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")


def required_redis() -> str:
    """The URL of a Redis that answers; without one the test is skipped, or fails where it is required."""
    redis = required_module("redis")
    required_module("channels_redis")
    try:
        with redis.Redis.from_url(URL, socket_connect_timeout=3) as client:
            client.ping()
    except redis.RedisError as error:
        absent(f"Redis cannot be reached: {error}")
    return URL


def required_module(name: str) -> Any:
    """A module that the tests of Redis need: skip them without it, or fail as above."""
    try:
        return importlib.import_module(name)
    except ImportError:
        absent(f"{name} is not installed")


def absent(reason: str) -> NoReturn:
    if "redis" in os.environ.get("GM_CHAT_REQUIRE", "").split(","):
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=True)


class PrivateRedis:
    """A server on a port of its own, which keeps nothing on disk. :meth:`kill` it, and :meth:`start` it again."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> PrivateRedis:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        program = shutil.which("redis-server") or absent("redis-server is not installed")
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen([program, *options, "--loglevel", "warning"], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while True:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            assert self._process.poll() is None, "redis-server ended"
            assert time.monotonic() < deadline, "redis-server did not start"
            time.sleep(0.02)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def hang(self) -> None:
        """Let connections stand, and answer nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
