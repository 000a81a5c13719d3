"""``manage.py chat_forget``: whom it takes, what it says, and a turn that runs meanwhile."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connections
from testproject.deployed import DeployedProject
from testproject.stored import ANONYMOUS, STRANGER, closed, opened

from gm_chat.audit import audited_actor
from gm_chat.management.commands import chat_forget
from gm_chat.models import ChatConversation, ChatMessage, ChatTurn
from gm_chat.persistence.conversations import DjangoTurnStore
from gm_chat.plugin import Actor
from gm_chat.signals import chat_forgotten
from gm_chat.testing.scripted import ScriptedProvider
from gm_chat.wiring import get_runtime, reset_runtime

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.django_db(transaction=True)

CHAT = {"enabled": True, "provider": "gm_chat.testing.ScriptedProvider", "provider_config": {"max_retries": 0}}


@pytest.fixture(autouse=True)
def _quickly(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.GM_CHAT = CHAT
    monkeypatch.setattr(chat_forget, "LOOK_SECONDS", 0.02)
    yield
    reset_runtime()


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("chat_forget", *arguments, stdout=out)
    return out.getvalue()


@async_to_sync
async def talk(actor: Actor, turn_id: str) -> None:
    store = DjangoTurnStore()
    await store.close_turn(closed(turn_id, await opened(store, turn_id, actor=actor)))


def user(name: str = "ada") -> Actor:
    row = get_user_model()._default_manager.create(username=name)
    return Actor(user_id=str(row.pk), user=row)


def test_a_user_by_name_or_by_key_and_a_session() -> None:
    ada, bob = user(), user("bob")
    for number, actor in enumerate([ada, bob, ANONYMOUS, STRANGER]):
        talk(actor, f"t{number}")
    told = run("ada")
    assert told.startswith(f"Deleted of user:{ada.user_id}: 1 conversations, 2 messages, 1 turns.")
    assert "log files" in told
    assert "provider keeps" in told
    assert "backups" in told
    assert run("--id", bob.user_id or "").startswith("Deleted of user:")
    assert run("--session", ANONYMOUS.session_key or "").startswith("Deleted of session:")
    assert ANONYMOUS.session_key not in told
    assert ChatConversation.objects.get().session_key == STRANGER.session_key
    assert get_user_model()._default_manager.count() == 2
    assert run("ada").startswith(f"Deleted of user:{ada.user_id}: nothing."), "the second time"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Name one person"),
        (("ada", "--session", "s"), "Name one person"),
        (("nobody",), "no user 'nobody', so nothing was deleted. One who is deleted already"),
        (("--id", "seven"), "--id 'seven' is no primary key of User"),
        (("--session", " "), "--session is empty"),
        (("ada", "--batch-size", "0"), "at least 1, not 0"),
    ],
)
def test_whom_it_does_not_know_it_refuses(arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        run(*arguments)


def test_a_dry_run_writes_out_and_deletes_nothing(tmp_path: Path) -> None:
    talk(user(), "t1")
    file = tmp_path / "ada.jsonl"
    assert run("ada", "--dry-run", "--export", str(file)).startswith("Would delete of user:")
    assert ChatMessage.objects.count() == 2
    models = [json.loads(line)["model"] for line in file.read_text("utf-8").splitlines()]
    assert models == ["gm_chat.chatconversation", "gm_chat.chatmessage", "gm_chat.chatmessage", "gm_chat.chatturn"]
    with pytest.raises(CommandError, match=r"Nothing was deleted: --export .* must be a new file: File exists"):
        run("ada", "--export", str(file))
    assert ChatMessage.objects.count() == 2


@pytest.mark.skipif(importlib.util.find_spec("gm_chat_audit_logging") is None, reason="the plugin is not installed")
def test_the_audit_s_table_too(tmp_path: Path) -> None:
    record = apps.get_model("gm_chat_audit_logging", "AuditRecord")
    ada = user()
    for actor in (ada, ada, STRANGER):
        head = {"event_type": "user_message", "turn_id": "t", "actor": audited_actor(actor)}
        record.of(head, json.dumps(head)).save()
    file = tmp_path / "ada.jsonl"
    assert "2 audit events" in run("ada", "--dry-run")
    assert record.objects.count() == 3
    assert "2 audit events" in run("ada", "--export", str(file))
    assert record.objects.get().actor == audited_actor(STRANGER)
    assert file.read_text("utf-8").count('"gm_chat_audit_logging.auditrecord"') == 2
    assert "1 audit events" in run("--session", STRANGER.session_key or "")
    assert not record.objects.exists()


def test_whoever_keeps_more_is_told_and_who_fails_is_named() -> None:
    told: list[Any] = []

    def ours(**arguments: Any) -> dict[str, int]:
        told.append((arguments["actor"], arguments["dry_run"]))
        return {"letters": 4}

    def broken(**_: Any) -> None:
        raise OSError("the archive is away")

    ada = user()
    chat_forgotten.connect(ours)
    try:
        assert "4 letters" in run("ada")
        chat_forgotten.connect(broken)
        with pytest.raises(CommandError, match=r"Not all is deleted: .*broken failed with OSError: the archive"):
            run("ada", "--dry-run")
    finally:
        chat_forgotten.disconnect(ours)
        chat_forgotten.disconnect(broken)
    assert told == [(f"user:{ada.user_id}", False), (f"user:{ada.user_id}", True)]


async def _while_a_turn_runs(actor: Actor, *arguments: str) -> tuple[str, list[str]]:
    """Run the command, as another process would, while a turn of the actor's is being answered."""
    with ScriptedProvider.playing(["One ", 60]) as script:
        runner = get_runtime().runner
        from gm_chat.engine.ports import TurnRequest

        turn_id = await runner.start(TurnRequest(actor=actor, text="Hello", transport="sse"))
        following = asyncio.create_task(runner.collect(turn_id, actor=actor))
        while not script.open_streams:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.01)

        def command() -> str:
            try:
                return run(*arguments)
            except CommandError as error:
                return str(error)
            finally:
                connections.close_all()

        said = await asyncio.to_thread(command)
        await runner.cancel(turn_id, actor=actor)
        events = [logged.event for logged in await following]
    return said, [getattr(event, "code", "") for event in events]


def test_a_running_turn_is_stopped_first() -> None:
    said, codes = async_to_sync(_while_a_turn_runs)(user(), "ada")
    assert said.startswith("Deleted of user:")
    assert codes[-1] == "cancelled"
    assert not ChatTurn.objects.exists()


def test_one_that_does_not_stop_is_named_and_nothing_is_deleted() -> None:
    said, _ = async_to_sync(_while_a_turn_runs)(user(), "ada", "--wait", "0")
    assert "Nothing was deleted: the turn" in said
    assert ChatMessage.objects.exists()


FILL = """
import asyncio
import django; django.setup()
from django.contrib.auth import get_user_model
from gm_chat.persistence.conversations import DjangoTurnStore
from gm_chat.models import ChatConversation
from gm_chat.plugin import Actor
from testproject.stored import closed, opened
store, actor = DjangoTurnStore(), Actor(user_id=str(get_user_model().objects.create(username="ada").pk))
for number in range(20):
    opening = asyncio.run(opened(store, f"t{number}", actor=actor))
    asyncio.run(store.close_turn(closed(f"t{number}", opening)))
    ChatConversation.objects.update(current_key=None)
"""


def test_two_processes_at_once_in_a_project_full_of_mistakes(tmp_path: Path) -> None:
    """SQLite in its standard mode, broken plugins, no audit: the person's data goes all the same, and once."""
    project = DeployedProject(tmp_path)
    project.run("migrate", "--skip-checks", "--verbosity", "0")
    assert project.run("-c", FILL, program="-Wignore") == ""
    with ThreadPoolExecutor(2) as two:
        both = [two.submit(project.run, "chat_forget", "ada", "--batch-size", "1") for _ in range(2)]
    told = [answer.result() for answer in both]
    assert all("Deleted of user:1: " in text for text in told), told
    assert sum(int(count) for text in told for count in re.findall(r"(\d+) conversations", text)) == 20
    assert "Deleted of user:1: nothing." in project.run("chat_forget", "ada")
