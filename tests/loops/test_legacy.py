"""Scenarios of the ordinary loop: exact events, what the store was given, what the provider saw."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from gm_chat.engine.events import Done, Error, TextChunk, ToolCall, ToolResult
from gm_chat.engine.messages import marked
from gm_chat.errors import PUBLIC_MESSAGES
from gm_chat.plugin import ToolContext, ToolDefinition, ToolError, ToolSpec
from gm_chat.providers.base import Message, ProviderFilteredError, TokenUsage, ToolCallEvent
from gm_chat.settings import ChatSettings
from gm_chat.testing.scripted import NO_DONE, Round, ScriptedRequest, call, done
from gm_chat.testing.services import MemoryServices, play_turn, tool

if TYPE_CHECKING:
    from collections.abc import Mapping

USAGE = TokenUsage(10, 5)
PARTS = {"data": [{"name": "Bolt"}], "total_count": 1, "has_more": False}


def times(rounds: int) -> TokenUsage:
    return TokenUsage(10 * rounds, 5 * rounds)


def stop(code: str) -> Error:
    return Error(code, PUBLIC_MESSAGES[code])


class Tools:
    """``query`` reads, ``mutate`` writes; both note what they were asked."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, Mapping[str, Any]]] = []
        self.written = 0

    async def query(self, args: Mapping[str, Any], context: ToolContext) -> Any:
        self.ran.append(("query", args))
        if args.get("field") == "wrong":
            raise ToolError("unknown_field", "no field 'wrong'", allowed=["name"])
        return PARTS if not args else {**PARTS, "asked": {key: args[key] for key in args if key != "limit"}}

    async def mutate(self, args: Mapping[str, Any], context: ToolContext) -> Any:
        self.ran.append(("mutate", args))
        if args.get("confirm"):
            return {"status": "confirmation_required", "mutation": "createPart", "input": {}}
        self.written += 1
        return {"status": "executed", "data": {"id": self.written}}

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.ran]


@pytest.fixture
def tools() -> Tools:
    return Tools()


@pytest.fixture
def services(tools: Tools) -> MemoryServices:
    return MemoryServices(tools=[tool(tools.query), tool(tools.mutate, write=True)])


def limited(services: MemoryServices, **settings: Any) -> MemoryServices:
    services.settings = ChatSettings(**settings)
    return services


def roles(request: ScriptedRequest) -> list[str]:
    return [message.role for message in request.messages]


# --- answers ------------------------------------------------------------------------------------------------------


async def test_text_only(services: MemoryServices) -> None:
    turn = await play_turn(services, ["Hel", "lo."])
    assert turn.events == [TextChunk("Hel"), TextChunk("lo."), Done(USAGE)]
    assert turn.closed is not None
    assert [(row.role, row.content) for row in turn.closed.messages] == [("assistant", "Hello.")]
    assert roles(turn.requests[0]) == ["system", "user"]
    assert turn.requests[0].messages[-1] == Message("user", "Which parts?")
    assert turn.requests[0].tool_names == ["query", "mutate"]
    assert turn.requests[0].options.tool_choice == "auto"


async def test_one_call_then_the_answer(services: MemoryServices) -> None:
    turn = await play_turn(services, ["Let me look. ", call("query", call_id="theirs", manager="Part")], ["A bolt."])
    result = {**PARTS, "asked": {"manager": "Part"}}
    id = "id-2"
    assert turn.events == [
        TextChunk("Let me look. "),
        ToolCall(id, "query", {"manager": "Part"}),
        ToolResult(id, "query", result),
        TextChunk("A bolt."),
        Done(times(2)),
    ]
    # the model is shown its own words and its own call id again, and the result as JSON with sorted keys
    _, _, said, answered = turn.requests[1].messages
    assert said.content == "Let me look. "
    assert said.tool_calls == (ToolCallEvent("theirs", "query", {"manager": "Part"}),)
    assert (answered.role, answered.tool_call_id, answered.tool_name) == ("tool", "theirs", "query")
    assert answered.tool_result == result
    text = '{"asked":{"manager":"Part"},"data":[{"name":"Bolt"}],"has_more":false,"total_count":1}'
    shown, reminder = answered.content.split("\n")
    assert shown == marked(text, id)
    assert "naming each row and value" in reminder
    assert turn.closed is not None
    first, second, third = turn.closed.messages
    assert first.content == "Let me look. "
    assert first.tool_calls == [{"id": id, "name": "query", "args": {"manager": "Part"}}]
    assert (second.tool_call_id, second.tool_name, second.tool_result) == (id, "query", result)
    assert third.content == "A bolt."


async def test_a_batch_of_three_runs_side_by_side_and_keeps_its_order() -> None:
    running = 0
    together = asyncio.Event()

    async def slow(args: Mapping[str, Any], context: ToolContext) -> Any:
        nonlocal running
        running += 1
        if running == 3:
            together.set()
        await together.wait()
        await asyncio.sleep(0.01 * (3 - args["n"]))
        return args["n"]

    services = MemoryServices(tools=[tool(slow)])
    turn = await asyncio.wait_for(play_turn(services, [call("slow", n=n) for n in range(3)], ["ok"]), 2)
    ids = ["id-2", "id-3", "id-4"]
    assert turn.events == [
        *(ToolCall(id, "slow", {"n": n}) for n, id in enumerate(ids)),
        *(ToolResult(id, "slow", n) for n, id in enumerate(ids)),
        TextChunk("ok"),
        Done(times(2)),
    ]


async def test_no_text_at_all_is_done(services: MemoryServices) -> None:
    turn = await play_turn(services, [done(1, 0)])
    assert turn.events == [Done(TokenUsage(1, 0))]
    assert turn.closed is not None
    assert turn.closed.messages == []


async def test_blank_text_is_released_but_leaves_no_empty_message(services: MemoryServices) -> None:
    turn = await play_turn(services, ["\n", call("query")], ["ok"])
    assert turn.events[0] == TextChunk("\n")
    assert turn.requests[1].messages[2].content == ""
    assert turn.closed is not None
    assert turn.closed.messages[0].content == ""


async def test_a_filter_that_leaves_nothing_is_an_error_not_an_empty_answer(services: MemoryServices) -> None:
    turn = await play_turn(services, [done(1, 1, finish_reason="filtered")])
    assert isinstance(turn.events[-1], Error)
    assert turn.events[-1].code == "chat_error"
    assert isinstance(services.observer.failures[0][0], ProviderFilteredError)
    turn = await play_turn(services, ["As far as", done(1, 1, finish_reason="filtered")])
    assert turn.events == [TextChunk("As far as"), Done(TokenUsage(1, 1))]


async def test_the_same_provider_id_twice_makes_two_calls_with_different_ids(
    services: MemoryServices, tools: Tools
) -> None:
    batch = [call("query", call_id="x", a=1), call("query", call_id="x", a=2)]
    turn = await play_turn(services, batch, [call("query", call_id="x", a=3)], ["ok"])
    assert [args for _, args in tools.ran] == [{"a": 1}, {"a": 2}, {"a": 3}]
    echoed = [event.id for message in turn.requests[2].messages for event in message.tool_calls]
    answered = [message.tool_call_id for message in turn.requests[2].messages if message.role == "tool"]
    assert echoed == answered
    assert len(set(echoed)) == 3
    assert echoed[0] == "x"


# --- calls that fail ----------------------------------------------------------------------------------------------


async def test_an_unknown_tool_is_answered_with_those_that_exist(services: MemoryServices) -> None:
    turn = await play_turn(services, [call("querry")], ["Sorry."])
    assert turn.events[1] == ToolResult(
        "id-2",
        "querry",
        {
            "error": {
                "code": "unknown_tool",
                "message": "tool 'querry' does not exist; available: query, mutate",
                "allowed": ["query", "mutate"],
            }
        },
    )
    assert turn.events[-1] == Done(times(2))


async def test_a_tool_error_is_shown_to_the_model_which_mends_its_call(services: MemoryServices) -> None:
    turn = await play_turn(services, [call("query", field="wrong")], [call("query", field="name")], ["ok"])
    assert turn.requests[1].results == [
        {"error": {"code": "unknown_field", "message": "no field 'wrong'", "allowed": ["name"]}}
    ]
    assert turn.text == "ok"
    assert turn.events[-1] == Done(times(3))


@pytest.mark.parametrize(("name", "is_told"), [("query", True), ("fetch", False)])
async def test_a_call_that_can_be_right_is_told_in_plain_words_if_the_tool_is_our_own(name: str, is_told: bool) -> None:
    async def refuse(args: Mapping[str, Any], context: ToolContext) -> Any:
        raise ToolError("unknown_field", "no field 'a'", corrected={"fields": ["b"]})

    turn = await play_turn(MemoryServices(tools=[tool(refuse, name=name)]), [call(name, fields=["a"])], ["ok"])
    said = turn.requests[1].messages[-1].content
    assert said.endswith('>\nNow call query with exactly these arguments: {"fields":["b"]}') is is_told
    assert said.endswith(">") is not is_told


@pytest.mark.parametrize("data", [[], [{"n": 0}]])
async def test_a_result_from_no_row_tells_the_call_that_finds_some(data: list[dict[str, int]]) -> None:
    async def query(args: Mapping[str, Any], context: ToolContext) -> Any:
        return {"data": data, "corrected": {"fields": ["b"]}}

    turn = await play_turn(MemoryServices(tools=[tool(query)]), [call("query", fields=["a"])], ["ok"])
    said = turn.requests[1].messages[-1].content
    assert said.endswith('>\nNow call query with exactly these arguments: {"fields":["b"]}')


async def test_cut_off_arguments_never_run_and_count_as_a_failed_round(services: MemoryServices, tools: Tools) -> None:
    limited(services, max_retries_per_message=1)
    cut = call("mutate", error="cut off at the output limit")
    turn = await play_turn(services, [cut], [cut])
    assert tools.ran == []
    result = turn.events[1]
    assert isinstance(result, ToolResult)
    assert result.result == {
        "error": {
            "code": "invalid_arguments",
            "message": "the arguments could not be read: cut off at the output limit. Call 'mutate' again, complete.",
        }
    }
    assert turn.events[-1] == stop("tool_retry_limit")


@pytest.mark.parametrize("args", [None, "x", ["a"], 7])
async def test_arguments_must_be_an_object(services: MemoryServices, tools: Tools, args: Any) -> None:
    turn = await play_turn(services, [ToolCallEvent("c", "query", args)], ["ok"])
    assert turn.events[0] == ToolCall("id-2", "query", {})
    (result,) = turn.requests[1].results
    assert result["error"]["code"] == "invalid_arguments"
    assert type(args).__name__ in result["error"]["message"]
    assert tools.ran == []


async def test_arguments_beyond_all_depth_are_refused(services: MemoryServices, tools: Tools) -> None:
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"a": deep}
    turn = await play_turn(services, [ToolCallEvent("c", "query", deep)], ["ok"])
    assert "nested deeper" in turn.requests[1].results[0]["error"]["message"]
    assert tools.ran == []


async def test_a_denied_tool_is_answered_with_permission_denied(services: MemoryServices, tools: Tools) -> None:
    services.denied = frozenset({"tool query"})
    turn = await play_turn(services, [call("query")], ["You may not."])
    assert turn.requests[1].results[0]["error"]["code"] == "permission_denied"
    assert tools.ran == []


# --- limits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_failed_rounds_are_bounded(services: MemoryServices, retries: int) -> None:
    limited(services, max_retries_per_message=retries)
    turn = await play_turn(services, *[[call("query", field="wrong", n=n)] for n in range(9)])
    assert len(turn.requests) == retries + 1
    assert turn.events[-1] == stop("tool_retry_limit")
    assert [type(event) for event in turn.events[-3:-1]] == [ToolCall, ToolResult]


async def test_a_batch_with_one_good_result_is_no_failed_round(services: MemoryServices) -> None:
    limited(services, max_retries_per_message=0)
    turn = await play_turn(services, [call("query", field="wrong"), call("query", field="name")], ["ok"])
    assert turn.text == "ok"


async def test_useful_rounds_do_not_count_as_retries(services: MemoryServices) -> None:
    turn = await play_turn(services, *[[call("query", n=str(n))] for n in range(6)], ["ok"])
    assert turn.events[-1] == Done(times(7))


@pytest.mark.parametrize(
    ("settings", "rounds"),
    [
        ({}, 13),
        ({"max_total_rounds_per_message": 2}, 2),
        ({"max_retries_per_message": 1, "max_mutations_per_message": 1}, 4),
    ],
)
async def test_rounds_are_capped(services: MemoryServices, settings: dict[str, int], rounds: int) -> None:
    limited(services, **settings)
    turn = await play_turn(services, *[[call("query", n=str(n))] for n in range(20)])
    assert len(turn.requests) == rounds
    assert turn.events[-1] == stop("turn_limit")
    assert turn.closed is not None
    assert turn.closed.usage == times(rounds)


@pytest.mark.parametrize("allowed", [0, 1, 2])
async def test_mutations_are_bounded_and_the_excess_one_never_runs(
    services: MemoryServices, tools: Tools, allowed: int
) -> None:
    limited(services, max_mutations_per_message=allowed)
    rounds: list[Round] = [["Now. ", call("mutate", n=n)] for n in range(5)]
    turn = await play_turn(services, *rounds)
    assert tools.written == allowed
    assert turn.events[-2:] == [TextChunk("Now. "), stop("mutation_limit")]
    assert turn.closed is not None
    assert [row.role for row in turn.closed.messages] == ["assistant", "tool"] * allowed + ["assistant"]
    assert not turn.closed.messages[-1].tool_calls


@pytest.mark.parametrize("second", ["query", "mutate", "unknown"])
async def test_a_batch_with_a_mutation_is_refused_whole(services: MemoryServices, tools: Tools, second: str) -> None:
    turn = await play_turn(services, ["I will. ", call(second, n=1), call("mutate", n=2)])
    assert tools.ran == []
    assert turn.events == [TextChunk("I will. "), stop("mutation_batch_unsupported")]
    assert turn.closed is not None
    assert [(row.content, list(row.tool_calls)) for row in turn.closed.messages] == [("I will. ", [])]


async def test_a_mutation_alone_runs(services: MemoryServices, tools: Tools) -> None:
    turn = await play_turn(services, [call("mutate", n=1)], ["Done."])
    assert tools.written == 1
    assert turn.events[1] == ToolResult("id-2", "mutate", {"status": "executed", "data": {"id": 1}})


async def test_a_mutation_that_needs_approval_ends_the_turn(services: MemoryServices, tools: Tools) -> None:
    turn = await play_turn(services, ["I will. ", call("mutate", confirm=True)])
    assert tools.written == 0
    assert turn.events == [
        TextChunk("I will. "),
        ToolCall("id-2", "mutate", {"confirm": True}),
        stop("confirmation_required_transport"),
    ]
    assert turn.closed is not None
    assert turn.closed.messages[1].tool_result["error"]["code"] == "confirmation_required_transport"
    assert services.observer.tools == []


# --- the answer round ---------------------------------------------------------------------------------------------


async def test_a_repeated_read_comes_from_memory_and_the_answer_is_asked_for(
    services: MemoryServices, tools: Tools
) -> None:
    turn = await play_turn(services, [call("query", a=1, b=2)], [call("query", b=2, a=1)], ["A bolt."])
    assert tools.names == ["query"]
    assert [request.options.tool_choice for request in turn.requests] == ["auto", "auto", "none"]
    assert turn.requests[2].tool_names == ["query", "mutate"]
    first, second = turn.requests[2].results
    assert first == second
    assert roles(turn.requests[2]) == ["system", "user", "assistant", "tool", "assistant", "tool", "user"]
    assert turn.requests[2].messages[-1].content.startswith("Answer my question now")
    assert turn.closed is not None
    assert [row.role for row in turn.closed.messages] == ["assistant", "tool", "assistant", "tool", "assistant"]
    assert turn.events[-2:] == [TextChunk("A bolt."), Done(times(3))]
    assert services.observer.log.count("tool query") == 1


async def test_another_limit_with_the_same_rows_is_a_repeat(services: MemoryServices, tools: Tools) -> None:
    turn = await play_turn(services, [call("query", f="x", limit=10)], [call("query", f="x", limit=20)], ["ok"])
    assert tools.names == ["query", "query"]
    assert turn.requests[2].options.tool_choice == "none"


async def test_the_same_rows_for_another_question_are_news(services: MemoryServices) -> None:
    async def material(args: Mapping[str, Any], context: ToolContext) -> Any:
        return {"material": "Steel"}

    services.tools = [tool(material)]
    turn = await play_turn(services, [call("material", part="A")], [call("material", part="B")], ["Both steel."])
    assert turn.requests[2].options.tool_choice == "auto"


async def test_a_repeat_beside_something_new_goes_on(services: MemoryServices, tools: Tools) -> None:
    turn = await play_turn(
        services, [call("query", a="1")], [call("query", a="1"), call("query", a="2")], [call("query", a="3")], ["ok"]
    )
    assert tools.names == ["query"] * 3
    assert {request.options.tool_choice for request in turn.requests} == {"auto"}


async def test_equal_reads_in_one_batch_run_once(services: MemoryServices, tools: Tools) -> None:
    turn = await play_turn(services, [call("query", a=1), call("query", a=1)], ["ok"])
    assert tools.names == ["query"]
    first, second = turn.requests[1].results
    assert first == second
    assert turn.requests[1].options.tool_choice == "auto"


async def test_errors_are_not_remembered(services: MemoryServices, tools: Tools) -> None:
    turn = await play_turn(services, [call("query", field="wrong")], [call("query", field="wrong")], ["Sorry."])
    assert tools.names == ["query", "query"]
    assert turn.requests[2].options.tool_choice == "auto"


async def test_a_model_that_sends_a_refused_call_again_is_told_so(services: MemoryServices) -> None:
    wrong = call("query", field="wrong")
    turn = await play_turn(services, [wrong], [call("query", field="wrong", n=2)], [wrong], ["Sorry."])
    last = [request.messages[-1] for request in turn.requests]
    assert [message.role for message in last] == ["user", "tool", "tool", "user"]
    assert "sent that call before" in last[3].content
    assert all("sent that call before" not in row.content for row in services.store.closed[-1].messages)


async def test_a_refused_change_that_is_sent_again_is_told_as_well_but_not_one_that_came_twice_at_once() -> None:
    async def mutate(args: Mapping[str, Any], context: ToolContext) -> Any:
        raise ToolError("mutation_not_allowed", "not allowed")

    async def query(args: Mapping[str, Any], context: ToolContext) -> Any:
        raise ToolError("unknown_field", "no such field")

    services = MemoryServices(tools=[tool(mutate, write=True), tool(query)])
    change, wrong = call("mutate", n=1), call("query", n=1)
    turn = await play_turn(services, [change], [change], ["Sorry."])
    assert "sent that call before" in turn.requests[2].messages[-1].content
    turn = await play_turn(services, [wrong, wrong], ["Sorry."])
    assert turn.requests[1].messages[-1].role == "tool"


async def test_a_write_makes_a_read_worth_repeating(services: MemoryServices, tools: Tools) -> None:
    turn = await play_turn(services, [call("query")], [call("mutate", n=1)], [call("query")], ["ok"])
    assert tools.names == ["query", "mutate", "query"]
    assert turn.requests[3].options.tool_choice == "auto"


async def test_a_call_in_the_answer_round_is_refused_and_ends_the_loop(services: MemoryServices, tools: Tools) -> None:
    late = call("query", a="2")
    turn = await play_turn(services, ["I see. ", call("query", a="1")], [call("query", a="1")], [late])
    assert tools.names == ["query"]
    assert turn.events[-3:-1] == [
        ToolCall("id-4", "query", {"a": "2"}),
        ToolResult(
            "id-4",
            "query",
            {"error": {"code": "no_more_calls", "message": "No further tool call is possible in this turn."}},
        ),
    ]
    assert turn.events[-1] == Done(times(3))
    assert turn.closed is not None
    assert turn.closed.messages[-1].tool_result["error"]["code"] == "no_more_calls"


async def test_a_call_in_the_answer_round_without_any_text_is_the_retry_limit(
    services: MemoryServices, tools: Tools
) -> None:
    turn = await play_turn(services, [call("query")], [call("query")], [call("mutate", n=1), call("query")])
    assert turn.events[-1] == stop("tool_retry_limit")
    assert tools.written == 0


# --- recovery prompts ---------------------------------------------------------------------------------------------


async def test_no_recovery_unless_it_is_asked_for(services: MemoryServices) -> None:
    turn = await play_turn(services, ['{"name": "query", "parameters": {}}'])
    assert len(turn.requests) == 1


async def test_an_answer_without_tools_is_asked_again_once(services: MemoryServices, tools: Tools) -> None:
    limited(services, recover_missing_tool_calls=True)
    turn = await play_turn(services, ['{"name": "query", "parameters": {}}'], ["Still no call."])
    assert len(turn.requests) == 2
    assert roles(turn.requests[1]) == ["system", "user", "assistant", "user"]
    assert "tools" in turn.requests[1].messages[-1].content
    assert tools.ran == []
    assert turn.events[-1] == Done(times(2))
    assert turn.closed is not None
    assert [row.role for row in turn.closed.messages] == ["assistant", "assistant"]


async def test_silence_after_tools_is_asked_for_an_answer_once(services: MemoryServices) -> None:
    limited(services, recover_missing_tool_calls=True)
    turn = await play_turn(services, [call("query")], [], ["A bolt."])
    assert turn.text == "A bolt."
    assert turn.requests[2].options.tool_choice == "none"
    assert roles(turn.requests[2]) == ["system", "user", "assistant", "tool", "user"]
    turn = await play_turn(services, [call("query")], [], [])
    assert turn.events[-1] == Done(times(3))


async def test_a_third_time_the_same_refused_call_is_asked_for_an_answer_instead(services: MemoryServices) -> None:
    limited(services, recover_missing_tool_calls=True, max_retries_per_message=5)
    wrong = call("query", field="wrong")
    turn = await play_turn(services, [wrong], [wrong], [wrong], ["There is no such field."])
    assert turn.events[-1] == Done(times(4))
    assert turn.requests[2].options.tool_choice == "auto"
    assert turn.requests[3].options.tool_choice == "none"
    assert "could not look it up" in turn.requests[3].messages[-1].content


async def test_a_refused_change_is_no_change_whatever_the_model_would_say() -> None:
    async def mutate(args: Mapping[str, Any], context: ToolContext) -> Any:
        if args["id"] > 1:
            raise ToolError("not_found", "no such row", look_up={"manager": "Part"})
        return {"status": "executed"}

    services = MemoryServices(tools=[tool(mutate, write=True)])
    limited(services, recover_missing_tool_calls=True, max_retries_per_message=5, max_mutations_per_message=9)
    wrong = [call("mutate", id=2)]
    turn = await play_turn(services, wrong, wrong, wrong, ["It was not changed."])
    told = turn.requests[1].messages[-1].content
    assert told.endswith(
        '>\nThat call changed nothing. Now call query with exactly these arguments: {"manager":"Part"}'
    )
    assert turn.requests[3].options.tool_choice == "none"
    assert "The last change failed" in turn.requests[3].messages[-1].content
    limited(services, recover_missing_tool_calls=True, max_mutations_per_message=9, max_total_rounds_per_message=3)
    for first, second, is_changed in ((2, 1, True), (1, 2, False)):
        turn = await play_turn(services, [call("mutate", id=first)], [call("mutate", id=second)], ["So."])
        last = turn.requests[2].messages[-1].content
        assert ("The last change failed" not in last) is is_changed
        assert "othing was changed" not in last  # one of the two was made


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([{"id": 7}], 'with exactly these arguments: {"input":{"id":7,"price":2},"mutation":"updatePart"}'),
        ([{"id": 7}, {"id": 8}], 'is meant in input: {"input":{"price":2},"mutation":"updatePart"}'),
        ([{"name": "Bolt"}], 'is meant in input: {"input":{"price":2},"mutation":"updatePart"}'),
        ([], ">"),
    ],
)
async def test_a_change_goes_on_when_its_row_was_looked_up(rows: list[dict[str, Any]], told: str) -> None:
    async def mutate(args: Mapping[str, Any], context: ToolContext) -> Any:
        if args["input"]["id"] == "Bolt":
            raise ToolError("invalid_value", "no id", look_up={"manager": "PartManager"})
        return {"status": "executed"}

    async def query(args: Mapping[str, Any], context: ToolContext) -> Any:
        return {"data": rows}

    services = MemoryServices(tools=[tool(mutate, write=True), tool(query)])
    limited(services, max_mutations_per_message=9, max_retries_per_message=9)
    wrong = call("mutate", mutation="updatePart", input={"id": "Bolt", "price": 2}, expected={"price": 2})
    other, looked, again = (
        call("query", manager=name, n=number)
        for number, name in enumerate(("OrderManager", "PartManager", "PartManager"))
    )
    turn = await play_turn(services, [wrong], [looked], [again], ["So."])
    assert turn.requests[2].messages[-1].content.endswith(told)
    assert "mutate" not in turn.requests[3].messages[-1].content  # it is said once
    turn = await play_turn(services, [wrong], [other], ["So."])
    assert "mutate" not in turn.requests[2].messages[-1].content  # another manager's rows have other ids
    right = call("mutate", mutation="updatePart", input={"id": 7, "price": 2})
    turn = await play_turn(services, [wrong], [right], [looked], ["So."])
    assert "Now call" not in turn.requests[3].messages[-1].content


async def test_used_up_failures_are_followed_by_an_answer(services: MemoryServices) -> None:
    wrong = [[call("query", field="wrong", n=number)] for number in range(3)]
    limited(services, recover_missing_tool_calls=True, max_retries_per_message=2)
    turn = await play_turn(services, *wrong, ["I could not look that up."])
    assert turn.text == "I could not look that up."
    assert [request.options.tool_choice for request in turn.requests] == ["auto", "auto", "auto", "none"]
    turn = await play_turn(services, *wrong, [call("query", n=9)])  # a call all the same: refused, no answer
    assert turn.events[-1] == stop("tool_retry_limit")
    turn = await play_turn(services, *wrong[:2], [call("query", n=9)], ["A bolt."])
    assert turn.text == "A bolt."
    limited(services, max_retries_per_message=2)
    turn = await play_turn(services, *wrong)
    assert turn.events[-1] == stop("tool_retry_limit")


async def test_one_retry_is_left_where_one_is_allowed(services: MemoryServices) -> None:
    limited(services, recover_missing_tool_calls=True, max_retries_per_message=1)
    turn = await play_turn(services, [call("query", field="wrong")], [call("query", n=1)], ["A bolt."])
    assert turn.text == "A bolt."


async def test_each_refused_call_is_counted_by_itself(services: MemoryServices) -> None:
    limited(services, recover_missing_tool_calls=True, max_retries_per_message=9, max_total_rounds_per_message=9)
    one, other, right = call("query", field="wrong"), call("query", field="wrong", n=2), call("query", n=3)
    turn = await play_turn(services, [one], [one], [other], [other], [one, right], ["A bolt."])
    assert {request.options.tool_choice for request in turn.requests} == {"auto"}


async def test_the_last_round_is_for_the_answer(services: MemoryServices) -> None:
    limited(services, recover_missing_tool_calls=True, max_total_rounds_per_message=3)
    turn = await play_turn(services, [call("query", a=1)], [call("query", a=2)], ["A bolt."])
    assert turn.text == "A bolt."
    assert [request.options.tool_choice for request in turn.requests] == ["auto", "auto", "none"]
    limited(services, max_total_rounds_per_message=3)
    turn = await play_turn(services, *([call("query", a=number)] for number in range(3)))
    assert turn.events[-1] == stop("turn_limit")


async def test_a_look_at_names_alone_is_no_look_at_the_data() -> None:
    async def read(args: Mapping[str, Any], context: ToolContext) -> Any:
        return PARTS

    names = ToolSpec(definition=ToolDefinition("names", "", {"type": "object"}), run=read, reads_records=False)
    services = limited(MemoryServices(tools=[names, tool(read)]), recover_missing_tool_calls=True)
    turn = await play_turn(services, [call("names")], ["Part is in charge."], [call("read")], ["A bolt."])
    assert "about records" in turn.requests[2].messages[-1].content
    assert turn.events[-1] == Done(times(4))
    turn = await play_turn(services, [call("names")], [call("names")], ["There are parts."])  # asked for its answer
    assert turn.text == "There are parts."
    assert turn.events[-1] == Done(times(3))
    turn = await play_turn(services, [call("names")], ["There are parts."], ["There are parts."])
    assert turn.events[-1] == Done(times(3))
    turn = await play_turn(services, [call("names")], [call("read")], ["A bolt."])
    assert turn.events[-1] == Done(times(3))


async def test_recovery_takes_no_round_that_is_not_there(services: MemoryServices) -> None:
    limited(services, recover_missing_tool_calls=True, max_total_rounds_per_message=1)
    turn = await play_turn(services, ["Hello."])
    assert turn.events == [TextChunk("Hello."), Done(USAGE)]


async def test_nothing_is_recovered_where_there_are_no_tools() -> None:
    services = limited(MemoryServices(), recover_missing_tool_calls=True)
    turn = await play_turn(services, ["Hello."])
    assert len(turn.requests) == 1
    assert turn.requests[0].tool_names == []


# --- incomplete streams -------------------------------------------------------------------------------------------


async def test_calls_of_an_incomplete_stream_never_run(services: MemoryServices, tools: Tools) -> None:
    turn = await play_turn(services, ["I will ", call("mutate", n=1), NO_DONE])
    assert tools.ran == []
    assert turn.events[0] == TextChunk("I will ")
    assert isinstance(turn.events[1], Error)
    assert len(turn.events) == 2
