"""Where providers are built: in a thread, unless that one is known to be built at once."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from django.core.exceptions import SynchronousOnlyOperation

if TYPE_CHECKING:
    from collections.abc import Callable

    from gm_chat.engine.ports import ProviderHandle

__all__ = ["Builds"]

QUICK_SECONDS: Final = 0.001


class Builds:
    """Runs builds and remembers which ones were quick.

    A build may import a vendor's SDK, which takes up to two seconds, or make a client, which reads certificates. Most
    only look at a configuration, which takes less than the way to a thread and back.
    """

    def __init__(self) -> None:
        """Know of no provider yet."""
        self._quick: set[str] = set()
        self._need_threads: set[str] = set()

    async def run(self, name: str, build: Callable[[], ProviderHandle]) -> ProviderHandle:
        """Run ``build``, which is the same for the same ``name``, and raise what it raises."""
        if name in self._quick:
            try:
                return self._timed(name, build)
            except SynchronousOnlyOperation:  # it uses the ORM
                self._need_threads.add(name)
        return await asyncio.to_thread(self._timed, name, build)

    def _timed(self, name: str, build: Callable[[], ProviderHandle]) -> ProviderHandle:
        self._quick.discard(name)
        began = time.perf_counter()
        built = build()
        if time.perf_counter() - began < QUICK_SECONDS and name not in self._need_threads:
            self._quick.add(name)
        return built
