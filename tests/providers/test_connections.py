from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gm_chat.providers.connections import ConnectionWatch, retry_stale, went_stale


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


class LostError(Exception):
    """An HTTP library's."""

    def __init__(self, trace: object) -> None:
        self.request = SimpleNamespace(extensions={} if trace is None else {"trace": trace})


class SDKError(LostError):
    """An SDK's, which is raised from the HTTP library's and is none."""


def watch(*, opened: bool) -> ConnectionWatch:
    made = ConnectionWatch()
    made.opened = opened
    return made


@pytest.mark.parametrize(
    ("trace", "stale"), [(watch(opened=False), True), (watch(opened=True), False), (None, False), ("other", False)]
)
def test_only_a_kept_connection_goes_stale(trace: Any, stale: bool) -> None:
    assert went_stale(LostError(trace), LostError) is stale
    wrapped = SDKError(trace)
    wrapped.__cause__ = LostError(trace)
    assert went_stale(wrapped, LostError) is stale


def test_other_failures_are_no_sign_of_it() -> None:
    assert not went_stale(SDKError(watch(opened=False)), KeyError, OSError)
    error = OSError()
    error.__cause__ = LostError(watch(opened=False))
    assert not went_stale(error, LostError)  # it has no request


@pytest.mark.parametrize(
    ("outcomes", "sent"),
    [
        (["answer"], 1),
        ([LostError(watch(opened=False)), "answer"], 2),
        ([LostError(watch(opened=False)), LostError(watch(opened=False)), "answer"], 2),
        ([LostError(watch(opened=True)), "answer"], 1),
        ([KeyError(), "answer"], 1),
    ],
)
async def test_a_request_that_nobody_heard_is_sent_once_more(outcomes: list[Any], sent: int) -> None:
    left = list(outcomes)

    async def send() -> str:
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return str(outcome)

    if isinstance(last := outcomes[sent - 1], Exception):
        with pytest.raises(type(last)):
            await retry_stale(send, LostError)
    else:
        assert await retry_stale(send, LostError) == last
    assert len(outcomes) - len(left) == sent
