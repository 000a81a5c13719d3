"""What the checks say about who may use the chat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from testproject.checking import CHAT, EchoPlugin

from gm_chat import checks
from gm_chat.plugin import hookimpl
from gm_chat.testing.hosts import make_host

if TYPE_CHECKING:
    import pytest

OPEN = {**CHAT, "permission": None, "rate_limit": {"store": "database"}, "allowed_origins": ["https://shop.example"]}


class Guarded(EchoPlugin):
    @hookimpl
    def gm_chat_permission_checks(self) -> list[Any]:
        return []


def test_a_chat_without_a_permission_is_open_to_everybody(run: Any) -> None:
    finding = run.deployed(OPEN)["W023"]
    assert "every visitor may use it without a login" in finding.msg
    assert run(chat=OPEN) == {}, "on a developer's machine that is as it should be"


def test_the_hint_mends_it(run: Any) -> None:
    line = run.deployed(OPEN)["W023"].hint.partition(", or")[0]
    settings = {"GM_CHAT": dict(OPEN)}
    exec(line, settings)  # noqa: S102 - as whoever follows the hint
    assert run.deployed(settings["GM_CHAT"]) == {}


def test_a_plugin_that_checks_is_enough(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Runtime:
        host = make_host({"guarded": Guarded()})

    monkeypatch.setattr(checks, "get_runtime", Runtime)
    assert run.deployed(OPEN) == {}


def test_a_change_that_nobody_approves_may_be_a_record_s_wish(run: Any) -> None:
    finding = run.deployed({**OPEN, "allowed_mutations": ["createPart"]})["W024"]
    assert "talk it into createPart" in finding.msg
    settings = {"GM_CHAT": {**OPEN, "allowed_mutations": ["createPart"]}}
    exec(finding.hint, settings)  # noqa: S102 - as whoever follows the hint
    assert "W024" not in run.deployed(settings["GM_CHAT"])


def test_where_all_are_approved_nothing_is_amiss(run: Any) -> None:
    lists = {"allowed_mutations": ["createPart"], "confirm_mutations": ["createPart"]}
    assert "W024" not in run.deployed({**OPEN, **lists})
