"""Threads for the synchronous parts of Django's requests, which outlive a request.

Under ASGI each middleware that is not asynchronous runs in a thread that belongs to its request alone. Django starts
that thread with the request and ends it afterwards, which costs 0.7 ms of processor time. Here a request borrows one
that an earlier request is done with. As long as the request lasts nothing else runs in it, so that thread-locals and
database connections are as safe as before; connections are closed or kept, as ``CONN_MAX_AGE`` says, when it ends.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import SyncToAsync, ThreadSensitiveContext

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Application = Callable[[Any, Any, Any], Awaitable[None]]
    Scope = MutableMapping[str, Any]

__all__ = ["RequestThreads"]

MOST_IDLE: Final = 16
"""Threads that wait for a request, at most; there are as many more as there are requests."""


class RequestThreads:
    """An ASGI application: the one that is given, with threads to borrow."""

    def __init__(self, application: Application) -> None:
        """Serve ``application``, which runs synchronous code by asgiref's ``sync_to_async``, as Django does."""
        self.application = application
        self._idle: deque[_Thread] = deque()

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Serve one request. Below a ``ThreadSensitiveContext`` of somebody else, that one's thread is used."""
        try:
            thread = self._idle.pop()
        except IndexError:
            thread = _Thread()
        async with ThreadSensitiveContext() as context:
            # Where asgiref looks for the context's thread, and puts a new one if there is none.
            SyncToAsync.context_to_thread_executor[context] = thread
            try:
                await self.application(scope, receive, send)
            finally:
                # What the request leaves behind, such as a task of its own, gets a thread of its own as ever.
                SyncToAsync.context_to_thread_executor.pop(context, None)
                self._give_back(thread)

    def _give_back(self, thread: _Thread) -> None:
        if thread.is_idle and len(self._idle) < MOST_IDLE:
            self._idle.append(thread)
        else:
            thread.shutdown(wait=False)  # it ends after what it is still asked for


class _Thread(ThreadPoolExecutor):
    def __init__(self) -> None:
        super().__init__(max_workers=1, thread_name_prefix="gm-chat-request")
        self._newest: Future[Any] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether all is done that it was asked for."""
        return self._newest is None or self._newest.done()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self._newest = super().submit(fn, *args, **kwargs)
        return self._newest
