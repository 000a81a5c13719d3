"""The chat's URLs, for startup installation and for ``path("chat/", include("gm_chat.urls"))`` alike.

Names: ``gm_chat:chat``, ``stream``, ``confirm``, ``cancel``, ``confirmations`` and ``turn_events``, and below
``x/<plugin>/`` what plugins bring, as ``gm_chat:<plugin>:...``.
(Specification: "Routes and request contracts".)
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.urls import URLPattern, URLResolver, include, path

from gm_chat.transports import http, sse
from gm_chat.wiring import get_runtime

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

app_name = "gm_chat"
logger = logging.getLogger(__name__)


def plugin_routes() -> list[URLPattern | URLResolver]:
    """Each plugin's routes below its own name; none while the chat cannot be built.

    These URLs are part of the project's: neither a broken chat nor a broken plugin may take its other pages down.
    """
    try:
        urls = get_runtime().host.urls
    except Exception:
        logger.exception("Plugins have no routes, because the chat could not be built.")
        return []
    return [route for plugin, patterns in urls.items() for route in _routes_of(plugin, patterns)]


def _routes_of(plugin: str, patterns: Iterable[object]) -> Iterator[URLResolver]:
    usable: list[URLPattern | URLResolver] = []
    for pattern in patterns:
        if isinstance(pattern, URLPattern | URLResolver):
            usable.append(pattern)
        else:
            logger.error("The plugin %r offers %r as a route, which is no path(...).", plugin, pattern)
    if usable:
        yield path(f"x/{plugin}/", include((usable, plugin)))


urlpatterns: list[URLPattern | URLResolver] = [
    path("", http.chat, name="chat"),
    path("stream/", sse.stream, name="stream"),
    path("confirm/", http.confirm, name="confirm"),
    path("cancel/", http.cancel, name="cancel"),
    path("confirmations/", http.confirmations, name="confirmations"),
    path("turns/<str:turn_id>/events", sse.turn_events, name="turn_events"),
    *plugin_routes(),
]
