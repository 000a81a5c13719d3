"""The public events of planned turns, as clients get them."""

from typing import Any

import pytest

from gm_chat.engine.events import Done, Error
from gm_chat.engine.public import event_object
from gm_chat.planned.events import (
    PLANNED_PUBLIC_MESSAGES,
    orchestration,
    planned_done_event,
    planned_error,
    planned_error_event,
    planned_tool_call_event,
    planned_tool_result_event,
)
from gm_chat.providers.base import TokenUsage

USAGE = TokenUsage(12, 8)


def test_the_messages_are_the_specification_s() -> None:
    assert PLANNED_PUBLIC_MESSAGES == {
        "invalid_plan": "I could not prepare a safe plan for that request.",
        "manager_unresolved": "I could not resolve the required application data.",
        "dependency_blocked": "A required part of the request could not be completed.",
        "budget_exhausted": "The request reached its execution limit.",
        "deadline_exceeded": "The request reached its time limit.",
        "provider_failed": "The provider could not complete the request.",
        "synthesis_failed": "I could not produce a grounded answer from the available data.",
        "rate_limited": "Chat rate limit exceeded. Try again later.",
    }
    with pytest.raises(TypeError):
        PLANNED_PUBLIC_MESSAGES["x"] = "y"  # type: ignore[index]  # that it is read-only is the point


def test_tool_events_name_their_task() -> None:
    assert planned_tool_call_event("t1", "c1", "query", {"manager": "PartManager"}) == {
        "type": "tool_call",
        "task_id": "t1",
        "id": "c1",
        "name": "query",
        "args": {"manager": "PartManager"},
    }
    assert planned_tool_result_event("t1", "c1", "query", {"data": []}) == {
        "type": "tool_result",
        "task_id": "t1",
        "id": "c1",
        "name": "query",
        "result": {"data": []},
    }


def test_a_complete_answer() -> None:
    assert planned_done_event(USAGE, resolved=1, total=1, unresolved=[]) == {
        "type": "done",
        "usage": {"input_tokens": 12, "output_tokens": 8},
        "orchestration": {"status": "complete", "coverage": {"resolved": 1, "total": 1}, "unresolved": []},
    }


@pytest.mark.parametrize(
    "item", [("t2", "deadline_exceeded"), {"task_id": "t2", "reason": "deadline_exceeded", "x": 1}]
)
def test_a_partial_answer_says_what_is_missing_and_no_more(item: object) -> None:
    assert planned_done_event(USAGE, resolved=1, total=2, unresolved=iter([item]))["orchestration"] == {
        "status": "partial",
        "coverage": {"resolved": 1, "total": 2},
        "unresolved": [{"task_id": "t2", "reason": "deadline_exceeded"}],
    }


def test_citations_are_there_if_there_are_any() -> None:
    citation = {"evidence_id": "t1:query:1", "task_id": "t1"}
    done = planned_done_event(USAGE, resolved=1, total=1, unresolved=[], citations=[citation])
    assert done["orchestration"]["citations"] == [citation]
    assert "citations" not in orchestration(resolved=1, total=1, unresolved=[])


def test_they_are_the_events_of_every_turn() -> None:
    coverage = orchestration(resolved=1, total=1, unresolved=[])
    unreported = TokenUsage(reported=False)
    assert planned_done_event(unreported, resolved=1, total=1, unresolved=[]) == event_object(
        Done(unreported, coverage)
    )
    assert planned_error("provider_failed") == Error("provider_failed", "The provider could not complete the request.")


@pytest.mark.parametrize("reason", PLANNED_PUBLIC_MESSAGES)
def test_an_error_has_its_message(reason: str) -> None:
    assert planned_error_event(reason) == {
        "type": "error",
        "message": PLANNED_PUBLIC_MESSAGES[reason],
        "code": reason,
    }


@pytest.mark.parametrize("reason", ["chat_error", "", None, 1, ["invalid_plan"]])
def test_other_reasons_are_mistakes(reason: Any) -> None:
    with pytest.raises(ValueError, match="no public reason"):
        planned_error_event(reason)
    with pytest.raises(ValueError, match="no public reason"):
        planned_done_event(USAGE, resolved=0, total=1, unresolved=[("t1", reason)])


@pytest.mark.parametrize("item", ["t1", ("t1",), {"task_id": "t1"}, None, (1, "invalid_plan"), ("a", "b", "c")])
def test_unresolved_tasks_are_pairs(item: object) -> None:
    with pytest.raises(TypeError, match="unresolved task"):
        planned_done_event(USAGE, resolved=0, total=1, unresolved=[item])


@pytest.mark.parametrize(("resolved", "total"), [(2, 1), (-1, 1)])
def test_counts_fit_together(resolved: int, total: int) -> None:
    with pytest.raises(ValueError, match="cannot be resolved"):
        orchestration(resolved=resolved, total=total, unresolved=[])
