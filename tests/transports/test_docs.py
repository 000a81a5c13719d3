"""docs/transports.md says what is: its commands are run, its events are compared, its codes are counted."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gm_chat.engine import failures
from gm_chat.engine.events import Done, Error, Event, LoggedEvent, TextChunk, ToolCall, ToolResult
from gm_chat.errors import PLANNED_REASONS, PUBLIC_MESSAGES
from gm_chat.providers.base import TokenUsage
from gm_chat.testing.scripted import ScriptedProvider, done
from gm_chat.transports.wire import logged_object

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "transports.md").read_text()
# Codes of transports and states that come with them: docs/transports.md describes what exists.
OF_LATER_TRANSPORTS = {"bad_event", "confirmation_pending", "confirmation_unavailable", "turn_in_progress"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def without_ids(text: str) -> str:
    return re.sub(r'("turn_id": ?)"\w+"', r'\1"8c1f"', text)


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("route", ["/chat/", "/chat/stream/"])
def test_the_commands_work_as_printed_and_print_what_is_printed(server: str, route: str) -> None:
    command = next(block for block in blocks("sh") if f"8000{route} " in block)
    with ScriptedProvider.playing(["Frame and ", "gear.", done(10, 5)]):
        output = subprocess.run(
            ["bash", "-euc", command.replace("http://127.0.0.1:8000", server)],
            capture_output=True, text=True, check=True, timeout=20,
        ).stdout  # fmt: skip
    if route == "/chat/":
        assert json.loads(without_ids(output)) == json.loads(blocks("json")[0])
    else:
        assert without_ids(output).strip() == blocks("text")[0].strip()


@pytest.mark.parametrize(
    "event",
    [
        ToolCall("call-1", "query", {"manager": "PartManager"}),
        ToolResult("call-1", "query", {"data": []}),
        TextChunk("No part does."),
        Done(TokenUsage(100, 20)),
        Error("rate_limited", PUBLIC_MESSAGES["rate_limited"], {"retry_after_seconds": 3600}),
    ],
    ids=lambda event: type(event).__name__,
)
def test_each_event_is_shown_as_it_is_sent(event: Event) -> None:
    shown: list[dict[str, Any]] = [json.loads(block) for block in blocks("json")[1:]]
    (documented,) = [item for item in shown if item["type"] == logged_object(LoggedEvent("", 0, event))["type"]]
    assert documented == logged_object(LoggedEvent("8c1f", documented["seq"], event))


def test_every_error_code_that_exists_is_explained() -> None:
    explained = set(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE))
    own = {"cancelled", "permission_denied"}
    assert failures.CANCELLED.code in own
    assert explained - own == PUBLIC_MESSAGES.keys() - OF_LATER_TRANSPORTS - set(PLANNED_REASONS)
