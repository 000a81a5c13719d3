"""A real server in a thread, and what its tests need to steer it."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

import pytest
import uvicorn
from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application

from gm_chat.asgi import websocket_application

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Gate:
    """Holds a scripted provider, in whatever event loop it runs, until a test opens it from any thread."""

    def __init__(self) -> None:
        self._opened = threading.Event()

    def open(self) -> None:
        self._opened.set()

    async def wait(self) -> None:
        while not self._opened.is_set():  # noqa: ASYNC110 - the test opens it from another thread
            await asyncio.sleep(0.005)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def eventually() -> Callable[[Callable[[], object]], None]:
    """Wait for something that happens in another thread; a second is what a cancelled turn may take."""

    def wait(condition: Callable[[], object], seconds: float = 1.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.01)

    return wait


@pytest.fixture
def server(transactional_db: None) -> Iterator[str]:
    """The test project under uvicorn; the value is its URL."""
    # Built anew for each test, as Django reads MIDDLEWARE when it is built.
    application = ProtocolTypeRouter({"http": get_asgi_application(), "websocket": websocket_application()})
    config = uvicorn.Config(application, port=0, lifespan="off", log_level="warning")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        assert thread.is_alive(), "uvicorn did not start"
        time.sleep(0.01)
    port = running.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    running.should_exit = True
    thread.join(10)
    assert not thread.is_alive()
