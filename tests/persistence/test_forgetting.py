"""Forgetting a person, on each database: all of theirs goes, nobody else's, and the sums stay."""

from __future__ import annotations

import json
import stat
import threading
from collections import Counter
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.db import OperationalError, connections
from testproject.stored import ANONYMOUS, STRANGER, closed, opened, paused, tool_turn

from gm_chat.engine.budgets import prefix_of
from gm_chat.models import (
    ChatConversation,
    ChatEventSegment,
    ChatMessage,
    ChatPendingConfirmation,
    ChatRateCount,
    ChatTurn,
    ChatUsage,
)
from gm_chat.persistence import database, forgetting
from gm_chat.persistence.conversations import DjangoTurnStore
from gm_chat.persistence.forgetting import FORGOTTEN, Export, ask_to_stop, forget
from gm_chat.persistence.ledger import entries
from gm_chat.persistence.owner import Owner, owner_of
from gm_chat.plugin import Actor
from gm_chat.providers.base import TokenUsage

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")

KINDS = [ChatConversation, ChatMessage, ChatTurn, ChatEventSegment, ChatPendingConfirmation, ChatRateCount]


@pytest.fixture(autouse=True)
def chat(alias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the chat in that database."""
    monkeypatch.setattr(database.router, "db_for_write", lambda *_, **__: alias)


def owned(actor: Actor) -> Owner:
    owner = owner_of(actor)
    assert owner is not None
    return owner


def person(alias: str, name: str) -> Actor:
    user = get_user_model()._default_manager.using(alias).create(username=name)
    return Actor(user_id=str(user.pk), user=user)


@async_to_sync
async def talk(actor: Actor, name: str, conversations: int = 1) -> None:
    """Some conversations of the actor's: a turn with a tool, then one that waits for an approval."""
    store = DjangoTurnStore()
    usage = TokenUsage(10, 5)
    for number in range(conversations):
        turn = f"{name}{number}"
        spent = {"echo": usage}
        await store.close_turn(closed(turn, await opened(store, turn, actor=actor), *tool_turn(), spent=spent))
        if number == conversations - 1:
            await paused(store, f"{turn}p", f"{turn}c", actor)
        await ChatConversation.objects.using(database.chat_database()).aupdate(current_key=None)


def count(actor: Actor, alias: str, name: str) -> None:
    """What else there is of the actor."""
    ChatRateCount.objects.using(alias).create(key=f"60:{prefix_of(actor)}requests", window_ends=9**9, used=1)
    ChatEventSegment.objects.using(alias).create(turn_id=f"{name}0", first_seq=9, last_seq=9, events=[])


def rows(alias: str) -> Counter[str]:
    return Counter({model.__name__: model.objects.using(alias).count() for model in KINDS})


def tokens(alias: str) -> tuple[int, int]:
    today = date.today()  # noqa: DTZ011 - days around it
    found = list(entries(today - timedelta(2), today + timedelta(2)))
    return sum(entry.used.input_tokens for entry in found), sum(entry.used.turns for entry in found)


@pytest.mark.parametrize("of_user", [True, False])
def test_all_of_one_person_goes_and_the_sums_stay(alias: str, of_user: bool) -> None:
    actor, other = (person(alias, "ada"), person(alias, "bob")) if of_user else (ANONYMOUS, STRANGER)
    talk(other, "other")
    count(other, alias, "other")
    before, sums = rows(alias), tokens(alias)
    talk(actor, "mine", 3)
    count(actor, alias, "mine")
    whole = tokens(alias)
    told = forget(owned(actor), prefix_of(actor), dry_run=True)
    assert whole[0] > sums[0]
    assert told == {
        "conversations": 3, "messages": 14, "turns": 4, "event segments": 1, "confirmations": 1,
        "rate counts": 1, "lines of the ledger": 0,
    }  # fmt: skip
    assert rows(alias) - before == {
        "ChatConversation": 3, "ChatMessage": 14, "ChatTurn": 4, "ChatEventSegment": 1, "ChatPendingConfirmation": 1,
        "ChatRateCount": 1,
    }  # fmt: skip
    done = forget(owned(actor), prefix_of(actor), batch_size=2)
    assert done.pop("lines of the ledger") > 0
    assert done == {key: number for key, number in told.items() if key != "lines of the ledger"}
    assert rows(alias) == before
    assert tokens(alias) == whole
    assert set(ChatUsage.objects.using(alias).values_list("actor", "conversation")) == {(FORGOTTEN, 0)}
    assert not any(forget(owned(actor), prefix_of(actor)).values()), "a second time there is nothing"


def test_what_was_banked_before_names_nobody_either(alias: str) -> None:
    actor = person(alias, "ada")
    talk(actor, "mine")
    actor.user.delete()
    assert ChatUsage.objects.using(alias).get().actor == f"user:{actor.user_id}"
    assert forget(owned(actor), prefix_of(actor))["lines of the ledger"] == 1
    assert ChatUsage.objects.using(alias).get().actor == FORGOTTEN


def test_a_conversation_in_which_a_turn_runs_is_left(alias: str) -> None:
    actor = person(alias, "ada")
    async_to_sync(opened)(DjangoTurnStore(), "t1", "Hello", actor)
    assert ask_to_stop(owned(actor)) == ["t1"]
    assert ChatTurn.objects.using(alias).get().cancel_requested
    assert forget(owned(actor), prefix_of(actor))["conversations in use"] == 1
    assert ChatMessage.objects.using(alias).exists()
    ChatTurn.objects.using(alias).update(alive_until="2000-01-01T00:00:00Z")
    assert ask_to_stop(owned(actor)) == [], "its process has died"
    assert forget(owned(actor), prefix_of(actor))["conversations"] == 1
    assert not ChatMessage.objects.using(alias).exists()


def test_what_is_written_out_is_what_goes(alias: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    actor = person(alias, "ada")
    talk(actor, "mine", 3)
    talk(STRANGER, "other")
    file = tmp_path / "ada.jsonl"
    with pytest.raises(FileExistsError):
        Export(tmp_path)
    export = Export(file)
    failing = iter([True, False, False])

    def once_more(*arguments: Any, **named: Any) -> Any:
        result = work(*arguments, **named)
        if next(failing):  # as a server that chose this transaction as a deadlock's victim
            raise OperationalError(1213, "deadlock")
        return result

    work = forgetting._forget_some
    monkeypatch.setattr(forgetting, "_forget_some", once_more)
    forget(owned(actor), prefix_of(actor), export=export, batch_size=2)
    export.close()
    written = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert Counter(row["model"] for row in written) == {
        "gm_chat.chatconversation": 3,
        "gm_chat.chatmessage": 14,
        "gm_chat.chatturn": 4,
        "gm_chat.chatpendingconfirmation": 1,
    }
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert any(row["fields"].get("content") == "Create a bolt" for row in written)
    assert not any("key" in name for row in written for name in row["fields"])


def test_two_at_once_delete_everything_once(alias: str) -> None:
    actor = person(alias, "ada")
    talk(actor, "mine", 6)
    whole = tokens(alias)
    gate, answers = threading.Barrier(2), []

    def run() -> None:
        gate.wait()
        try:
            answers.append(forget(owned(actor), prefix_of(actor), batch_size=2))
        except BaseException as error:  # noqa: BLE001 - the test shows it
            answers.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(answer["turns"] for answer in answers) == 7
    assert sum(answer["conversations"] for answer in answers) == 6
    assert tokens(alias) == whole
