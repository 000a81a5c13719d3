"""The audit trail: order, bounds, failures, and a turn that never waits for an ordinary sink."""

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from gm_chat.audit import AuditPolicy
from gm_chat.engine import audit
from gm_chat.engine.audit import AuditError, AuditTrail
from gm_chat.plugin import Actor, TurnContext

CONTEXT = TurnContext("t", "c", Actor(user_id="7"), "hello", "http")
ALL = AuditPolicy(level="all")


class Sink:
    """Remembers what happened to it; ``answer`` is called for each event and may raise or wait."""

    def __init__(self, name: str = "sink", *, required: bool = False, answer: Any = None) -> None:
        self.name = name
        self.required = required
        self.answer = answer
        self.log: list[str] = []
        self.threads: set[int] = set()

    async def start(self) -> None:
        self.log.append("start")

    async def emit(self, event: Mapping[str, Any]) -> None:
        self.threads.add(threading.get_ident())
        if self.answer is not None:
            result = self.answer(event)
            if asyncio.iscoroutine(result):
                await result
        self.log.append(str(event.get("content", event["event_type"])))

    async def aclose(self) -> None:
        self.log.append("aclose")


@pytest.fixture
def trails() -> Iterator[list[AuditTrail]]:
    made: list[AuditTrail] = []
    yield made
    for trail in made:
        trail.close()


@pytest.fixture
def make(trails: list[AuditTrail]) -> Any:
    def build(*sinks: Sink, policy: AuditPolicy = ALL, **options: Any) -> AuditTrail:
        trails.append(AuditTrail(sinks, policy, **options))
        return trails[-1]

    return build


async def test_every_sink_gets_every_event_in_order(make: Any) -> None:
    sinks = [Sink("a"), Sink("b", required=True)]
    trail = make(*sinks)
    await trail.user_message(CONTEXT)
    await trail.tool_call(CONTEXT, "query", {"manager": "Part"}, call_id="c")
    await trail.tool_result(CONTEXT, "query", {"data": []}, call_id="c")
    for number in range(50):
        await trail.assistant_message(CONTEXT, str(number))
    await trail.flush()
    expected = ["start", "hello", "tool_call", "tool_result", *map(str, range(50))]
    assert [sink.log for sink in sinks] == [expected, expected]
    await trail.aclose()
    assert sinks[0].log[-1] == "aclose"


@pytest.mark.parametrize(
    ("level", "expected"), [("off", []), ("messages", ["start", "hello", "answer"]), ("all", None)]
)
async def test_the_level_decides(level: Any, expected: list[str] | None, make: Any) -> None:
    sink = Sink()
    trail = make(sink, policy=AuditPolicy(level=level))
    await trail.user_message(CONTEXT)
    await trail.tool_call(CONTEXT, "query", {})
    await trail.tool_result(CONTEXT, "query", 1)
    await trail.assistant_message(CONTEXT, "answer")
    await trail.flush()
    assert sink.log == (["start", "hello", "tool_call", "tool_result", "answer"] if expected is None else expected)


async def test_without_sinks_or_events_no_thread_is_started(make: Any) -> None:
    before = set(threading.enumerate())  # a test of the whole chat may have left its own
    for trail in (make(), make(Sink(), policy=AuditPolicy())):
        await trail.user_message(CONTEXT)
        await trail.flush()
        await trail.aclose()
    assert "gm-chat-audit" not in {thread.name for thread in set(threading.enumerate()) - before}


async def test_a_blocking_sink_never_stops_the_turn(make: Any) -> None:
    sink = Sink(answer=lambda _: time.sleep(0.3))
    trail = make(sink)
    started = time.perf_counter()
    for _ in range(3):
        await trail.user_message(CONTEXT)
    assert time.perf_counter() - started < 0.25
    assert threading.get_ident() not in sink.threads
    await trail.flush()
    assert sink.log.count("hello") == 3


async def test_what_does_not_fit_the_queue_is_dropped_and_counted(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    go = threading.Event()
    slow, quick = Sink("slow", answer=lambda _: asyncio.to_thread(go.wait, 10)), Sink("quick")
    quick.required = True  # awaited, so that its own queue stays short: the slow sink holds up nobody
    trail = make(slow, quick, queue_size=5)
    for number in range(12):
        await trail.assistant_message(CONTEXT, str(number))
    assert trail.dropped == {"slow": 7, "quick": 0}
    go.set()
    await trail.flush()
    assert slow.log == ["start", "0", "1", "2", "3", "4"]
    assert caplog.text.count("audit sink 'slow' lost an event") == 1


@pytest.mark.parametrize("error", [OSError("disk full"), SystemExit(1)])
async def test_a_raising_sink_is_logged_and_asked_again(
    error: BaseException, make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def fail_on_one(event: Mapping[str, Any]) -> None:
        if event["content"] == "1":
            raise error

    sink = Sink(answer=fail_on_one)
    trail = make(sink)
    for number in range(3):
        await trail.assistant_message(CONTEXT, str(number))
    await trail.flush()
    assert sink.log == ["start", "0", "2"]
    assert trail.dropped == {"sink": 1}
    assert repr(error) in caplog.text


async def test_a_sink_that_is_down_does_not_flood_the_log(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: Any) -> None:
        raise OSError

    trail = make(Sink(answer=fail))
    for _ in range(250):
        await trail.user_message(CONTEXT)
    await trail.flush()
    assert trail.dropped == {"sink": 250}
    assert caplog.text.count("lost an event") == 3


async def test_a_hanging_sink_is_given_up_after_its_time(make: Any) -> None:
    sink = Sink(answer=lambda event: asyncio.sleep(60 if event["content"] == "0" else 0))
    trail = make(sink, sink_seconds=0.05)
    await trail.assistant_message(CONTEXT, "0")
    await trail.assistant_message(CONTEXT, "1")
    await trail.flush()
    assert sink.log == ["start", "1"]
    assert trail.dropped == {"sink": 1}


async def test_a_required_sink_is_awaited(make: Any) -> None:
    sink = Sink(required=True, answer=lambda _: asyncio.sleep(0.05))
    await make(sink).user_message(CONTEXT)
    assert sink.log == ["start", "hello"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda _: (_ for _ in ()).throw(OSError("disk full")), "OSError: disk full"),
        (lambda _: asyncio.sleep(60), "TimeoutError"),
    ],
)
async def test_a_required_sink_that_fails_closes(answer: Any, text: str, make: Any) -> None:
    other = Sink("other")
    trail = make(other, Sink("must", required=True, answer=answer), sink_seconds=0.05)
    with pytest.raises(AuditError, match=rf"required audit sink 'must'.*{text}"):
        await trail.user_message(CONTEXT)
    await trail.flush()
    assert other.log == ["start", "hello"]


async def test_the_settings_make_a_sink_required(make: Any) -> None:
    sinks = [Sink("must", answer=lambda _: asyncio.sleep(0.05)), Sink("may", answer=lambda _: asyncio.sleep(60))]
    trail = make(*sinks, required=("must",), sink_seconds=0.2)
    await trail.user_message(CONTEXT)
    assert [sink.log for sink in sinks] == [["start", "hello"], ["start"]]
    sinks[0].answer = lambda _: (_ for _ in ()).throw(OSError("disk full"))
    with pytest.raises(AuditError, match="required audit sink 'must'"):
        await trail.tool_call(CONTEXT, "query", {})


@pytest.mark.parametrize("level", ["messages", "all"])
async def test_a_required_sink_that_is_not_there_closes(level: Any, make: Any) -> None:
    for sinks in ((), (Sink("other"),)):
        trail = make(*sinks, policy=AuditPolicy(level=level), required=("other", "must")[not sinks :])
        with pytest.raises(AuditError, match=r"audit\['required'\] names 'must', and no such audit sink is there"):
            await trail.user_message(CONTEXT)
        with pytest.raises(AuditError, match="'must'"):
            await trail.tool_call(CONTEXT, "mutate", {}, approved=True)
        await trail.flush()
        assert all(sink.log == [] for sink in sinks)


async def test_where_nothing_is_audited_nobody_is_required(make: Any) -> None:
    trail = make(policy=AuditPolicy(level="off"), required=("must",))
    await trail.user_message(CONTEXT)
    await trail.tool_call(CONTEXT, "query", {})


async def test_an_approved_call_says_so_and_silence_is_no_message(make: Any) -> None:
    events: list[Mapping[str, Any]] = []
    trail = make(Sink(answer=events.append))
    await trail.tool_call(CONTEXT, "mutate", {}, call_id="c")
    await trail.assistant_message(CONTEXT, "")
    await trail.tool_call(CONTEXT, "mutate", {}, call_id="c", approved=True)
    await trail.flush()
    assert [(event["event_type"], event.get("approved")) for event in events] == [
        ("tool_call", None),
        ("tool_call", True),
    ]


async def test_a_required_sink_with_a_full_queue_closes(make: Any) -> None:
    trail = make(Sink("must", required=True, answer=lambda _: asyncio.sleep(0.2)), queue_size=1)
    first = asyncio.create_task(trail.user_message(CONTEXT))
    await asyncio.sleep(0.05)
    with pytest.raises(AuditError, match="QueueFull"):
        await trail.user_message(CONTEXT)
    await first


async def test_a_cancelled_turn_still_leaves_its_event(make: Any) -> None:
    sink = Sink(required=True, answer=lambda _: asyncio.sleep(0.1))
    trail = make(sink)
    task = asyncio.create_task(trail.user_message(CONTEXT))
    await asyncio.sleep(0.03)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await trail.flush()
    assert sink.log == ["start", "hello"]


async def test_a_start_that_fails_is_tried_again(make: Any) -> None:
    class Late(Sink):
        attempts = 0

        async def start(self) -> None:
            self.attempts += 1
            if self.attempts == 1:
                raise ConnectionError
            await super().start()

    sink = Late()
    trail = make(sink)
    for number in range(3):
        await trail.assistant_message(CONTEXT, str(number))
    await trail.flush()
    assert sink.log == ["start", "1", "2"]


def test_turns_on_many_loops_share_the_sinks(make: Any) -> None:
    """Under WSGI each turn has a loop of its own; the sink sees one."""
    loops: set[int] = set()

    async def note(_: Any) -> None:
        loops.add(id(asyncio.get_running_loop()))

    sink = Sink(required=True, answer=note)
    trail = make(sink)
    threads = [threading.Thread(target=lambda: asyncio.run(trail.user_message(CONTEXT))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sink.log == ["start", *["hello"] * 5]
    assert len(loops) == 1


async def test_after_closing_it_starts_again(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    sink, rude = Sink(), Sink("rude")

    async def refuse() -> None:
        raise OSError("no")

    rude.aclose = refuse  # type: ignore[method-assign]  # the failure under test
    trail = make(sink, rude)
    for _ in range(2):
        await trail.user_message(CONTEXT)
        await trail.aclose()
    assert sink.log == ["start", "hello", "aclose"] * 2
    assert "audit sink 'rude' failed to close: OSError('no')" in caplog.text


async def test_closing_gives_up_on_a_sink_that_never_ends(
    make: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(audit, "CLOSE_SECONDS", 0.05)
    trail = make(Sink(answer=lambda _: asyncio.sleep(60)), sink_seconds=60)
    await trail.user_message(CONTEXT)
    started = time.perf_counter()
    await trail.aclose()
    assert time.perf_counter() - started < 2
    assert "events that still waited are lost" in caplog.text


SCRIPT = """
import asyncio, os, sys
from gm_chat.audit import AuditPolicy
from gm_chat.engine.audit import AuditTrail
from gm_chat.plugin import Actor, TurnContext

class Sink:
    name, required = "file", False
    async def start(self): print("start", flush=True)
    async def emit(self, event):
        await asyncio.sleep(0.05)
        print(event["content"], flush=True)
    async def aclose(self): print("aclose", flush=True)

trail = AuditTrail([Sink()], AuditPolicy(level="all"))
def say(text): asyncio.run(trail.assistant_message(TurnContext("t", "c", Actor(), "", "http"), text))
"""


def run(script: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.split()


def test_a_process_that_ends_delivers_what_it_has() -> None:
    assert run("say('one'); say('two')") == ["start", "one", "two", "aclose"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_worker_has_its_own_thread() -> None:
    script = """
        say('parent'); asyncio.run(trail.flush())
        child = os.fork()
        if child == 0:
            say('child'); trail.close(); os._exit(0)
        os.waitpid(child, 0)
    """
    assert run(script) == ["start", "parent", "start", "child", "aclose", "aclose"]
