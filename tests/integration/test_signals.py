"""What a project hears of a mutation, whatever becomes of it: once, with the same arguments, whoever ends it."""

from __future__ import annotations

from contextlib import aclosing, contextmanager
from datetime import timedelta
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.utils import timezone
from testproject.shop.models import Material

from gm_chat import signals
from gm_chat.engine.failures import TurnStopped
from gm_chat.engine.ports import ConfirmRequest, TurnRequest
from gm_chat.models import ChatPendingConfirmation
from gm_chat.persistence.threads import run_db
from gm_chat.plugin import Actor
from gm_chat.testing.scripted import ScriptedProvider, call
from gm_chat.wiring import get_runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gm_chat.engine.events import Event
    from gm_chat.plugin import Transport

pytestmark = pytest.mark.django_db(transaction=True)

INPUT = {"name": "Brass", "density": 8.5}
CREATE = call("mutate", mutation="createMaterial", input=INPUT)


@pytest.fixture(autouse=True)
def _confirmed(settings: Any) -> None:
    settings.GM_CHAT = {
        **settings.GM_CHAT,
        "allowed_mutations": ["createMaterial"],
        "confirm_mutations": ["createMaterial"],
    }


@pytest.fixture
def actor() -> Actor:
    user = get_user_model()._default_manager.create_superuser("ada", password="x")
    return Actor(str(user.pk), user=user)


@contextmanager
def mutations() -> Iterator[list[dict[str, Any]]]:
    """Collect the outcomes of mutations; the receiver reads the database as receivers do."""
    heard: list[dict[str, Any]] = []

    def receiver(sender: Any, signal: Any, **arguments: Any) -> None:
        heard.append({**arguments, "materials": Material.objects.count()})

    signals.chat_mutation_executed.connect(receiver)
    try:
        yield heard
    finally:
        signals.chat_mutation_executed.disconnect(receiver)


async def follow(turn_id: str, actor: Actor, after: int = 0) -> list[Event]:
    async with aclosing(get_runtime().runner.subscribe(turn_id, after, actor=actor)) as events:
        return [logged.event async for logged in events]


async def say(actor: Actor, transport: Transport = "sse") -> list[Event]:
    runner = get_runtime().runner
    return await follow(await runner.start(TurnRequest(actor=actor, text="Add brass.", transport=transport)), actor)


async def answer(actor: Actor, confirmation_id: str, *, approved: bool) -> list[Event]:
    word = ConfirmRequest(actor=actor, confirmation_id=confirmation_id, approved=approved, transport="sse")
    turn_id, after = await get_runtime().runner.confirm(word)
    return await follow(turn_id, actor, after)


async def pause(actor: Actor) -> str:
    with ScriptedProvider.playing([CREATE]):
        asked = (await say(actor))[-1]
    return str(asked.id)  # type: ignore[union-attr]  # it is a ConfirmMutation


def overdue() -> None:
    ChatPendingConfirmation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))


def outcome(heard: list[dict[str, Any]], actor: Actor) -> Any:
    (told,) = heard
    assert (told["user"], told["mutation"], told["input"]) == (actor.user, "createMaterial", INPUT)
    return told["result"]


async def test_nothing_is_told_while_approval_is_awaited(actor: Actor) -> None:
    with mutations() as heard:
        await pause(actor)
    assert heard == []


@pytest.mark.parametrize(("approved", "status", "materials"), [(True, "executed", 1), (False, "cancelled", 0)])
async def test_the_user_s_word_is_told(actor: Actor, approved: bool, status: str, materials: int) -> None:
    with mutations() as heard:
        confirmation = await pause(actor)
        with ScriptedProvider.playing(["Right."]):
            await answer(actor, confirmation, approved=approved)
    assert outcome(heard, actor)["status"] == status
    assert heard[0]["materials"] == materials
    assert approved or heard[0]["result"]["reason"] == "user_rejected"


@pytest.mark.parametrize("ended_by", ["the next message", "a late word", "cleanup", "all of them"])
async def test_a_timeout_is_told_once_whoever_ends_it(actor: Actor, ended_by: str) -> None:
    with mutations() as heard:
        confirmation = await pause(actor)
        await run_db(overdue)
        if ended_by in {"a late word", "all of them"}:
            with pytest.raises(TurnStopped):
                await answer(actor, confirmation, approved=True)
        if ended_by in {"cleanup", "all of them"}:
            await run_db(call_command, "chat_cleanup", stdout=StringIO())
        if ended_by in {"the next message", "all of them"}:
            with ScriptedProvider.playing(["Hello."]):
                await say(actor)
    assert outcome(heard, actor) == {"status": "cancelled", "reason": "confirmation_timed_out"}
    assert heard[0]["materials"] == 0


async def test_a_mutation_without_confirmation_is_told(actor: Actor, settings: Any) -> None:
    settings.GM_CHAT = {**settings.GM_CHAT, "confirm_mutations": []}
    with mutations() as heard, ScriptedProvider.playing([CREATE], ["Done."]):
        await say(actor, "http")
    assert outcome(heard, actor)["status"] == "executed"
