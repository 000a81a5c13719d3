"""What turns are charged, when they are refused, and what comes back. (Faults L1 and L2.)"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from gm_chat.engine import TurnRunner
from gm_chat.engine.events import ConfirmMutation, Done, Error, TextChunk, ToolCall
from gm_chat.engine.failures import TurnStopped
from gm_chat.engine.ports import TurnRequest
from gm_chat.errors import PUBLIC_MESSAGES
from gm_chat.loops import legacy_loop
from gm_chat.plugin import Actor, Charge, Tally
from gm_chat.providers.base import ProviderOverloadedError, ProviderTimeoutError, TokenUsage
from gm_chat.settings import ChatSettings, RateLimitSettings
from gm_chat.testing.memory_counts import MemoryRateLimitStore
from gm_chat.testing.scripted import NO_DONE, ScriptedProvider, call, done
from gm_chat.testing.services import OWNER, MemoryServices, PlayedTurn, ask, play_turn, tool, word

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gm_chat.plugin import ToolContext

START = 7_200_000.0


class Clock:
    now = START + 100

    def __call__(self) -> float:
        return self.now


def limited(store: Any = None, *, more: Mapping[str, Any] | None = None, **limits: Any) -> MemoryServices:
    settings = ChatSettings(rate_limit=RateLimitSettings(**{"requests": None, **limits}), **(more or {}))
    return MemoryServices(settings=settings, counts=store or MemoryRateLimitStore(Clock()), tools=[tool(look)])


async def look(args: Mapping[str, Any], context: ToolContext) -> Any:
    """Look something up."""
    return {"n": args.get("n")}


def spent(services: MemoryServices) -> list[int]:
    store = services.counts
    assert isinstance(store, MemoryRateLimitStore)
    return list(store.used.values())


def refusal(turn: PlayedTurn) -> Error:
    last = turn.events[-1]
    assert isinstance(last, Error)
    assert (last.code, last.message) == ("rate_limited", PUBLIC_MESSAGES["rate_limited"])
    return last


# --- requests -----------------------------------------------------------------------------------------------------


async def test_one_turn_is_one_request_whatever_its_rounds() -> None:
    services = limited(requests=2)
    await play_turn(services, [call("look", n=1)], [call("look", n=2)], ["Found."])
    assert spent(services) == [1]
    await play_turn(services, ["Hello."])
    turn = await play_turn(services, ["Not said."])
    assert refusal(turn).details == {"retry_after_seconds": 3500}
    assert (turn.requests, turn.closed) == ([], None)
    assert spent(services) == [2]


async def test_the_next_window_grants_anew() -> None:
    services = limited(requests=1)
    await play_turn(services, ["Hello."])
    services.counts._clock.now += 3500  # type: ignore[attr-defined]  # the test's own clock
    assert isinstance((await play_turn(services, ["Hello again."])).events[-1], Done)


async def test_without_a_budget_no_store_is_asked() -> None:
    services = limited(requests=0, tokens=-5)
    await play_turn(services, [call("look", n=1)], ["Found."])
    assert services.counts.calls == 0  # type: ignore[attr-defined]  # the memory's


async def test_requests_alone_ask_once_per_turn() -> None:
    services = limited(requests=9)
    await play_turn(services, [call("look", n=1)], ["Found."])
    assert services.counts.calls == 1  # type: ignore[attr-defined]  # the memory's


async def test_a_message_that_is_refused_otherwise_is_not_charged() -> None:
    services = limited(requests=9)
    runner = TurnRunner(services, legacy_loop)
    with ScriptedProvider.playing(["One ", asyncio.Event().wait]):
        turn_id = await runner.start(ask("Count"))
        for _ in range(3):
            with pytest.raises(TurnStopped, match="turn_in_progress"):
                await runner.start(ask("And?"))
        await runner.cancel(turn_id, actor=OWNER)
    assert spent(services) == [1]


async def test_nor_is_one_that_the_store_could_not_take() -> None:
    services = limited(requests=9)

    async def broken(*_: Any, **__: Any) -> Any:
        raise ConnectionError("the database is gone")

    services.store.open_turn = broken  # type: ignore[method-assign]  # a store that fails
    turn = await play_turn(services, ["Hello."])
    assert isinstance(turn.events[-1], Error)
    assert turn.events[-1].code == "chat_error"
    assert spent(services) == [0]


async def test_a_message_sent_again_is_charged_once_and_answered_even_when_nothing_is_left() -> None:
    services = limited(requests=1)
    runner = TurnRunner(services, legacy_loop)
    first = TurnRequest(actor=OWNER, text="Hello", transport="http", key="k")
    with ScriptedProvider.playing(["Hi."]):
        turn_id = await runner.start(first)
        assert await runner.start(first) == turn_id
        await runner.collect(turn_id, actor=OWNER)
    assert await runner.start(first) == turn_id
    assert spent(services) == [1]
    with pytest.raises(TurnStopped, match="rate_limited"):
        await runner.start(TurnRequest(actor=OWNER, text="Hello", transport="http", key="another"))
    with pytest.raises(TurnStopped, match="idempotency_conflict"):
        await runner.start(TurnRequest(actor=OWNER, text="Bye", transport="http", key="k"))


async def test_a_new_session_does_not_reset_the_limit() -> None:
    services = limited(requests=3)
    runner = TurnRunner(services, legacy_loop)
    codes = []
    for n in range(5):
        visitor = Actor(session_key=f"session-{n}", address="10.0.0.1")
        with ScriptedProvider.playing(["Hi."]):
            try:
                turn_id = await runner.start(TurnRequest(actor=visitor, text="Hello", transport="http"))
            except TurnStopped as stopped:
                codes.append(stopped.event.code)
            else:
                codes.append((await runner.collect(turn_id, actor=visitor))[-1].event.__class__.__name__)
    assert codes == ["Done", "Done", "Done", "rate_limited", "rate_limited"]
    assert sorted(spent(services)) == [0, 0, 1, 1, 1, 3]


# --- tokens -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "counted"),
    [
        ({"tokens": 1000}, [150]),
        ({"input_tokens": 1000}, [100]),
        ({"output_tokens": 1000}, [50]),
        ({"tokens": 1000, "input_tokens": 999, "output_tokens": 999}, [150, 100, 50]),
    ],
)
async def test_what_a_turn_took_is_what_its_calls_reported(limits: Any, counted: list[int]) -> None:
    services = limited(**limits)
    turn = await play_turn(services, [call("look", n=1), done(60, 20)], ["Found.", done(40, 30)])
    assert spent(services) == counted
    assert turn.closed is not None
    assert turn.closed.usage == TokenUsage(100, 50)


async def test_a_used_up_budget_refuses_the_next_tools_before_they_are_told() -> None:
    services = limited(tokens=100)
    turn = await play_turn(services, ["Let me look. ", call("look", n=1), done(90, 20)])
    assert [type(event) for event in turn.events] == [TextChunk, Error]
    refusal(turn)
    assert services.observer.tools == []
    assert spent(services) == [110]
    assert turn.closed is not None
    assert turn.closed.usage == TokenUsage(90, 20)
    assert [row.content for row in turn.closed.messages] == ["Let me look. "]


async def test_an_answer_that_uses_it_up_is_an_answer() -> None:
    services = limited(tokens=100)
    assert isinstance((await play_turn(services, ["Found.", done(90, 20)])).events[-1], Done)
    turn = await play_turn(services, ["Not said."])
    refusal(turn)
    assert turn.closed is None, "a message that cannot be answered is not even accepted"


async def test_it_refuses_the_next_round_where_others_have_used_it_up() -> None:
    services = limited(tokens=1000)

    async def meanwhile(args: Mapping[str, Any], context: ToolContext) -> Any:
        """Let another turn of the same user take everything."""
        (key, _), *_ = services.counts.used  # type: ignore[attr-defined]  # the memory's
        await services.counts.take([Charge(key, 5000, 1000)], window_seconds=3600)

    services.tools = [tool(meanwhile)]
    turn = await play_turn(services, [call("meanwhile"), done(10, 5)])
    assert [type(event).__name__ for event in turn.events] == ["ToolCall", "ToolResult", "Error"]
    refusal(turn)
    assert turn.closed is not None
    assert turn.closed.usage == TokenUsage(10, 5), "the round that was refused took nothing"


async def test_ten_turns_with_a_hundred_left_overspend_by_at_most_one_reservation() -> None:
    services = limited(tokens=1000, output_reservation=500)
    runner = TurnRunner(services, legacy_loop)
    go = asyncio.Event()

    async def play(n: int) -> str:
        visitor = Actor(session_key=f"session-{n}", address="10.0.0.1")
        try:
            turn_id = await runner.start(TurnRequest(actor=visitor, text="Hello", transport="http"))
        except TurnStopped as stopped:
            return stopped.event.code
        last = (await runner.collect(turn_id, actor=visitor))[-1].event
        return last.code if isinstance(last, Error) else "done"

    with ScriptedProvider.playing(["Hi.", done(850, 50)], *[["Hi.", go.wait, done(100, 300)]] * 10) as script:
        await play(0)
        playing = [asyncio.create_task(play(n)) for n in range(1, 11)]
        await asyncio.wait(playing, return_when=asyncio.FIRST_COMPLETED)
        go.set()
        ends = await asyncio.gather(*playing)
    assert sorted(ends) == ["done", *["rate_limited"] * 9]
    assert len(script.requests) == 2
    assert max(spent(services)) == 1300, "of the address"


@pytest.mark.parametrize(
    ("steps", "kept"),
    [
        pytest.param(["Hi.", done(reported=False)], "input and reservation", id="reports nothing"),
        pytest.param(["Hi " * 100, NO_DONE], "input and text", id="breaks off"),
        pytest.param([ProviderOverloadedError("503")], "nothing", id="is refused"),
        pytest.param([RuntimeError("an adapter with a fault")], "nothing", id="has a fault"),
        pytest.param([ProviderTimeoutError("late")], "input", id="is late"),
    ],
)
async def test_what_a_call_without_usage_is_charged(steps: Sequence[Any], kept: str) -> None:
    services = limited(input_tokens=10_000, output_tokens=10_000, output_reservation=500)
    await play_turn(services, list(steps))
    sent, received = spent(services)
    assert (sent > 0) is ("input" in kept)
    assert received == {"reservation": 500, "text": 75}.get(kept.rpartition(" ")[2], 0)


@pytest.mark.parametrize(("before", "received"), [([], 0), (["x" * 400], 100)])
async def test_a_cancelled_call_is_charged_what_it_was_sent_and_what_came(before: list[str], received: int) -> None:
    services = limited(input_tokens=10_000, output_tokens=10_000)
    runner = TurnRunner(services, legacy_loop)
    asked = asyncio.Event()

    async def wait() -> None:
        asked.set()
        await asyncio.Event().wait()

    with ScriptedProvider.playing([*before, wait]):
        turn_id = await runner.start(ask("Count"))
        async with aclosing(runner.subscribe(turn_id, actor=OWNER)):
            await asked.wait()
            assert spent(services)[1] == 1024
            assert await runner.cancel(turn_id, actor=OWNER)
    assert spent(services)[0] > 0
    assert spent(services)[1] == received


async def test_a_call_cancelled_while_it_is_charged_gives_everything_back() -> None:
    class Slow(MemoryRateLimitStore):
        entered, go = asyncio.Event(), asyncio.Event()

        async def take(self, charges: Sequence[Charge], *, window_seconds: int) -> Tally:
            tally = await super().take(charges, window_seconds=window_seconds)
            if any(item.amount for item in charges):
                self.entered.set()
                await self.go.wait()
            return tally

    store = Slow(Clock())
    services = limited(store, tokens=10_000)

    async def enter() -> None:
        async with services.limiter.resume(OWNER).call([], []):
            pytest.fail("the provider must not be asked")

    task = asyncio.create_task(enter())
    await store.entered.wait()
    task.cancel()
    await asyncio.sleep(0)
    assert spent(services) != [0]
    store.go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert spent(services) == [0]


async def test_what_was_lost_with_its_process_is_free_when_its_window_has_passed() -> None:
    services = limited(tokens=1000, output_reservation=2000)
    lost = services.limiter.resume(OWNER).call([], [])
    await lost.__aenter__()  # and nobody ever leaves it
    refusal(await play_turn(services, ["Not said."]))
    services.counts._clock.now += 3500  # type: ignore[attr-defined]  # the test's own clock
    assert isinstance((await play_turn(services, ["Hello."])).events[-1], Done)


async def test_a_settled_call_belongs_to_the_window_in_which_it_was_charged() -> None:
    services = limited(tokens=10_000)
    async with services.limiter.resume(OWNER).call([], []) as charged:
        services.counts._clock.now += 3500  # type: ignore[attr-defined]  # the test's own clock
        charged.end(TokenUsage(5, 5))
    assert spent(services) == [10, 0]


# --- approvals ----------------------------------------------------------------------------------------------------


async def mutate(args: Mapping[str, Any], context: ToolContext) -> Any:
    """Change something."""
    if context.approved:
        return {"status": "executed", "data": {}}
    return {"status": "confirmation_required", "mutation": "createPart", "input": {"name": "Bolt"}}


async def test_an_approval_is_refused_while_nothing_is_left_and_can_be_given_later() -> None:
    services = limited(requests=1, tokens=1000, more={"confirm_timeout_seconds": 60})
    services.tools = [tool(mutate, write=True)]
    runner = TurnRunner(services, legacy_loop)
    turn = await play_turn(services, [call("mutate", mutation="createPart"), done(10, 10)], transport="sse")
    asked = turn.events[-1]
    assert isinstance(asked, ConfirmMutation)
    token_key = next(key for key, _ in services.counts.used if key.endswith(":tokens"))  # type: ignore[attr-defined]
    taken = await services.counts.take([Charge(token_key, 2000, 1000)], window_seconds=3600)
    with pytest.raises(TurnStopped, match="rate_limited") as stopped:
        await runner.confirm(word(asked.id))
    assert stopped.value.event.details["retry_after_seconds"] == 3500
    await services.counts.correct([Charge(token_key, -2000, 1000)], window_seconds=3600, at=taken.at)
    with ScriptedProvider.playing(["Done.", done(1, 1)]):
        turn_id, after = await runner.confirm(word(asked.id))
        events = [item.event for item in await runner.collect(turn_id, after, actor=OWNER)]
    assert isinstance(events[-1], Done)
    assert sorted(spent(services)) == [1, 22], "the request was charged once, with the message"


async def test_a_rejection_needs_no_budget() -> None:
    services = limited(tokens=1000)
    services.tools = [tool(mutate, write=True)]
    runner = TurnRunner(services, legacy_loop)
    turn = await play_turn(services, [call("mutate", mutation="createPart"), done(10, 10)], transport="sse")
    asked = turn.events[-1]
    assert isinstance(asked, ConfirmMutation)
    (key, _), *_ = services.counts.used  # type: ignore[attr-defined]  # the memory's
    await services.counts.take([Charge(key, 2000, 1000)], window_seconds=3600)
    turn_id, after = await runner.confirm(word(asked.id, approved=False))
    events = [item.event for item in await runner.collect(turn_id, after, actor=OWNER)]
    assert [type(event).__name__ for event in events] == ["ToolResult", "Error"]
    assert not any(isinstance(event, ToolCall) for event in events)


# --- a store that fails -------------------------------------------------------------------------------------------


class Broken(MemoryRateLimitStore):
    """Fails from its ``failing``th call on."""

    def __init__(self, failing: int) -> None:
        super().__init__(Clock())
        self.failing = failing

    async def take(self, charges: Sequence[Charge], *, window_seconds: int) -> Tally:
        return self._or_fail(await super().take(charges, window_seconds=window_seconds))

    async def correct(self, charges: Sequence[Charge], *, window_seconds: int, at: float) -> Tally:
        return self._or_fail(await super().correct(charges, window_seconds=window_seconds, at=at))

    def _or_fail(self, tally: Tally) -> Tally:
        if self.calls >= self.failing:
            raise ConnectionError("redis is gone")
        return tally


@pytest.mark.parametrize(("failing", "accepted"), [(1, False), (2, True)])
async def test_a_store_that_fails_denies_with_a_correlation_id(failing: int, accepted: bool, caplog: Any) -> None:
    services = limited(Broken(failing), tokens=1000, requests=9)
    turn = await play_turn(services, ["Not said."])
    last = turn.events[-1]
    assert isinstance(last, Error)
    assert last.code == "chat_error"
    assert last.details["correlation_id"] in caplog.text
    assert "redis is gone" in caplog.text
    assert turn.requests == []
    assert (turn.closed is not None) is accepted


@pytest.mark.parametrize("failing", [1, 2])
async def test_or_lets_everything_pass_where_the_project_says_so(failing: int, caplog: Any) -> None:
    services = limited(Broken(failing), tokens=1000, requests=9, on_failure="allow")
    with caplog.at_level(logging.WARNING):
        turn = await play_turn(services, [call("look", n=1), done(5, 5)], ["Found.", done(5, 5)])
    assert isinstance(turn.events[-1], Done)
    assert "goes on without counting" in caplog.text


@pytest.mark.parametrize("policy", ["deny", "allow"])
async def test_a_correction_that_fails_ends_nothing(policy: str, caplog: Any) -> None:
    services = limited(Broken(3), tokens=1000, requests=9, on_failure=policy)
    turn = await play_turn(services, ["Found.", done(5, 5)])
    assert isinstance(turn.events[-1], Done)
    assert "stays as it was expected to be" in caplog.text


async def test_a_runner_tells_how_the_budgets_of_a_turn_stand() -> None:
    services = limited(requests=9, tokens=1000)
    runner = TurnRunner(services, legacy_loop)
    assert runner.budgets("unknown") == ()
    with ScriptedProvider.playing(["Found.", done(5, 5)]):
        turn_id = await runner.start(ask())
        await runner.collect(turn_id, actor=OWNER)
    states = {state.kind: (state.limit, state.remaining, state.reset_seconds) for state in runner.budgets(turn_id)}
    assert states == {"requests": (9, 8, 3500), "tokens": (1000, 990, 3500)}
