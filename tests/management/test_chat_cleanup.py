from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from gm_chat.models import ChatConversation

pytestmark = pytest.mark.django_db

CHAT = {"enabled": True, "provider": "gm_chat.testing.ScriptedProvider", "ttl_hours": 2}


def cleanup(*arguments: str) -> str:
    out = StringIO()
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


def test_a_batch_has_at_least_one_row() -> None:
    with pytest.raises(CommandError, match="at least 1, not 0"):
        cleanup("--batch-size", "0")
