"""Whose budgets an actor is charged to, what a call is expected to take, and what clients are told."""

from __future__ import annotations

from typing import Any

import pytest

from gm_chat.engine.budgets import Budget, BudgetState, budgets_of, estimated_tokens, has_budgets, tightest
from gm_chat.plugin import Actor, Standing, ToolDefinition
from gm_chat.providers.base import Message, ToolCallEvent
from gm_chat.settings import RateLimitSettings

USER = Actor(user_id="7", session_key="s", address="10.0.0.1")
VISITOR = Actor(session_key="s", address="10.0.0.1")


def limits(actor: Actor, **settings: Any) -> dict[str, int]:
    """The limits by who is charged and for what."""
    budgets = budgets_of(actor, RateLimitSettings(**settings))
    assert len({budget.key for budget in budgets}) == len(budgets)
    return {f"{budget.key.partition(':')[0]} {budget.kind}": budget.limit for budget in budgets}


@pytest.mark.parametrize(
    ("actor", "settings", "expected"),
    [
        (USER, {}, {"user requests": 60}),
        (VISITOR, {}, {"session requests": 60, "address requests": 60}),
        (Actor(session_key="s"), {}, {"session requests": 60}),
        (Actor(address="10.0.0.1"), {"address_requests": 90}, {"address requests": 90}),
        (Actor(), {"address_requests": 90}, {"anonymous requests": 60}),
        (VISITOR, {"address_requests": 600}, {"session requests": 60, "address requests": 600}),
        (VISITOR, {"address_requests": 0}, {"session requests": 60}),
        (VISITOR, {"requests": None, "address_requests": 9}, {"address requests": 9}),
        (USER, {"requests": None, "address_requests": 9}, {}),
        (USER, {"requests": 0, "tokens": -1}, {}),
        (
            USER,
            {"requests": None, "input_tokens": 5, "output_tokens": 6},
            {"user input_tokens": 5, "user output_tokens": 6},
        ),
        (
            VISITOR,
            {"requests": 10, "address_requests": 30, "tokens": 100},
            {"session requests": 10, "session tokens": 100, "address requests": 30, "address tokens": 300},
        ),
        (VISITOR, {"requests": 10, "address_requests": 0, "tokens": 9}, {"session requests": 10, "session tokens": 9}),
        (VISITOR, {"requests": None, "tokens": 100}, {"session tokens": 100, "address tokens": 100}),
    ],
)
def test_who_is_charged(actor: Actor, settings: Any, expected: dict[str, int]) -> None:
    assert limits(actor, **settings) == expected


@pytest.mark.parametrize(
    ("settings", "limited"),
    [
        ({}, True),
        ({"requests": None}, False),
        ({"requests": 0, "tokens": -3, "address_requests": 0}, False),
        ({"requests": None, "output_tokens": 1}, True),
        ({"requests": None, "address_requests": 1}, True),
    ],
)
def test_whether_anything_is_limited(settings: Any, limited: bool) -> None:
    assert has_budgets(RateLimitSettings(**settings)) is limited


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::9", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("testclient", "testclient", True),
        ("testclient", "another", False),
    ],
)
def test_an_address_is_where_somebody_is(one: str, other: str, same: bool) -> None:
    keys = [budgets_of(Actor(address=address), RateLimitSettings())[0].key for address in (one, other)]
    assert (keys[0] == keys[1]) is same


def test_nothing_personal_stands_in_a_key() -> None:
    actor = Actor(session_key="secret-session\ud800", address="192.168.17.44")
    for budget in (*budgets_of(actor, RateLimitSettings()), *budgets_of(Actor(user_id="ada"), RateLimitSettings())):
        assert budget.key.isascii()
        assert len(budget.key) <= 100
        assert not any(part in budget.key for part in ("secret", "192.168", "ada"))


@pytest.mark.parametrize(
    ("kind", "share"), [("tokens", 30), ("input_tokens", 10), ("output_tokens", 20), ("requests", 0)]
)
def test_what_tokens_take_of_a_budget(kind: str, share: int) -> None:
    assert Budget(kind, "k", 100).share(10, 20) == share


def test_an_estimate_grows_with_all_that_is_sent() -> None:
    question = [Message("user", "Which parts?")]
    call = Message("assistant", "", tool_calls=(ToolCallEvent("1", "query", {"manager": "Part" * 50}),))
    tool = ToolDefinition("query", "Reads rows.", {"type": "object", "properties": {"manager": {"type": "string"}}})
    sizes = [
        estimated_tokens(question, []),
        estimated_tokens(question, [tool]),
        estimated_tokens([*question, call], [tool]),
        estimated_tokens([*question, call, Message("user", "ü" * 4000)], [tool]),
    ]
    assert sizes == sorted(set(sizes))
    assert sizes[-1] - sizes[-2] == 2000
    assert estimated_tokens([Message("user", "\ud800")], []) > 0


def test_clients_learn_of_the_tightest_budget_of_each_kind() -> None:
    budgets = [Budget("requests", "s", 10), Budget("tokens", "s:t", 100), Budget("requests", "a", 30)]
    standings = [Standing(4, 60.0), Standing(130, 20.0), Standing(28, 90.0)]
    assert tightest(budgets, standings) == (BudgetState("requests", 30, 2, 90.0), BudgetState("tokens", 100, 0, 20.0))
