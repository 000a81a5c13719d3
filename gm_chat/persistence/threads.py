"""Blocking ORM work from async code: one bounded pool, connections looked after.

``sync_to_async`` in its default mode serialises a process's ORM work in one thread: five sockets whose turns each
need 0.4 s of database take 2 s. Here up to :data:`POOL_SIZE` threads work side by side; each keeps its connection
for as long as ``CONN_MAX_AGE`` allows.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import close_old_connections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["POOL_SIZE", "inline_database", "run_db"]

P = ParamSpec("P")
T = TypeVar("T")

POOL_SIZE: Final = 8
_pool: Final = ThreadPoolExecutor(POOL_SIZE, thread_name_prefix="gm-chat-db")
_inline = False


async def run_db(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking function that may use the ORM, and return its result. Context variables are carried over."""
    if _inline:
        return await sync_to_async(function, thread_sensitive=True)(*args, **kwargs)
    context = contextvars.copy_context()
    call = functools.partial(context.run, _with_connections, functools.partial(function, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(_pool, call)


@contextmanager
def inline_database() -> Iterator[None]:
    """Run the work in the caller's thread, so that it sees a test's open transaction. For tests."""
    global _inline  # noqa: PLW0603 - a switch for the whole process, turned by tests only
    before, _inline = _inline, True
    try:
        yield
    finally:
        _inline = before


def _with_connections(call: Callable[[], T]) -> T:
    close_old_connections()
    try:
        return call()
    finally:
        close_old_connections()
