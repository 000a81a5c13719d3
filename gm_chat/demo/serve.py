"""The demo's server: uvicorn on a port that is known to be free, in the foreground or beside a check."""

from __future__ import annotations

import errno
import ipaddress
import socket
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    import uvicorn

__all__ = ["PortTakenError", "bind", "in_background", "is_local", "serve", "url_of"]

START_SECONDS: Final = 20
STOP_SECONDS: Final = 5


class PortTakenError(Exception):
    """The address cannot be listened on; the message says what to type instead."""


def bind(host: str, port: int) -> socket.socket:
    """Listen on an address; port 0 takes any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio turns Nagle's delay (40 ms an answer) off only where it is.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)  # from now on clients wait instead of being refused
    except (OSError, OverflowError) as error:
        listener.close()
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            raise PortTakenError(
                f"port {port} on {host} is taken; try --port {port + 1}, or --port 0 for any free one"
            ) from error
        raise PortTakenError(f"cannot listen on {host!r} port {port!r}: {error}") from error
    return listener


def serve(listener: socket.socket) -> None:
    """Serve until Ctrl-C or SIGTERM; open streams get a few seconds to end."""
    # uvicorn shuts down in order and then passes the signal on.
    with suppress(KeyboardInterrupt):
        _server().run(sockets=[listener])


@contextmanager
def in_background(listener: socket.socket) -> Iterator[str]:
    """Serve from a thread while the block runs; gives the server's URL."""
    server = _server()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="demo-server", daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + START_SECONDS
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError(f"the demo's server did not start within {START_SECONDS} s")
            time.sleep(0.02)
        yield url_of(listener)
    finally:
        server.should_exit = True
        thread.join(STOP_SECONDS + 5)


def is_local(listener: socket.socket) -> bool:
    """Whether only programs on this machine can connect."""
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def url_of(listener: socket.socket) -> str:
    """Return the address to type into a browser; a server on all interfaces is reached at the loopback one."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared with, not bound
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _server() -> uvicorn.Server:
    # uvicorn is part of the extra "demo"; the settings must stand before Django's application is built.
    import uvicorn

    config = uvicorn.Config(_application(), log_level="warning", timeout_graceful_shutdown=STOP_SECONDS)
    return uvicorn.Server(config)


def _application() -> Any:
    from channels.routing import ProtocolTypeRouter  # type: ignore[import-untyped]  # it has no type hints
    from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler

    from gm_chat.asgi import http_application, lifespan, websocket_application

    http = ASGIStaticFilesHandler(http_application())
    return ProtocolTypeRouter({"http": http, "websocket": websocket_application(), "lifespan": lifespan})
