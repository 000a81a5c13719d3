from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gm_chat.engine import TurnRunner, UnknownTurnError
from gm_chat.engine.events import Error
from gm_chat.engine.ports import ConfirmRequest, TurnRequest
from gm_chat.loops import legacy_loop
from gm_chat.plugin import Actor
from gm_chat.testing.scripted import ScriptedProvider
from gm_chat.testing.services import MemoryServices, ask
from gm_chat.transports.turns import answer, begin, exists, follow, whole_answer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


@pytest.fixture
def services() -> MemoryServices:
    return MemoryServices()


@pytest.fixture
def runner(services: MemoryServices) -> TurnRunner:
    return TurnRunner(services, legacy_loop)


def answered(runner: TurnRunner, request: TurnRequest) -> AsyncGenerator[dict[str, Any], None]:
    return answer(runner, begin(runner, request), request.actor)


async def test_an_answer_is_the_public_form_of_the_turn_s_events(runner: TurnRunner) -> None:
    with ScriptedProvider.playing(["Hi"]):
        events = [event async for event in answered(runner, ask())]
    assert [(event["type"], event["seq"]) for event in events] == [("text_chunk", 1), ("done", 2)]


async def test_the_whole_answer_is_the_same_events(services: MemoryServices, runner: TurnRunner) -> None:
    with ScriptedProvider.playing(["Hi"]):
        events, _ = await whole_answer(runner, ask(key="k"))
    assert [(event["type"], event["seq"]) for event in events] == [("text_chunk", 1), ("done", 2)]
    assert [event async for event in answered(runner, ask(key="k"))] == events
    elsewhere = TurnRunner(services, legacy_loop)  # where the turn is known from the store alone
    assert await whole_answer(elsewhere, ask(key="k")) == (events, ())
    services.denied = frozenset({"message"})
    refused, _ = await whole_answer(runner, ask())
    assert [event["code"] for event in refused] == ["permission_denied"]


async def test_a_refusal_is_one_event_that_belongs_to_no_turn(services: MemoryServices, runner: TurnRunner) -> None:
    services.denied = frozenset({"message"})
    (event,) = [event async for event in answered(runner, ask())]
    assert (event["type"], event["code"]) == ("error", "permission_denied")
    assert "turn_id" not in event


async def test_a_word_on_nothing_is_a_bad_event(runner: TurnRunner) -> None:
    word = ConfirmRequest(actor=Actor("7"), confirmation_id="c1", approved=True, transport="http")
    refusal = (await begin(runner, word)).place
    assert isinstance(refusal, Error)
    assert refusal.code == "bad_event"


async def test_what_nobody_expected_is_told_in_general_words(
    runner: TurnRunner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(request: Any) -> Any:
        raise RuntimeError("secret")

    monkeypatch.setattr(runner, "start", fail)
    refusal = (await begin(runner, ask())).place
    assert isinstance(refusal, Error)
    assert refusal.code == "chat_error"
    assert "secret" not in refusal.message
    assert refusal.details["correlation_id"] in caplog.text


async def test_only_its_owner_can_follow_a_turn(runner: TurnRunner) -> None:
    with ScriptedProvider.playing(["Hi"]):
        (first, _) = [event async for event in answered(runner, ask())]
    turn_id = first["turn_id"]
    assert [event["seq"] async for event in follow(runner, turn_id, 1, Actor("7"))] == [2]
    assert await exists(runner, turn_id, Actor("7"))
    assert not await exists(runner, turn_id, Actor("8"))
    assert not await exists(runner, "unheard of", Actor("7"))
    with pytest.raises(UnknownTurnError):
        await anext(follow(runner, turn_id, 0, Actor("8")))
