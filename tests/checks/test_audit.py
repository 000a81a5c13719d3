"""What the checks say about the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from testproject.checking import CHAT, EchoPlugin

from gm_chat.plugin import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping


class Sink:
    required = False

    def __init__(self, name: str) -> None:
        self.name = name

    async def start(self) -> None:
        pass

    async def emit(self, event: Mapping[str, Any]) -> None:
        pass

    async def aclose(self) -> None:
        pass


class Auditing(EchoPlugin):
    @hookimpl
    def gm_chat_audit_sinks(self) -> list[Sink]:
        return [Sink("ledger")]


class Broken(EchoPlugin):
    @hookimpl
    def gm_chat_audit_sinks(self) -> list[Sink]:
        raise OSError("no disk")


def audit(**settings: Any) -> dict[str, Any]:
    return {**CHAT, "audit": {"enabled": True, "level": "all", **settings}}


@pytest.mark.parametrize(
    ("chat", "expected"),
    [
        (dict(CHAT), set()),
        (audit(enabled=False, required=["ledger"]), set()),
        (audit(), {"E011"}),
        (audit(level="messages"), {"E011"}),
        (audit(level="off"), {"W020"}),
        (audit(required=["ledger"]), {"E011"}),
    ],
)
def test_an_audit_that_nobody_takes(run: Any, chat: dict[str, Any], expected: set[str]) -> None:
    assert {id for id in run(chat=chat) if id in {"E011", "W020"}} == expected


def test_it_says_what_to_type(run: Any) -> None:
    finding = run(chat=audit())["E011"]
    assert "nobody takes its events" in finding.msg
    assert 'python -m pip install "gm-chat[chat-audit]"' in finding.hint
    assert run(chat=audit(level="off"))["W020"].hint == 'GM_CHAT["audit"]["level"] = "all"'


def test_a_required_sink_must_be_there(run: Any) -> None:
    assert "E011" not in run(Auditing(), chat=audit(required=["ledger"]))
    finding = run(Auditing(), chat=audit(required=["ledger", "leger"]))["E011"]
    assert "names 'leger'" in finding.msg
    assert "Did you mean 'ledger'?" in finding.hint


def test_a_required_sink_whose_plugin_broke_is_missed(run: Any) -> None:
    found = run(Broken(), chat=audit(required=["ledger"]))
    assert "no disk" in found["E010"].msg
    assert "refuses every message" in found["E011"].msg
