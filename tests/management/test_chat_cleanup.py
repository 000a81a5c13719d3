from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import async_to_sync
from django.core.management import CommandError, call_command
from django.utils import timezone
from testproject.stored import BOLT, paused

from gm_chat.models import ChatConversation, ChatPendingConfirmation, ChatTurn
from gm_chat.persistence.conversations import DjangoTurnStore
from gm_chat.persistence.threads import inline_database
from gm_chat.signals import chat_mutation_executed

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db

CHAT = {"enabled": True, "provider": "gm_chat.testing.ScriptedProvider", "ttl_hours": 2}


def cleanup(*arguments: str) -> str:
    out = StringIO()
    with inline_database():
        call_command("chat_cleanup", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture(autouse=True)
def conversations(settings: Any) -> None:
    settings.GM_CHAT = CHAT
    for hours in (1, 3, 4, 5):
        age = timezone.now() - timedelta(hours=hours)
        ChatConversation.objects.create(session_key=f"s{hours}", updated=age)


def test_it_goes_by_ttl_hours() -> None:
    assert cleanup("--batch-size", "2") == (
        "Deleted 3 conversations without a turn for 2 hours and 0 resolved or expired confirmations.\n"
    )
    assert ChatConversation.objects.get().session_key == "s1"


def test_a_dry_run_deletes_nothing() -> None:
    assert cleanup("--dry-run").startswith("Would delete 3 conversations")
    assert ChatConversation.objects.count() == 4


@pytest.fixture
def executed() -> Iterator[list[Any]]:
    """The results that receivers of ``chat_mutation_executed`` are told of."""
    told: list[Any] = []

    def receive(**arguments: Any) -> None:
        told.append((arguments["mutation"], arguments["input"], arguments["result"]))

    chat_mutation_executed.connect(receive)
    yield told
    chat_mutation_executed.disconnect(receive)


def test_it_ends_what_waited_too_long_as_a_turn_would(executed: list[Any]) -> None:
    with inline_database():
        async_to_sync(paused)(DjangoTurnStore(), expires_at=timezone.now())
    assert cleanup("--dry-run").endswith("and 1 resolved or expired confirmations.\n")
    assert ChatTurn.objects.get().state == "paused"
    assert executed == []
    assert cleanup().endswith("and 1 resolved or expired confirmations.\n")
    assert ChatTurn.objects.get().state == "done"
    assert not ChatPendingConfirmation.objects.exists()
    assert executed == [("createPart", BOLT, {"status": "cancelled", "reason": "confirmation_timed_out"})]
    cleanup()
    assert len(executed) == 1


def test_a_batch_has_at_least_one_row() -> None:
    with pytest.raises(CommandError, match="at least 1, not 0"):
        cleanup("--batch-size", "0")


def test_a_name_of_its_own() -> None:
    """Another app may have a ``chat_cleanup`` too, and the first in ``INSTALLED_APPS`` has the name."""
    out = StringIO()
    with inline_database():
        call_command("gm_chat_cleanup", "--dry-run", stdout=out)
    assert out.getvalue() == cleanup("--dry-run")
    assert out.getvalue()
