"""The chat under an ASGI server.

A project without an ASGI module of its own runs ``gm_chat.asgi:application``, with ``DJANGO_SETTINGS_MODULE`` set.
One that has its own adds the socket to it::

    application = ProtocolTypeRouter({"http": http_application(), "websocket": websocket_application()})

Django's own ``get_asgi_application()`` serves HTTP as well, but starts a thread for every request. The project's module
is never patched, and none is needed by ``manage.py``: over HTTP the chat works without.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import TYPE_CHECKING, Any

from channels.routing import ProtocolTypeRouter, URLRouter  # type: ignore[import-untyped]  # it has no type hints
from channels.security.websocket import WebsocketDenier  # type: ignore[import-untyped]  # it has no type hints
from django.core.asgi import get_asgi_application
from django.urls import re_path

from gm_chat.routing import websocket_urlpatterns
from gm_chat.transports.request_threads import RequestThreads

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    application: ProtocolTypeRouter

__all__ = ["application", "http_application", "lifespan", "websocket_application"]

logger = logging.getLogger(__name__)


def http_application() -> Any:
    """Django over HTTP, all of the project's pages, with threads that outlive their requests. It sets Django up."""
    return RequestThreads(get_asgi_application())


def websocket_application() -> Any:
    """The chat's socket with Django's sessions and users; other paths are refused. Call it once Django is set up."""
    from channels.auth import AuthMiddlewareStack  # type: ignore[import-untyped]  # as above; it imports models

    return AuthMiddlewareStack(URLRouter([*websocket_urlpatterns, re_path("", WebsocketDenier.as_asgi())]))


async def lifespan(
    scope: MutableMapping[str, Any],
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
) -> None:
    """Build the chat before the first request, and let running turns end, or record them as cancelled, at the end.

    The garbage collector leaves alone what the process holds once the chat is built (``gc.freeze``).
    """
    del scope
    from gm_chat.persistence.threads import run_db  # imported here, as the next: by now Django is set up
    from gm_chat.wiring import get_runtime

    await receive()
    runtime = None
    try:
        runtime = await asyncio.to_thread(get_runtime)
        await run_db(getattr, runtime, "managers")  # sources and catalogs may read whatever they like
    except Exception:
        logger.exception("the chat cannot be built; other pages are served")
    # What is there by now lives as long as the server. The collector, which else walks through all of it now and then,
    # held everybody up for 0.1 s each time.
    gc.collect()
    gc.freeze()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    if runtime is not None:
        await runtime.runner.wait_closed()
    await send({"type": "lifespan.shutdown.complete"})


def __getattr__(name: str) -> Any:
    """Build ``application`` when it is first asked for: importing the helper alone sets up nothing."""
    if name != "application":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    http = http_application()  # first, as the others need Django
    routes = {"http": http, "websocket": websocket_application(), "lifespan": lifespan}
    globals()["application"] = built = ProtocolTypeRouter(routes)
    return built
