"""The chat's WebSocket route, for Channels' ``URLRouter``.

Nothing here depends on when it is imported: settings, apps and models are needed when a socket is opened, not before.
(Specification: "WebSocket".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.urls import URLPattern
from django.urls.resolvers import RoutePattern

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

__all__ = ["chat", "websocket_urlpatterns"]


async def chat(
    scope: MutableMapping[str, Any],
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
) -> None:
    """Serve a chat socket: an ASGI application, which needs Channels' ``AuthMiddlewareStack`` around it."""
    # Models lie behind this import, and a project's asgi.py may import us before Django is set up.
    from gm_chat.transports.websocket import chat_socket

    await chat_socket(scope, receive, send)


class _ChatUrl(RoutePattern):
    """The path that the setting ``url`` has when a socket is opened; none where the chat is not enabled."""

    def match(self, path: str) -> tuple[str, tuple[Any, ...], dict[str, Any]] | None:
        # Imported here like the above: settings may not be configured yet.
        from gm_chat.settings import get_chat_settings

        settings = get_chat_settings()
        fits = settings.enabled and path.strip("/") == settings.url.strip("/")
        return ("", (), {}) if fits else None


websocket_urlpatterns: list[URLPattern] = [URLPattern(_ChatUrl(""), chat, name="gm_chat")]
