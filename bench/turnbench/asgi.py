"""The application of the reference's project: its chat adds the WebSocket route to it when Django starts."""

from __future__ import annotations

from channels.routing import ProtocolTypeRouter
from django.core.handlers.asgi import ASGIHandler

# Not get_asgi_application(): this module is imported while Django starts, and starting again would fail.
application = ProtocolTypeRouter({"http": ASGIHandler()})
