"""Answers: their form, their evidence, and that no figure in them is invented."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.engine.failures import TurnStopped
from gm_chat.errors import planned_public_error, public_chat_error
from gm_chat.planned.budget import RoundBudget, RoundBudgetExhausted
from gm_chat.planned.config import get_planned_chat_settings
from gm_chat.planned.evidence import EvidenceRecord, EvidenceStore, canonical_call_identity
from gm_chat.planned.provider_calls import ProviderRoundResult
from gm_chat.planned.synthesis import (
    ANSWER_SCHEMA,
    MAX_EVIDENCE_CHARACTERS,
    SynthesisFailedError,
    SynthesisResult,
    make_answer,
    synthesize_answer,
)
from gm_chat.providers.base import Message, ProviderQuotaError, TokenUsage
from gm_chat.testing.scripted import ScriptedProvider

USAGE = TokenUsage(10, 5)
CALL = canonical_call_identity("query", {"manager": "PartManager"})
RECORD = EvidenceRecord.create(
    "t1:query:1",
    "t1",
    "query",
    CALL,
    None,
    {"data": [{"name": "Bolt", "price": "2.50"}], "total_count": 1, "has_more": False},
)
OTHER = EvidenceRecord.create("t2:path:1", "t2", "path", "call", None, ["material"])
COVERAGE = {"resolved": 1, "total": 2}


def answer(text: str = "A bolt costs 2.50.", *ids: str, **more: Any) -> str:
    return json.dumps({"answer": text, "evidence_ids": list(ids) or ["t1:query:1"], **more})


class Caller:
    """Plays texts and exceptions; remembers what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.roles: list[str] = []
        self.asked: list[Sequence[Message]] = []

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
        assert response_format is ANSWER_SCHEMA
        self.roles.append(role)
        self.asked.append(messages)
        given_answer = self.answers.pop(0)
        if isinstance(given_answer, BaseException):
            raise given_answer
        return ProviderRoundResult(given_answer, None, USAGE)


async def synthesize(
    caller: Caller, records: Sequence[EvidenceRecord] = (RECORD, OTHER), budget: RoundBudget | None = None
) -> SynthesisResult:
    return await make_answer(
        "What costs a part?", records, COVERAGE, budget or RoundBudget(["t1"]), call=caller, seconds=30
    )


async def test_an_answer_that_rests_on_its_evidence() -> None:
    caller, budget = Caller(answer(" A bolt costs 2.50. \n")), RoundBudget(["t1"])
    result = await synthesize(caller, budget=budget)
    assert result == SynthesisResult("A bolt costs 2.50.", ("t1:query:1",), USAGE, (USAGE,))
    assert (caller.roles, budget.global_count) == (["synthesizer"], 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A bolt costs 2.50.", "not JSON"),
        ("[]", "one JSON object"),
        (json.dumps({"answer": "a"}), "exactly the keys answer and evidence_ids"),
        (answer(sources=[]), "exactly the keys answer and evidence_ids"),
        ('{"answer": "a", "answer": "b", "evidence_ids": ["t1:query:1"]}', 'the key "answer" stands twice'),
        (answer(" "), "answer must be a text that is not blank"),
        (json.dumps({"answer": 1, "evidence_ids": ["t1:query:1"]}), "answer must be a text"),
        (json.dumps({"answer": "a", "evidence_ids": []}), "one id or more"),
        (json.dumps({"answer": "a", "evidence_ids": "t1:query:1"}), "one id or more"),
        (json.dumps({"answer": "a", "evidence_ids": [1]}), "one id or more"),
        (answer("a", "t1:query:1", "t1:query:1"), "each id once"),
        (answer("a", "t9:query:1"), '"t9:query:1", which is none of t1:query:1, t2:path:1'),
        (answer("A bolt costs 3.50, since 2019."), 'the answer states "3.50", "2019"'),
    ],
)
async def test_a_defect_is_named_to_the_fallback(text: str, words: str) -> None:
    caller = Caller(text, answer())
    result = await synthesize(caller)
    assert (result.answer, result.is_cut) == ("A bolt costs 2.50.", False)
    assert result.attempt_usages == (USAGE, USAGE)
    assert caller.roles == ["synthesizer", "fallback_executor"]
    shown, notice = caller.asked[1][-2:]
    assert (shown.role, shown.content) == ("assistant", text)
    assert words in notice.content


async def test_what_still_has_no_source_is_taken_out() -> None:
    caller = Caller(answer("It costs 3.50."), answer("A bolt costs 2.50. A nut costs 9.90."))
    result = await synthesize(caller)
    assert result == SynthesisResult(
        "A bolt costs 2.50.", ("t1:query:1",), TokenUsage(20, 10), (USAGE, USAGE), is_cut=True
    )


async def test_an_answer_of_which_nothing_is_left_is_none() -> None:
    with pytest.raises(SynthesisFailedError) as caught:
        await synthesize(Caller(answer("It costs 3.50."), answer("It costs 4.50.")))
    assert (caught.value.usage, caught.value.attempt_usages) == (TokenUsage(20, 10), (USAGE, USAGE))
    assert len(caught.value.defects) == 2
    assert str(caught.value) == "synthesis_failed"
    assert public_chat_error(caught.value) == planned_public_error("synthesis_failed")


async def test_the_first_answer_helps_where_the_fallback_fails() -> None:
    result = await synthesize(Caller(answer("A bolt costs 2.50. A nut costs 9.90."), ProviderQuotaError("down")))
    assert (result.answer, result.is_cut, result.usage) == ("A bolt costs 2.50.", True, USAGE)


@pytest.mark.parametrize("failures", [[RuntimeError("a"), ProviderQuotaError("b")], ["no", "neither"]])
async def test_two_failures_are_the_end(failures: list[Any]) -> None:
    caller = Caller(*failures)
    with pytest.raises(SynthesisFailedError):
        await synthesize(caller)
    assert caller.answers == []


@pytest.mark.parametrize("stop", [TurnStopped("rate_limited"), TimeoutError("over")])
async def test_the_turn_s_own_end_is_no_attempt(stop: Exception) -> None:
    caller = Caller(stop, answer())
    with pytest.raises(type(stop)):
        await synthesize(caller)
    assert caller.roles == ["synthesizer"]


async def test_without_evidence_nobody_is_asked() -> None:
    caller, budget = Caller(answer()), RoundBudget(["t1"])
    with pytest.raises(SynthesisFailedError):
        await synthesize(caller, [], budget)
    assert (caller.roles, budget.global_count) == ([], 0)


async def test_a_budget_that_is_spent_says_what_was_spent() -> None:
    budget = RoundBudget(["t1"])
    for _ in range(17):
        budget.consume_global()
    with pytest.raises(RoundBudgetExhausted) as caught:
        await synthesize(Caller("x", answer()), budget=budget)
    assert (caught.value.usage, caught.value.attempt_usages) == (USAGE, (USAGE,))


class TestPrompt:
    async def data(self, *records: EvidenceRecord) -> Any:
        caller = Caller(answer("Done.", records[0].evidence_id))
        await synthesize(caller, records)
        question, _, data = caller.asked[0][1].content.partition("\n\nDATA\n")
        assert question == "What costs a part?"
        return json.loads(data)

    async def test_results_come_with_their_calls(self) -> None:
        data = await self.data(RECORD, OTHER)
        assert data["results"] == [
            {
                "evidence_id": "t1:query:1",
                "call": {"name": "query", "args": {"manager": "PartManager"}},
                "result": RECORD.payload(),
            },
            {"evidence_id": "t2:path:1", "call": "call", "result": ["material"]},
        ]
        assert data["coverage"] == COVERAGE

    async def test_rows_that_do_not_fit_are_left_out_and_counted(self) -> None:
        rows = [{"name": "x" * 1_000} for _ in range(100)]
        record = EvidenceRecord.create("a", "t", "query", "c", None, {"data": rows, "total_count": 100})
        schema = EvidenceRecord.create("b", "t", "schema", "c", None, ["y" * 30_000])
        data = await self.data(record, schema)
        result = data["results"][0]["result"]
        assert result["rows_left_out"] + len(result["data"]) == result["total_count"] == 100
        assert result["data"]
        assert len(json.dumps(data)) < MAX_EVIDENCE_CHARACTERS + 1_000
        assert isinstance(data["results"][1]["result"], str)

    async def test_one_row_too_large_is_left_out(self) -> None:
        record = EvidenceRecord.create("a", "t", "query", "c", None, {"data": [{"x": "y" * 50_000}], "total_count": 1})
        assert (await self.data(record))["results"][0]["result"] == {"data": [], "total_count": 1, "rows_left_out": 1}

    async def test_it_is_small(self) -> None:
        caller = Caller(answer())
        await synthesize(caller)
        assert sum(len(message.content) for message in caller.asked[0]) < 2_000


class TestRequest:
    @pytest.mark.parametrize("as_store", [True, False])
    async def test_the_profiles_are_asked(self, as_store: bool) -> None:
        store = EvidenceStore()
        store.add(RECORD)
        with (
            override_settings(GM_CHAT={"provider": "gm_chat.testing.scripted.ScriptedProvider"}),
            ScriptedProvider.playing(["no JSON"], [answer()]) as script,
        ):
            result = await synthesize_answer(
                "Costs?", store if as_store else [RECORD], COVERAGE, get_planned_chat_settings(), RoundBudget(["t1"])
            )
        assert (result.answer, result.usage) == ("A bolt costs 2.50.", TokenUsage(20, 10))
        assert [request.options.response_format for request in script.requests] == [ANSWER_SCHEMA] * 2

    async def test_it_takes_no_longer_than_synthesis_may(self) -> None:
        chat = {
            "provider": "gm_chat.testing.scripted.ScriptedProvider",
            "planned": {"synthesis_timeout_seconds": 0.05},
        }
        with override_settings(GM_CHAT=chat), ScriptedProvider.playing([60.0, answer()]), pytest.raises(TimeoutError):
            await synthesize_answer("Costs?", [RECORD], {}, get_planned_chat_settings(), RoundBudget(["t1"]))


LIES = st.lists(
    st.one_of(
        st.integers(0, 10**6).map(str),
        st.decimals(0, 1000, places=2).map(str),
        st.sampled_from(["2.50", "1", "Bolt", "costs", ". ", ".\n", "\n2. ", '"Nut"', "seven ", "2026-01-01", " and "]),
    ),
    max_size=20,
).map(" ".join)


@given(LIES, LIES)
async def test_no_number_gets_through_that_is_not_in_the_evidence(first: str, second: str) -> None:
    try:
        result = await synthesize(Caller(answer(first), answer(second)), [RECORD])
    except SynthesisFailedError:
        return
    text = re.sub(r"(?m)^[ \t]*\d{1,3}[.)](?=\s)", "", result.answer)  # the numbers of a list
    assert set(re.findall(r"[0-9][0-9.,-]*[0-9]|[0-9]", text)) <= {"1", "2.50", "2.5", "01", "1.0", "1.00"}
    assert '"Nut"' not in result.answer
    assert "seven" not in result.answer
