"""The chat's URLs, for startup installation and for ``path("chat/", include("gm_chat.urls"))`` alike.

Names: ``gm_chat:chat``, ``gm_chat:stream``, and below ``x/<plugin>/`` what plugins bring, as ``gm_chat:<plugin>:...``.
(Specification: "Routes and request contracts".)
"""

from __future__ import annotations

import logging

from django.urls import URLPattern, URLResolver, include, path

from gm_chat.transports import http, sse
from gm_chat.wiring import get_runtime

app_name = "gm_chat"


def plugin_routes() -> list[URLPattern | URLResolver]:
    """Each plugin's routes below its own name; none while the chat cannot be built."""
    try:
        urls = get_runtime().host.urls
    except Exception:
        # These URLs are part of the project's: a broken chat must not take its other pages down.
        logging.getLogger(__name__).exception("Plugins have no routes, because the chat could not be built.")
        return []
    return [path(f"x/{plugin}/", include((list(patterns), plugin))) for plugin, patterns in urls.items()]


urlpatterns: list[URLPattern | URLResolver] = [
    path("", http.chat, name="chat"),
    path("stream/", sse.stream, name="stream"),
    *plugin_routes(),
]
