"""Plans at work: how tasks end, what clients see of them, and that nothing goes on when nobody waits any more.

Providers and tools are fakes; ``tests/integration/test_scenarios.py`` plays the same with real ones.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testproject.plans import act, answer, complete, plan, task

from gm_chat.engine.events import Done, Error, Event, TextChunk, ToolCall, ToolResult
from gm_chat.engine.failures import TurnStopped
from gm_chat.engine.messages import Call
from gm_chat.planned.budget import RoundBudget
from gm_chat.planned.catalog import ManagerCatalog
from gm_chat.planned.config import PlannedChatSettings
from gm_chat.planned.executor import CALCULATION_SCHEMA
from gm_chat.planned.ports import ReadPorts, ToolRun
from gm_chat.planned.provider_calls import InvalidProviderRoundError, ProviderRoundResult
from gm_chat.planned.resolver import ManagerResolver
from gm_chat.planned.scheduler import PlannedCoverage, PreparedPlannedTurn, read_events
from gm_chat.planned.validation import read_plan
from gm_chat.providers.base import Message, ProviderError, TokenUsage, ToolCallEvent, ToolDefinition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

USAGE: Final = TokenUsage(10, 5)
ROWS: Final = {"data": [{"id": 7, "price": "2.50"}], "total_count": 1, "has_more": False}
TOOLS: Final = ("search_managers", "get_manager_schema", "find_path", "query", "aggregate", "weather")
INDEX: Final = {"MaterialManager": {"description": "Materials", "fields": ["name"], "relations": []}}
SETTINGS: Final = PlannedChatSettings(True, {}, {}, None)


def call(name: str = "query", /, **args: Any) -> ToolCallEvent:
    return ToolCallEvent("same", name, args or {"manager": "MaterialManager"})


class Outside:
    """Plays rounds per task (``"answer"`` for the synthesizer); notes who was asked with what."""

    def __init__(self, **rounds: Sequence[Any]) -> None:
        self.rounds = {name: iter(steps) for name, steps in rounds.items()}
        self.asked: list[tuple[str, str]] = []
        self.prompts: list[Sequence[Message]] = []
        self.offered: list[list[str]] = []
        self.forms: list[object] = []
        self.ran: list[tuple[str, Mapping[str, Any]]] = []
        self.told: list[tuple[str, Mapping[str, Any]]] = []
        self.results: dict[str, Any] = {}
        self.at_once = self.most_at_once = 0
        self.definitions = [ToolDefinition(name, "A tool.", {"type": "object"}) for name in TOOLS]
        self._ids = map("call-{}".format, itertools.count(1))

    async def __call__(
        self,
        role: str,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        *,
        seconds: float,
        response_format: Mapping[str, Any] | None = None,
    ) -> ProviderRoundResult:
        text = messages[1].content
        whose = text.split(":")[0].removeprefix("Task ") if text.startswith("Task ") else "answer"
        self.asked.append((whose, role))
        self.prompts.append(list(messages))
        self.offered.append([tool.name for tool in tools])
        self.forms.append(response_format)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            async with asyncio.timeout(seconds):
                return await self._play(next(self.rounds[whose]))
        finally:
            self.at_once -= 1

    async def _play(self, step: Any) -> ProviderRoundResult:
        if isinstance(step, BaseException):
            raise step
        if callable(step):
            step = await step()
        await asyncio.sleep(0)
        if isinstance(step, ToolCallEvent):
            return ProviderRoundResult("", step, USAGE)
        return ProviderRoundResult(step, None, USAGE)

    def mint(self, request: ToolCallEvent) -> Call:
        return Call(next(self._ids), request.name, request.args, None, request.id)

    async def run(self, made: Call) -> ToolRun:
        self.ran.append((made.name, made.args))
        result = self.results.get(made.name, ROWS)
        if isinstance(result, Exception):
            return ToolRun({"error": {"code": "internal_error"}}, True, result)
        if callable(result):
            result = await result()
        return ToolRun(result, is_error=isinstance(result, dict) and "error" in result)

    def tell(self, kind: str, payload: Mapping[str, Any]) -> None:
        self.told.append((kind, payload))

    def roles(self, whose: str = "t1") -> list[str]:
        return [role for name, role in self.asked if name == whose]


def prepare(*tasks: Mapping[str, Any], **settings: Any) -> PreparedPlannedTurn:
    chosen = PlannedChatSettings(True, {}, {}, None, **settings) if settings else SETTINGS
    return PreparedPlannedTurn.for_plan(read_plan(plan(*tasks)), chosen, user_text="What do materials cost?")


def ports(outside: Outside, *, index: Mapping[str, Any] = INDEX) -> ReadPorts:
    return ReadPorts(
        call=outside,
        tools=outside,
        resolver=ManagerResolver(index, ManagerCatalog.of({})),
        outline=lambda names: f"- {', '.join(names)}",
        tell=outside.tell,
        instructions="Be kind.",
    )


async def play(outside: Outside, *tasks: Mapping[str, Any], **settings: Any) -> tuple[list[Event], PreparedPlannedTurn]:
    prepared = prepare(*(tasks or (task(),)), **settings)
    async with aclosing(read_events(prepared, ports(outside))) as events:
        return [event async for event in events], prepared


def ended(events: Sequence[Event]) -> Any:
    last = events[-1]
    if isinstance(last, Error):
        return last.code
    assert isinstance(last, Done)
    assert last.orchestration is not None
    return last.orchestration


async def test_a_task_from_its_call_to_the_answer() -> None:
    outside = Outside(t1=[call(), complete()], answer=[answer("It costs 2.50.")])
    events, prepared = await play(outside)
    args = {"manager": "MaterialManager"}
    assert events == [
        ToolCall("call-1", "query", args, "t1"),
        ToolResult("call-1", "query", ROWS, "t1"),
        TextChunk("It costs 2.50."),
        Done(
            TokenUsage(30, 15),
            {
                "status": "complete",
                "coverage": {"resolved": 1, "total": 1},
                "unresolved": [],
                "citations": [
                    {
                        "evidence_id": "t1:query:1",
                        "task_id": "t1",
                        "kind": "query",
                        "name": "query",
                        "args": args,
                        "call_id": "call-1",
                        "records": [7],
                        "total_count": 1,
                    }
                ],
            },
        ),
    ]
    assert outside.asked == [("t1", "simple_executor"), ("t1", "simple_executor"), ("answer", "synthesizer")]
    result = prepared.result
    assert result is not None
    assert (result.statuses, result.reasons, result.coverage) == ({"t1": "resolved"}, {}, PlannedCoverage(1, 1, ()))
    assert result.unresolved_reason("t1") is None
    assert prepared.budget.subtree_count("t1") == 2
    assert prepared.budget.global_count == 3


async def test_what_an_executor_reads() -> None:
    outside = Outside(t1=[call(), complete()], answer=[answer("It costs 2.50.")])
    await play(outside)
    rules, asked = outside.prompts[0]
    assert "MaterialManager" in rules.content
    assert "Be kind." in rules.content
    assert "calculate" not in rules.content  # it has nothing to calculate
    assert asked.content.startswith("Task t1: Find the materials.\n\nDATA\n")
    data = json.loads(asked.content.partition("DATA\n")[2])
    assert data["question"] == "What do materials cost?"
    assert data["requirements"] == [{"requirement_id": "r1", "kind": "query", "description": "Find the materials."}]
    said, result = outside.prompts[1][2:]
    assert said.tool_calls[0].id == result.tool_call_id == "same"
    assert result.tool_result == {"evidence_id": "t1:query:1", "result": ROWS}
    assert outside.offered == [["query", "aggregate"], ["query", "aggregate"], []]


@pytest.mark.parametrize(
    ("rounds", "roles"),
    [
        (["What?", call(), complete()], ["simple_executor", "complex_executor", "complex_executor"]),
        ([InvalidProviderRoundError("two calls"), call(), complete()], ["simple_executor"] + ["complex_executor"] * 2),
        ([complete(), call(), complete()], ["simple_executor"] + ["complex_executor"] * 2),
        ([call("mutate"), call(), complete()], ["simple_executor"] + ["complex_executor"] * 2),
        ([call(), complete("t9:query:1"), complete()], ["simple_executor"] * 2 + ["complex_executor"]),
        ([ProviderError("down"), call(), complete()], ["simple_executor"] + ["fallback_executor"] * 2),
        ([RuntimeError("broken"), call(), complete()], ["simple_executor"] + ["fallback_executor"] * 2),
        ([call(), complete()], ["simple_executor"] * 2),
        # without fruit, with evidence for all: done
        ([call(), "The price is 2.50."], ["simple_executor"] * 2),
        ([call(), call()], ["simple_executor"] * 2),
        ([call(), InvalidProviderRoundError("empty")], ["simple_executor"] * 2),
    ],
)
async def test_who_is_asked(rounds: Sequence[Any], roles: Sequence[str]) -> None:
    outside = Outside(t1=rounds, answer=[answer("It costs 2.50.")])
    events, _ = await play(outside)
    assert ended(events)["status"] == "complete"
    assert outside.roles() == roles
    assert outside.ran == [("query", {"manager": "MaterialManager"})]


@pytest.mark.parametrize(
    ("rounds", "end", "count"),
    [
        (["What?"] * 7, "budget_exhausted", 7),
        ([call(n=n) for n in range(20)], "complete", 15),  # it has evidence when its rounds are over
        ([call("search_managers", query=str(n)) for n in range(20)], "budget_exhausted", 15),
        ([act("block", reason="no such thing")], "manager_unresolved", 1),
        ([call(), act("block", reason="no such thing")], "dependency_blocked", 2),
        ([ProviderError("down")] * 2, "provider_failed", 2),
        ([call(), ProviderError("down"), ProviderError("down")], "complete", 3),
    ],
)
async def test_how_a_task_ends(rounds: Sequence[Any], end: str, count: int) -> None:
    outside = Outside(t1=rounds, answer=[answer("It costs 2.50.", f"t1:query:{count if count == 15 else 1}")])
    events, _ = await play(outside)
    assert (ended(events)["status"] if isinstance(events[-1], Done) else ended(events)) == end
    assert len(outside.roles()) == count


async def test_a_question_about_nothing_costs_no_executor() -> None:
    outside = Outside()
    prepared = prepare(task("t1", "Weather on Mars"))
    async with aclosing(read_events(prepared, ports(outside))) as events:
        assert [ended([event]) async for event in events] == ["manager_unresolved"]
    assert outside.asked == []


async def test_the_first_root_says_why_nothing_was_found() -> None:
    outside = Outside(t1=[ProviderError("down")] * 2, t2=[act("block", reason="?")])
    events, _ = await play(outside, task(), task("t2"), task("t3", depends_on=["t1"]))
    assert ended(events) == "provider_failed"


async def test_a_part_of_the_question() -> None:
    outside = Outside(t1=[call(), complete()], t2=[act("block", reason="?")], answer=[answer("It costs 2.50.")])
    events, prepared = await play(outside, task(), task("t2", "Other materials"), task("t3", depends_on=["t2"]))
    assert ended(events)["status"] == "partial"
    assert ended(events)["coverage"] == {"resolved": 1, "total": 3}
    assert ended(events)["unresolved"] == [
        {"task_id": "t2", "reason": "manager_unresolved"},
        {"task_id": "t3", "reason": "dependency_blocked"},
    ]
    told = outside.prompts[-1][-1].content
    assert '"not_resolved":["Other materials","Find the materials."]' in told
    assert prepared.result is not None
    assert prepared.result.coverage.as_mapping(["t1"]) == {
        "resolved": 1,
        "total": 3,
        "resolved_task_ids": ["t1"],
        "unresolved": ended(events)["unresolved"],
    }


async def test_a_task_builds_on_the_evidence_of_another() -> None:
    outside = Outside(t1=[call(), complete()], t2=[complete("t1:query:1")], answer=[answer("2.50.", "t2:query:1")])
    events, _ = await play(outside, task(), task("t2", depends_on=["t1"]))
    assert ended(events)["coverage"] == {"resolved": 2, "total": 2}
    assert '"results":[{"evidence_id":"t1:query:1"' in outside.prompts[2][1].content
    # the copy is cited as the call that was made
    assert [item["call_id"] for item in ended(events)["citations"]] == ["call-1"]


async def test_an_equal_call_of_two_tasks_is_made_once() -> None:
    release = asyncio.Event()

    async def slow() -> Any:
        await release.wait()
        return ROWS

    async def second() -> Any:
        asyncio.get_running_loop().call_later(0.01, release.set)
        return call()

    outside = Outside(t1=[call(), complete()], t2=[second, complete("t2:query:1")], answer=[answer("2.50.")])
    outside.results["query"] = slow
    events, _ = await play(outside, task(), task("t2"))
    assert len(outside.ran) == 1
    assert [type(event) for event in events] == [ToolCall, ToolResult, TextChunk, Done]
    assert ended(events)["coverage"] == {"resolved": 2, "total": 2}


async def test_a_call_that_failed_may_be_made_again() -> None:
    outside = Outside(t1=[call(), call(), complete()], answer=[answer("It costs 2.50.")])
    results = iter([{"error": {"code": "unknown_field", "message": "no field"}}, ROWS])

    async def next_result() -> Any:
        return next(results)

    outside.results["query"] = next_result
    events, _ = await play(outside)
    assert len(outside.ran) == 2
    assert ended(events)["status"] == "complete"
    assert "no field" in outside.prompts[1][-1].content


async def test_a_refused_call_is_told_how_it_would_be_right_and_that_it_is_the_same() -> None:
    outside = Outside(t1=[call(), call(), call(), complete()], answer=[answer("It costs 2.50.")])
    wrong = {"error": {"code": "unknown_field", "message": "no field", "corrected": {"fields": ["price"]}}}
    results = iter([wrong, wrong, ROWS])

    async def next_result() -> Any:
        return next(results)

    outside.results["query"] = next_result
    await play(outside)
    assert outside.prompts[1][-1].content.endswith('exactly these arguments: {"fields":["price"]}')
    assert "sent that call before" in outside.prompts[2][-1].content


async def test_what_finds_more_than_no_row_is_told_behind_the_evidence() -> None:
    outside = Outside(t1=[call(), complete()], answer=[answer("There is none.")])
    outside.results["query"] = {"data": [], "total_count": 0, "has_more": False, "corrected": {"manager": "Other"}}
    await play(outside)
    assert '"evidence_id"' in outside.prompts[1][-1].content
    assert outside.prompts[1][-1].content.endswith('exactly these arguments: {"manager":"Other"}')


async def test_a_call_that_is_refused_for_the_third_time_is_nobodys_to_repeat() -> None:
    outside = Outside(t1=[call()] * 9)
    outside.results["query"] = {"error": {"code": "unknown_manager", "message": "no such manager"}}
    events, _ = await play(outside)
    assert outside.roles() == ["simple_executor", "complex_executor", "complex_executor", "fallback_executor"]
    assert ended(events) == "budget_exhausted"


async def test_different_refused_calls_use_up_an_executor_s_patience() -> None:
    outside = Outside(t1=[call(manager=f"M{number}") for number in range(9)])
    outside.results["query"] = {"error": {"code": "unknown_manager", "message": "no such manager"}}
    await play(outside)
    assert outside.roles() == ["simple_executor"] + ["complex_executor"] * 3 + ["fallback_executor"] * 3


async def test_a_tool_that_breaks_ends_the_turn_after_its_result() -> None:
    outside = Outside(t1=[call()], t2=[call("aggregate")])
    outside.results["query"] = RuntimeError("broken")
    events = read_events(prepare(task()), ports(outside))
    assert isinstance(await anext(events), ToolCall)
    assert isinstance(await anext(events), ToolResult)
    with pytest.raises(RuntimeError, match="broken"):
        await anext(events)


async def test_a_limit_stops_the_turn_and_all_tasks() -> None:
    outside = Outside(t1=[TurnStopped("rate_limited")], t2=[lambda: asyncio.sleep(60)])
    with pytest.raises(TurnStopped):
        await asyncio.wait_for(play(outside, task(), task("t2")), 2)
    assert outside.at_once == 0


class TestCalculations:
    TASK: Final = task("t1", "Add the materials' prices", "query", "calculation")
    SUM: Final[dict[str, Any]] = {
        "requirement_id": "r2",
        "operation": "sum",
        "operands": [{"evidence_id": "t1:query:1", "path": ["data", "*", "price"]}],
    }

    async def test_the_last_one_resolves_the_task(self) -> None:
        outside = Outside(t1=[call(), act("calculate", **self.SUM)], answer=[answer("2.5", "t1:calculation:1")])
        events, _ = await play(outside, self.TASK)
        first, second = ended(events)["citations"]
        assert first["operation"] == "sum"
        assert first["value"] == "2.50"
        assert first["of"] == [second["evidence_id"]] == ["t1:query:1"]
        assert set(outside.roles()) == {"complex_executor"}

    async def test_who_has_the_rows_and_goes_astray_is_asked_for_it_alone(self) -> None:
        outside = Outside(t1=[call(), "I would add them.", act("calculate", **self.SUM)], answer=[answer("2.5")])
        events, _ = await play(outside, self.TASK)
        assert ended(events)["status"] == "complete"
        assert outside.offered[2] == []
        assert outside.forms[2] is CALCULATION_SCHEMA
        assert outside.forms[:2] == [None, None]

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"requirement_id": "r1"}, "those of kind calculation are: r2"),
            ({"operation": "average"}, "asks for the operation sum"),
            ({"operands": [{"evidence_id": "t2:query:1", "path": ["data"]}]}, "there is no evidence"),
            ({"operands": [{"evidence_id": "t1:query:1", "path": ["data", 0, "weight"]}]}, "weight"),
        ],
    )
    async def test_a_wrong_one_is_corrected(self, change: Mapping[str, Any], words: str) -> None:
        wrong, right = act("calculate", **{**self.SUM, **change}), act("calculate", **self.SUM)
        outside = Outside(t1=[call(), wrong, right], answer=[answer("2.5", "t1:calculation:1")])
        events, _ = await play(outside, self.TASK)
        assert ended(events)["status"] == "complete"
        assert words in outside.prompts[2][-1].content


class TestChildren:
    ROOT: Final = task("t1", "Find the materials", "query", "query")
    SPAWN: Final = act("spawn_children", children=[task("c1", "Materials"), task("c2", "Materials", depends_on=["c1"])])

    async def test_they_work_for_their_root(self) -> None:
        outside = Outside(
            t1=[self.SPAWN, complete("c1:query:1", "c2:query:1")],
            c1=[call(n=1), complete("c1:query:1")],
            c2=[call(n=2), complete("c2:query:1")],
            answer=[answer("It costs 2.50.")],
        )
        events, prepared = await play(outside, self.ROOT)
        assert ended(events)["coverage"] == {"resolved": 1, "total": 1}  # roots alone count
        assert [event.task_id for event in events if isinstance(event, ToolCall)] == ["c1", "c2"]
        assert prepared.budget.subtree_count("t1") == 6  # theirs included
        assert prepared.result is not None
        assert prepared.result.statuses == {"t1": "resolved", "c1": "resolved", "c2": "resolved"}

    async def test_one_that_fails_blocks_the_one_that_builds_on_it(self) -> None:
        outside = Outside(
            t1=[self.SPAWN, call(n=1), call(n=2), complete("t1:query:1", "t1:query:2")],
            c1=[act("block", reason="?")],
            answer=[answer("It costs 2.50.")],
        )
        events, prepared = await play(outside, self.ROOT)
        assert ended(events)["status"] == "complete"
        assert prepared.result is not None
        assert prepared.result.reasons == {"c1": "manager_unresolved", "c2": "dependency_blocked"}

    async def test_a_child_has_no_children(self) -> None:
        spawn = act("spawn_children", children=[task("g1", "Materials")])
        outside = Outside(
            t1=[act("spawn_children", children=[task("c1", "Materials")]), call(n=1), call(n=2), "Done."],
            c1=[spawn, call(), complete("c1:query:1")],
            answer=[answer("It costs 2.50.")],
        )
        events, _ = await play(outside, self.ROOT)
        assert ended(events)["status"] == "complete"


class TestTime:
    async def test_independent_tasks_run_side_by_side_and_no_more_than_allowed(self) -> None:
        names = [f"t{number}" for number in range(1, 7)]
        rounds = {name: [call(n=name), complete(f"{name}:query:1")] for name in names}
        outside = Outside(**rounds, answer=[answer("2.50.")])
        events, _ = await play(outside, *map(task, names), max_concurrent_tasks=3)
        assert ended(events)["coverage"] == {"resolved": 6, "total": 6}
        assert outside.most_at_once == 3

    async def test_each_task_s_events_are_adjacent_pairs(self) -> None:
        names = ["t1", "t2", "t3"]
        rounds = {name: [call(n=name), call(n=f"{name}2"), complete(f"{name}:query:1")] for name in names}
        events, _ = await play(Outside(**rounds, answer=[answer("2.50.")]), *map(task, names))
        for name in names:
            own = [event for event in events if isinstance(event, ToolCall | ToolResult) and event.task_id == name]
            assert [type(event) for event in own] == [ToolCall, ToolResult] * 2
            assert [one.id for one in own[::2]] == [other.id for other in own[1::2]]

    async def test_what_was_found_when_the_time_is_over_is_answered(self) -> None:
        outside = Outside(t1=[call(), complete()], t2=[lambda: asyncio.sleep(60)], answer=[answer("It costs 2.50.")])
        events, _ = await asyncio.wait_for(play(outside, task(), task("t2"), evidence_timeout_seconds=0.2), 5)
        assert ended(events)["unresolved"] == [{"task_id": "t2", "reason": "deadline_exceeded"}]
        assert outside.at_once == 0

    async def test_no_time_is_left(self) -> None:
        outside = Outside()
        prepared = prepare(task())
        prepared.evidence_deadline = 0.0
        async with aclosing(read_events(prepared, ports(outside))) as events:
            assert [ended([event]) async for event in events] == ["deadline_exceeded"]

    async def test_the_answer_has_its_own(self) -> None:
        outside = Outside(t1=[call(), complete()], answer=[lambda: asyncio.sleep(60)])
        events, _ = await asyncio.wait_for(play(outside, synthesis_timeout_seconds=0.1), 5)
        assert ended(events) == "deadline_exceeded"

    async def test_whoever_leaves_ends_all_work(self) -> None:
        outside = Outside(t1=[call(), lambda: asyncio.sleep(60)], t2=[lambda: asyncio.sleep(60)])
        events = read_events(prepare(task(), task("t2")), ports(outside))
        assert isinstance(await anext(events), ToolCall)
        async with asyncio.timeout(1):
            await events.aclose()
        assert outside.at_once == 0

    async def test_a_cancellation_ends_all_work(self) -> None:
        waiting = asyncio.Event()

        async def hang() -> None:
            waiting.set()
            await asyncio.sleep(60)

        outside = Outside(t1=[hang], t2=[lambda: asyncio.sleep(60)])
        turn = asyncio.create_task(play(outside, task(), task("t2")))
        await waiting.wait()
        turn.cancel()
        async with asyncio.timeout(1):
            await asyncio.wait({turn})
        assert turn.cancelled()
        assert outside.at_once == 0


async def test_rounds_for_the_answer_are_kept() -> None:
    outside = Outside(t1=[call("search_managers", query=str(n)) for n in range(20)])
    prepared = prepare(task())
    prepared.budget = RoundBudget(["t1"])
    for _ in range(10):
        prepared.budget.consume_global()
    async with aclosing(read_events(prepared, ports(outside))) as events:
        assert [ended([event]) async for event in events if not isinstance(event, ToolCall | ToolResult)] == [
            "budget_exhausted"
        ]
    assert prepared.budget.global_remaining == 2


async def test_a_plugin_s_reads_are_evidence() -> None:
    outside = Outside(t1=["?", call("weather"), complete()], answer=[answer("It costs 2.50.")])
    events, _ = await play(outside)
    assert ended(events)["citations"][0]["name"] == "weather"


async def test_a_result_that_is_no_evidence_is_refused() -> None:
    outside = Outside(t1=[call(), call(), "What?", *["What?"] * 6])
    outside.results["query"] = {"data": [float("inf")]}
    events, _ = await play(outside)
    assert ended(events) == "budget_exhausted"
    assert "finite" in outside.prompts[1][-1].content


async def test_one_result_for_two_requirements_is_taken_when_the_executor_insists() -> None:
    outside = Outside(t1=[call(), complete(), complete()], answer=[answer("It costs 2.50.")])
    events, _ = await play(outside, task("t1", "Find the materials", "query", "query"))
    assert ended(events)["status"] == "complete"
    assert "fewer results than requirements (r2)" in outside.prompts[2][-1].content


IDS: Final = st.sampled_from(["t1:query:1", "t2:query:1", "t1:path:1", "c1:query:1", "t9:query:1", ""])
PATHS: Final = st.lists(st.sampled_from(["data", "*", "price", 0, 7, "total_count"]), max_size=3)
STEPS: Final = st.one_of(
    st.text(max_size=20),
    st.builds(lambda ids: act("complete", evidence_ids=ids), st.lists(IDS, max_size=3)),
    st.builds(lambda reason: act("block", reason=reason), st.text(max_size=5)),
    st.builds(
        lambda requirement, operation, evidence_id, path: act(
            "calculate",
            requirement_id=requirement,
            operation=operation,
            operands=[{"evidence_id": evidence_id, "path": path}],
        ),
        st.sampled_from(["r1", "r2", "r9"]),
        st.sampled_from(["sum", "count", "ratio"]),
        IDS,
        PATHS,
    ),
    st.builds(lambda name: act("spawn_children", children=[task(name, "Materials")]), st.sampled_from(["c1", "t1"])),
    st.builds(lambda name, n: call(name, n=n), st.sampled_from([*TOOLS, "mutate"]), st.integers(0, 2)),
    st.just(call(n=float("nan"))),
    st.builds(InvalidProviderRoundError, st.just("two calls")),
    st.builds(ProviderError, st.just("down")),
    st.builds(TimeoutError),
)
ANSWERS: Final = st.one_of(
    st.text(max_size=20), st.builds(answer, st.text(max_size=20), IDS), st.builds(ProviderError, st.just("down"))
)


@given(
    first=st.lists(STEPS, max_size=20),
    second=st.lists(STEPS, max_size=20),
    child=st.lists(STEPS, max_size=5),
    answers=st.lists(ANSWERS, min_size=2, max_size=2),
    needs=st.booleans(),
)
async def test_whatever_models_say_the_read_ends_once_and_in_order(
    first: list[Any], second: list[Any], child: list[Any], answers: list[Any], needs: bool
) -> None:
    down = [ProviderError("down")] * 40  # what comes when a script is over
    outside = Outside(t1=[*first, *down], t2=[*second, *down], c1=[*child, *down], answer=[*answers, *down])
    outside.results["find_path"] = []
    tasks = (task("t1", "Materials", "query", "calculation"), task("t2", depends_on=["t1"] if needs else []))
    events, prepared = await play(outside, *tasks)
    assert [isinstance(event, Done | Error) for event in events[-2:]].count(True) == 1
    assert isinstance(events[-1], Done | Error)
    for name in ("t1", "t2", "c1"):
        own = [event for event in events if isinstance(event, ToolCall | ToolResult) and event.task_id == name]
        assert [event.id for event in own[::2]] == [event.id for event in own[1::2]]
    assert "mutate" not in [name for name, _ in outside.ran]
    assert prepared.budget.global_count <= prepared.budget.global_limit
    assert prepared.result is not None
    assert set(prepared.result.statuses.values()) <= {"resolved", "blocked", "budget_exhausted"}
    if isinstance(events[-1], Done):
        assert ended(events)["citations"]


async def test_diagnostics_tell_how_it_went() -> None:
    outside = Outside(t1=[call(), call(), complete()], answer=[answer("It costs 2.50.")])
    await play(outside)
    kinds = {kind for kind, _ in outside.told}
    assert kinds == {
        "plan", "candidate", "route", "budget", "tool_call", "tool_result", "evidence", "task_progress", "latency",
        "coverage", "usage", "terminal",
    }  # fmt: skip
    assert [payload["duplicate"] for kind, payload in outside.told if kind == "tool_call"] == [False, True]
