"""Planning: attempts, corrections, what they cost, and what the planner sees."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from django.test import override_settings

from gm_chat.engine.failures import TurnStopped
from gm_chat.errors import planned_public_error, public_chat_error
from gm_chat.planned.budget import RoundBudget, RoundBudgetExhausted
from gm_chat.planned.config import get_planned_chat_settings
from gm_chat.planned.models import ValidatedPlan
from gm_chat.planned.planner import PLAN_SCHEMA, InvalidPlanError, PlanningResult, make_plan, plan_request
from gm_chat.planned.provider_calls import InvalidProviderRoundError, ProviderRoundResult
from gm_chat.planned.validation import validate_plan
from gm_chat.providers.base import Message, ProviderQuotaError, ProviderTimeoutError, TokenUsage, ToolCallEvent
from gm_chat.testing.scripted import ScriptedProvider

MUTATION = json.dumps({"intent": "mutation", "tasks": []})
PLAN: dict[str, Any] = {
    "intent": "read",
    "tasks": [
        {
            "task_id": "t1",
            "objective": "List the parts.",
            "depends_on": [],
            "requirements": [{"requirement_id": "r1", "kind": "query", "description": "The parts.", "operation": None}],
            "completion_criteria": ["r1"],
            "routing_features": [],
        }
    ],
}
FAULTY = json.dumps({"intent": "write", "tasks": []})
USAGE = TokenUsage(10, 5)


class Caller:
    """Plays answers: text, a call, or an exception. Remembers what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.roles: list[str] = []
        self.asked: list[Sequence[Message]] = []
        self.seconds: list[float] = []

    async def __call__(
        self,
        role: str,
        messages: Sequence[Message],
        tools: Sequence[object],
        *,
        seconds: float,
        response_format: Mapping[str, Any] | None = None,
    ) -> ProviderRoundResult:
        assert tools == ()
        assert response_format is PLAN_SCHEMA
        self.roles.append(role)
        self.asked.append(messages)
        self.seconds.append(seconds)
        match self.answers.pop(0):
            case BaseException() as error:
                raise error
            case ToolCallEvent() as called:
                return ProviderRoundResult("", called, USAGE)
            case text:
                return ProviderRoundResult(text, None, USAGE)


async def plan(
    caller: Caller,
    *,
    text: str = "Which parts are there?",
    messages: Sequence[Message] = (),
    budget: RoundBudget | None = None,
    summary: object = None,
    clock: Callable[[], float] = lambda: 0.0,
) -> PlanningResult:
    return await make_plan(text, messages, budget or RoundBudget(()), summary, call=caller, seconds=90, clock=clock)


async def test_a_plan_at_the_first_attempt() -> None:
    caller, budget = Caller(json.dumps(PLAN)), RoundBudget(())
    assert await plan(caller, budget=budget) == PlanningResult(validate_plan(PLAN), USAGE, (USAGE,))
    assert (caller.roles, budget.global_count) == (["planner"], 1)


async def test_a_faulty_plan_is_shown_with_its_defect() -> None:
    caller = Caller(FAULTY, MUTATION)
    result = await plan(caller)
    assert result == PlanningResult(ValidatedPlan("mutation", ()), TokenUsage(20, 10), (USAGE, USAGE))
    assert caller.roles == ["planner", "planner"]
    first, second = caller.asked
    assert list(second[: len(first)]) == list(first)
    shown, notice = second[len(first) :]
    assert (shown.role, shown.content) == ("assistant", FAULTY)
    assert notice.role == "user"
    assert 'intent must be one of read, mutation, not "write"' in notice.content


async def test_the_fallback_s_attempt_is_the_last() -> None:
    caller, budget = Caller(FAULTY, "no JSON", "nor this"), RoundBudget(())
    with pytest.raises(InvalidPlanError) as caught:
        await plan(caller, budget=budget)
    assert caller.roles == ["planner", "planner", "fallback_executor"]
    assert (caught.value.usage, caught.value.attempt_usages) == (TokenUsage(30, 15), (USAGE,) * 3)
    assert len(caught.value.defects) == 3
    assert not caught.value.only_failures
    assert budget.global_count == 3
    assert caller.asked[2][-2].content == "no JSON"
    assert public_chat_error(caught.value) == planned_public_error("invalid_plan")
    assert str(caught.value) == "invalid_plan"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ToolCallEvent("c", "query", {}), "no tools to call"),
        (InvalidProviderRoundError("the answer was cut off", usage=USAGE), "the answer was cut off"),
    ],
)
async def test_an_answer_that_is_no_text_is_corrected_too(answer: Any, words: str) -> None:
    caller = Caller(answer, MUTATION)
    assert (await plan(caller)).attempt_usages == (USAGE, USAGE)
    assert words in caller.asked[1][-1].content
    assert [message.role for message in caller.asked[1]] == ["system", "user", "user"]


async def test_a_round_of_unknown_cost_is_counted_as_not_reported() -> None:
    result = await plan(Caller(InvalidProviderRoundError("the answer broke off"), MUTATION))
    assert result.usage == TokenUsage(10, 5, reported=False)


@pytest.mark.parametrize(
    "failure", [ProviderQuotaError("secret"), ProviderTimeoutError("secret"), RuntimeError("secret"), KeyError("x")]
)
async def test_a_provider_that_fails_takes_an_attempt_and_no_tokens(failure: Exception) -> None:
    caller, budget = Caller(failure, FAULTY, MUTATION), RoundBudget(())
    result = await plan(caller, budget=budget)
    assert (result.attempt_usages, budget.global_count) == ((USAGE, USAGE), 3)
    assert len(caller.asked[1]) == len(caller.asked[0])  # nothing that words could mend
    assert all("secret" not in message.content for messages in caller.asked for message in messages)


async def test_a_fault_is_remembered_over_a_failure() -> None:
    caller = Caller(FAULTY, RuntimeError("down"), MUTATION)
    await plan(caller)
    assert caller.asked[2][-2].content == FAULTY


async def test_where_only_providers_failed_it_says_so() -> None:
    with pytest.raises(InvalidPlanError) as caught:
        await plan(Caller(*[RuntimeError("down")] * 3))
    assert caught.value.only_failures
    assert (caught.value.usage, caught.value.attempt_usages) == (TokenUsage(), ())
    assert caught.value.defects == ("RuntimeError: down",) * 3


@pytest.mark.parametrize("stop", [TurnStopped("rate_limited"), TimeoutError("over"), asyncio.CancelledError()])
async def test_the_turn_s_own_end_is_no_attempt(stop: BaseException) -> None:
    caller = Caller(stop, MUTATION)
    with pytest.raises(type(stop)):
        await plan(caller)
    assert caller.roles == ["planner"]


async def test_the_budget_is_asked_before_the_provider() -> None:
    budget = RoundBudget(())
    for _ in range(4):
        budget.consume_global()
    caller = Caller(FAULTY, MUTATION)
    with pytest.raises(RoundBudgetExhausted):
        await plan(caller, budget=budget)
    assert caller.roles == ["planner"]


async def test_each_attempt_gets_the_time_that_is_left() -> None:
    caller = Caller(FAULTY, FAULTY, MUTATION)
    times = iter([100.0, 100.0, 140.0, 190.0])
    with pytest.raises(TimeoutError):
        await plan(caller, clock=lambda: next(times))
    assert caller.seconds == [90.0, 50.0]


class TestPrompt:
    async def test_question_and_data_are_apart(self) -> None:
        caller = Caller(MUTATION)
        await plan(caller, text="Which parts?", summary=[{"manager": "PartManager", "description": "a\u2028b"}])
        system, user = caller.asked[0]
        assert (system.role, user.role) == ("system", "user")
        question, _, data = user.content.partition("\n\nDATA\n")
        assert question == "Which parts?"
        assert json.loads(data) == {
            "managers": [{"manager": "PartManager", "description": "a\u2028b"}],
            "conversation": [],
        }

    async def test_it_sees_a_little_of_what_was_said(self) -> None:
        caller = Caller(MUTATION)
        said = [Message("user" if number % 2 else "assistant", f"{number} " + "x" * 1_000) for number in range(9)]
        history = [
            Message("system", "You are an assistant."),
            *said,
            Message("assistant", ""),
            Message("tool", "rows", tool_result=[]),
            Message("user", "Which parts?"),
        ]
        await plan(caller, text="Which parts?", messages=history)
        conversation = json.loads(caller.asked[0][1].content.partition("DATA\n")[2])["conversation"]
        assert [item["text"][:2] for item in conversation] == ["3 ", "4 ", "5 ", "6 ", "7 ", "8 "]
        assert {len(item["text"]) for item in conversation} == {400}
        assert {item["role"] for item in conversation} == {"user", "assistant"}

    async def test_a_long_faulty_plan_is_cut(self) -> None:
        caller = Caller("x" * 50_000, MUTATION)
        await plan(caller)
        assert len(caller.asked[1][-2].content) == 4_000

    async def test_it_is_small(self) -> None:
        caller = Caller(MUTATION)
        await plan(caller, summary=[])
        assert sum(len(message.content) for message in caller.asked[0]) < 2_000

    async def test_its_example_is_a_valid_plan(self) -> None:
        caller = Caller(MUTATION)
        await plan(caller)
        example = next(line for line in caller.asked[0][0].content.splitlines() if line.startswith("{"))
        assert validate_plan(json.loads(example)).intent == "read"


class TestRequest:
    async def test_the_profiles_are_asked(self) -> None:
        with (
            override_settings(GM_CHAT={"provider": "gm_chat.testing.scripted.ScriptedProvider"}),
            ScriptedProvider.playing([FAULTY], [MUTATION]) as script,
        ):
            settings, budget = get_planned_chat_settings(), RoundBudget(())
            result = await plan_request("Delete it.", [Message("user", "Delete it.")], settings, budget, {})
        assert result == PlanningResult(ValidatedPlan("mutation", ()), TokenUsage(20, 10), (USAGE, USAGE))
        assert [request.tool_names for request in script.requests] == [[], []]
        assert script.requests[0].options.response_format == PLAN_SCHEMA

    async def test_it_takes_no_longer_than_evidence_may(self) -> None:
        with (
            override_settings(
                GM_CHAT={
                    "provider": "gm_chat.testing.scripted.ScriptedProvider",
                    "planned": {"evidence_timeout_seconds": 0.05},
                }
            ),
            ScriptedProvider.playing([60.0, MUTATION]),
            pytest.raises(TimeoutError),
        ):
            await plan_request("Parts?", [], get_planned_chat_settings(), RoundBudget(()), {})
