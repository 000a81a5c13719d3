"""Signals as a project's receivers hear them: sync or async, with the ORM at hand, and without power over the turn."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.db import connection, connections, transaction

from gm_chat import signals
from gm_chat.audit import AuditPolicy
from gm_chat.engine.audit import AuditTrail
from gm_chat.engine.events import Error
from gm_chat.plugin.context import Actor, TurnContext, TurnOutcome
from gm_chat.testing.hosts import make_host
from gm_chat.wiring.observer import Observer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from django.dispatch import Signal

ADA = object()
CONTEXT = TurnContext("t1", "7", Actor("1", user=ADA), "Which parts?", "sse")
CREATE = {"mutation": "createPart", "input": {"name": "Bolt"}}


@pytest.fixture
def observer() -> Observer:
    return Observer(make_host({}), AuditTrail((), AuditPolicy()))


@pytest.fixture(autouse=True)
async def _close_connections() -> AsyncIterator[None]:
    yield
    await sync_to_async(connections.close_all)()


OF_TURNS = [name for name in signals.__all__ if name != "chat_forgotten"]


@contextmanager
def receiving(signal: Signal, receiver: Callable[..., Any]) -> Iterator[None]:
    signal.connect(receiver, weak=False)
    try:
        yield
    finally:
        signal.disconnect(receiver)


@contextmanager
def hearing() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Collect what all four signals say."""
    heard: list[tuple[str, dict[str, Any]]] = []
    receivers = {}
    for name in OF_TURNS:

        def receiver(sender: Any, signal: Signal, name: str = name, **arguments: Any) -> None:
            heard.append((name, arguments))

        receivers[name] = receiver
        getattr(signals, name).connect(receiver)
    try:
        yield heard
    finally:
        for name, receiver in receivers.items():
            getattr(signals, name).disconnect(receiver)


async def send_all(observer: Observer) -> None:
    await observer.turn_started(CONTEXT)
    await observer.tool_finished(CONTEXT, "c1", "query", {"manager": "Part"}, {"data": []})
    await observer.tool_finished(CONTEXT, "c2", "mutate", CREATE, {"status": "executed", "data": {}})
    await observer.turn_failed(CONTEXT, ValueError("x"), Error("chat_error", "It failed.", {"correlation_id": "k"}))
    await observer.turn_finished(CONTEXT, TurnOutcome("failed", "chat_error", 1, 1, ""))


async def test_each_signal_has_its_arguments(observer: Observer) -> None:
    with hearing() as heard:
        await send_all(observer)
    (started, queried, mutated_tool, mutated, failed) = heard
    assert started == ("chat_message_received", {"user": ADA, "message": "Which parts?", "conversation_id": "7"})
    assert queried == (
        "chat_tool_called",
        {"user": ADA, "tool_name": "query", "args": {"manager": "Part"}, "result": {"data": []}},
    )
    assert mutated_tool[0] == "chat_tool_called"
    assert mutated == (
        "chat_mutation_executed",
        {"user": ADA, **CREATE, "result": {"status": "executed", "data": {}}},
    )
    assert failed[0] == "chat_error"
    assert isinstance(failed[1]["error"], ValueError)
    assert failed[1]["context"] | {"transport": "sse", "turn_id": "t1", "correlation_id": "k"} == failed[1]["context"]


@pytest.mark.parametrize(
    ("result", "sent"),
    [
        ({"status": "executed", "data": {}}, True),
        ({"status": "cancelled", "reason": "user_rejected"}, True),
        ({"status": "cancelled", "reason": "confirmation_timed_out"}, True),
        ({"status": "failed", "error": {"code": "conflict"}}, True),
        ({"status": "confirmation_required", **CREATE}, False),
        ({"error": {"code": "permission_denied"}}, False),
        (None, False),
    ],
)
async def test_a_mutation_is_told_once_it_has_an_outcome(observer: Observer, result: Any, sent: bool) -> None:
    with hearing() as heard:
        await observer.tool_finished(CONTEXT, "c1", "mutate", CREATE, result)
    assert [name for name, _ in heard] == ["chat_tool_called", *["chat_mutation_executed"] * sent]


@pytest.mark.parametrize("name", OF_TURNS)
@pytest.mark.parametrize("fault", [ValueError("no"), SystemExit(1), asyncio.CancelledError()], ids=repr)
async def test_a_receiver_that_raises_disturbs_nobody(observer: Observer, name: str, fault: BaseException) -> None:
    def broken(**_: Any) -> None:
        raise fault

    with receiving(getattr(signals, name), broken), hearing() as heard:
        await send_all(observer)
    others = {signal for signal, _ in heard} - {name}
    assert others == set(OF_TURNS) - {name}
    if isinstance(fault, Exception):  # the receivers after it are reached, too
        assert name in {signal for signal, _ in heard}


async def test_a_receiver_that_raises_is_logged(observer: Observer, caplog: pytest.LogCaptureFixture) -> None:
    def broken(**_: Any) -> None:
        raise ValueError("the pager is off")

    with receiving(signals.chat_error, broken), caplog.at_level(logging.ERROR):
        await send_all(observer)
    assert "the pager is off" in caplog.text


@pytest.mark.django_db(transaction=True)
async def test_receivers_use_the_orm_and_async_ones_await_it(observer: Observer) -> None:
    users = get_user_model()._default_manager
    counts: dict[str, Any] = {}

    def count(**_: Any) -> None:
        with transaction.atomic():
            users.create(username="from a receiver")
        counts["sync"] = users.count()

    async def acount(**_: Any) -> None:
        await asyncio.sleep(0)
        counts["async"] = await users.acount()

    with receiving(signals.chat_message_received, count), receiving(signals.chat_message_received, acount):
        await observer.turn_started(CONTEXT)
    assert counts == {"sync": 1, "async": 1}


@pytest.mark.django_db(transaction=True)
async def test_a_transaction_that_a_receiver_breaks_is_its_own(observer: Observer) -> None:
    def leave_open(**_: Any) -> None:
        connection.set_autocommit(autocommit=False)
        get_user_model()._default_manager.create(username="lost")

    users = get_user_model()._default_manager
    with receiving(signals.chat_message_received, leave_open):
        await observer.turn_started(CONTEXT)
    seen: list[int] = []
    with receiving(signals.chat_message_received, lambda **_: seen.append(users.count())):
        for _ in range(3):
            await observer.turn_started(CONTEXT)
    assert seen == [0, 0, 0]


async def test_a_receiver_that_blocks_does_not_block_the_loop(observer: Observer) -> None:
    def slow(**_: Any) -> None:
        time.sleep(0.3)

    with receiving(signals.chat_message_received, slow):
        waiting = asyncio.create_task(observer.turn_started(CONTEXT))
        started, longest = time.perf_counter(), 0.0
        while not waiting.done():
            before = time.perf_counter()
            await asyncio.sleep(0.01)
            longest = max(longest, time.perf_counter() - before)
        await waiting
    assert time.perf_counter() - started >= 0.3
    assert longest < 0.2


async def test_nobody_listening_costs_no_thread(observer: Observer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hop(*_: Any) -> None:
        raise AssertionError("there is nobody to hop for")

    monkeypatch.setattr(sys.modules[Observer.__module__], "run_db", hop)
    await send_all(observer)


async def test_receivers_run_in_another_thread_than_the_loop(observer: Observer) -> None:
    names: list[str] = []
    with receiving(signals.chat_message_received, lambda **_: names.append(threading.current_thread().name)):
        await observer.turn_started(CONTEXT)
    assert names[0].startswith("gm-chat-db-")
