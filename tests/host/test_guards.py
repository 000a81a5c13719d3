import asyncio
from typing import Any

import pytest

from gm_chat.host.guards import AttributedSource, attributed, denying, timed
from gm_chat.host.problems import Failed, Origin, attempt
from gm_chat.managers.api import ManagerInfo
from gm_chat.plugin import (
    AggregatingSource,
    Decision,
    ManagerSource,
    PluginError,
    PreviewingSource,
    ToolError,
    Verdict,
)

ORIGIN = Origin("acme", "acme-dist", "1.0")


async def give(value: Any) -> Any:
    if isinstance(value, BaseException):
        raise value
    return value


# --- attempt ---


def test_attempt_hands_back_results_and_failures() -> None:
    assert attempt(lambda: 7) == 7
    for error in (ValueError("x"), SystemExit(1), GeneratorExit()):

        def fail(error: BaseException = error) -> None:
            raise error

        result = attempt(fail)
        assert isinstance(result, Failed)
        assert result.error is error
    assert str(Failed(ValueError("x"))) == "ValueError: x"


def test_attempt_lets_ctrl_c_through() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt(interrupt)


# --- timed ---


async def test_timed_returns_in_time_and_cancels_out_of_time() -> None:
    cancelled = asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    assert await timed(1, give)(3) == 3
    with pytest.raises(TimeoutError):
        await timed(0.01, slow)()
    assert cancelled.is_set()


# --- attributed ---


async def test_attributed_names_plugin_and_thing_and_keeps_the_cause() -> None:
    original = KeyError("missing")
    with pytest.raises(PluginError, match=r"plugin 'acme' \(acme-dist\), tool 'x': KeyError: 'missing'") as caught:
        await attributed(ORIGIN, "tool 'x'", give)(original)
    assert caught.value.__cause__ is original


async def test_attributed_keeps_system_exit_from_ending_the_process() -> None:
    with pytest.raises(PluginError, match="SystemExit: 2"):
        await attributed(ORIGIN, "tool 'x'", give)(SystemExit(2))


@pytest.mark.parametrize("error", [ToolError("code", "text"), PluginError("known"), asyncio.CancelledError()])
async def test_attributed_passes_what_has_a_meaning(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        await attributed(ORIGIN, "tool 'x'", give)(error)
    assert caught.value is error


async def test_attributed_explains_a_plain_function() -> None:
    def plain() -> int:
        return 3

    with pytest.raises(PluginError, match="it returned a int instead of something to await"):
        await attributed(ORIGIN, "tool 'x'", plain)()  # type: ignore[arg-type]  # the mistake under test


# --- denying ---


async def test_denying_passes_decisions() -> None:
    assert await denying(ORIGIN, give)(Decision.abstain()) == Decision.abstain()


@pytest.mark.parametrize("answer", [ValueError("ldap down"), TimeoutError(), SystemExit(1), "yes", None])
async def test_denying_denies_what_is_no_decision(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    decision = await denying(ORIGIN, give)(answer)
    assert decision.verdict is Verdict.DENY
    assert "plugin 'acme'" in decision.reason
    assert "the action is denied" in caplog.text


async def test_denying_lets_cancellation_through() -> None:
    with pytest.raises(asyncio.CancelledError):
        await denying(ORIGIN, give)(asyncio.CancelledError())


# --- AttributedSource ---


DESCRIBED = ManagerInfo(name="BillManager", description="Bills.", fields=())


class Source:
    name = "erp"

    def describe(self) -> list[Any]:
        return [DESCRIBED]

    async def visibility(self, actor: Any) -> Any:
        return await give(actor)

    async def execute(self, plan: Any, actor: Any, *, deadline: float | None) -> Any:
        return await give(plan)

    async def mutate(self, call: Any, actor: Any, *, deadline: float | None) -> Any:
        return await give(call)


async def test_a_guarded_source_is_a_source_and_names_its_plugin() -> None:
    source: Any = AttributedSource(ORIGIN, Source())
    assert isinstance(source, ManagerSource)
    assert source.name == "erp"
    assert source.describe() == [DESCRIBED]
    assert await source.visibility("v") == "v"
    assert await source.execute("e", None, deadline=1.0) == "e"
    assert await source.mutate("m", None, deadline=None) == "m"
    calls = {
        "visibility": source.visibility,
        "execute": lambda error: source.execute(error, None, deadline=None),
        "mutate": lambda error: source.mutate(error, None, deadline=None),
    }
    for method, call in calls.items():
        with pytest.raises(PluginError, match=rf"plugin 'acme' \(acme-dist\), manager source 'erp', {method}: OSError"):
            await call(OSError("down"))
        with pytest.raises(ToolError):
            await call(ToolError("unknown_field", "no"))


async def test_what_a_source_can_do_beside_is_kept_and_nothing_is_added() -> None:
    class Counting(Source):
        async def aggregate(self, plan: Any, actor: Any, *, deadline: float | None) -> Any:
            return await give(plan)

        async def preview(self, call: Any, actor: Any, *, deadline: float | None) -> Any:
            return await give(call)

    assert not isinstance(AttributedSource(ORIGIN, Source()), AggregatingSource | PreviewingSource)
    source: Any = AttributedSource(ORIGIN, Counting())
    assert isinstance(source, AggregatingSource)
    assert isinstance(source, PreviewingSource)
    assert await source.preview("p", None, deadline=None) == "p"
    assert await source.aggregate("a", None, deadline=None) == "a"
    with pytest.raises(PluginError, match=r"manager source 'erp', aggregate: OSError"):
        await source.aggregate(OSError("down"), None, deadline=None)
