from __future__ import annotations

import pytest

from gm_chat.providers.connections import ConnectionWatch


@pytest.mark.parametrize(
    ("event", "opened"),
    [
        ("connection.connect_tcp.started", True),
        ("connection.connect_unix_socket.started", True),
        ("http11.send_request_headers.started", False),
        ("connection.close.started", False),
    ],
)
async def test_it_notes_a_connection_that_is_opened(event: str, opened: bool) -> None:
    watch = ConnectionWatch()
    await watch(event, {})
    assert watch.opened is opened
