"""What can happen in a turn, over every transport: the same events, save where a transport cannot do the same.

``pytest tests/integration/test_scenarios.py -s`` prints the table.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import pytest
from django.contrib.auth import get_user_model
from django.test import AsyncClient
from django.utils import timezone
from testproject.auditing import PLANTED, AuditBook
from testproject.plans import PLANNED, PLANNED_ROUNDS, plan, task
from testproject.shop.models import Material
from testproject.socket_client import SocketClient, connected

from gm_chat.engine.failures import CANCELLED, INTERRUPTED
from gm_chat.errors import PUBLIC_MESSAGES
from gm_chat.models import ChatTurn
from gm_chat.plugin import Decision
from gm_chat.providers.base import ProviderError
from gm_chat.testing.scripted import NO_DONE, ScriptedProvider, call, done
from gm_chat.wiring import Runtime, reset_runtime

pytestmark = pytest.mark.django_db(transaction=True)

Events = list[dict[str, Any]]

CHAT: Final[Mapping[str, Any]] = {
    "enabled": True,
    "provider": "gm_chat.testing.ScriptedProvider",
    "provider_config": {"max_retries": 0},
    "allowed_mutations": ["createMaterial", "createPart"],
    "confirm_mutations": ["createMaterial"],
    "resume_grace_seconds": 0,
}
RETRIED: Final = {"provider_config": {}}
FALLBACK: Final = {
    "provider_profiles": {"spare": {"provider": CHAT["provider"], "trust_group": "ours"}},
    "fallback_profile": "spare",
}
LIMITED: Final = {"rate_limit": {"requests": 1, "tokens": 100, "window_seconds": 10**9}}


# --- the transports, as a client uses them -----------------------------------------------------------------------


class Http:
    """Messages over ``POST /chat/``."""

    name = "HTTP"

    def __init__(self, browser: AsyncClient) -> None:
        self.browser = browser

    async def __aenter__(self) -> Http:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def post(self, path: str, body: Any) -> Any:
        text = body if isinstance(body, bytes) else json.dumps(body)
        return await self.browser.post(path, text, content_type="application/json")

    async def say(self, text: str = "Hello", **more: Any) -> Events:
        return await self.send({"text": text, **more})

    async def send(self, body: Any) -> Events:
        events: Events = (await self.post("/chat/", body)).json()["events"]
        return events

    async def confirm(self, id: str, *, approved: bool) -> Events:
        response = await self.post("/chat/confirm/", {"confirmation_id": id, "confirmed": approved})
        events: Events = response.json()["events"]
        return events

    async def cancel(self, turn_id: str) -> None:
        assert (await self.post("/chat/cancel/", {"turn_id": turn_id})).status_code == 200

    async def resume(self, turn_id: str) -> Events:
        return await _streamed(await self.browser.get(f"/chat/turns/{turn_id}/events"))

    async def leave(self, asking: asyncio.Task[Events]) -> None:
        asking.cancel()
        await asyncio.wait({asking})


class Sse(Http):
    """Messages over ``POST /chat/stream/``."""

    name = "SSE"

    async def send(self, body: Any) -> Events:
        return await _streamed(await self.post("/chat/stream/", body))


class Socket(Http):
    """Everything over one WebSocket."""

    name = "WebSocket"

    async def __aenter__(self) -> Socket:
        self.stack = AsyncExitStack()
        cookies = {name: morsel.value for name, morsel in self.browser.cookies.items()}
        self.socket: SocketClient = await self.stack.enter_async_context(connected(cookies=cookies))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stack.aclose()

    async def send(self, body: Any) -> Events:
        await self.socket.send(body.decode("latin-1") if isinstance(body, bytes) else {"type": "message", **body})
        return await self.socket.rest()

    async def confirm(self, id: str, *, approved: bool) -> Events:
        await self.socket.send({"type": "confirm", "confirmation_id": id, "confirmed": approved})
        return await self.socket.rest()

    async def cancel(self, turn_id: str) -> None:
        await self.socket.send({"type": "cancel"})

    async def resume(self, turn_id: str) -> Events:
        await self.socket.send({"type": "resume", "turn_id": turn_id})
        return await self.socket.rest()

    async def leave(self, asking: asyncio.Task[Events]) -> None:
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        await self.stack.aclose()


WAYS: Final = (Http, Sse, Socket)


async def _streamed(response: Any) -> Events:
    assert response.status_code == 200, response.content
    text = b"".join([chunk async for chunk in response.streaming_content]).decode()
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]


# --- what happens ------------------------------------------------------------------------------------------------

Play = Callable[[Http], Awaitable[Events]]


async def ask(way: Http) -> Events:
    return await way.say()


def body(value: Any) -> Play:
    return lambda way: way.send(value)


def confirm(*, approved: bool, after: float = 0, twice: bool = False) -> Play:
    """Ask, on a transport that can, for what needs an approval; then give one."""

    async def play(way: Http) -> Events:
        asking = Sse(way.browser) if type(way) is Http else way
        asked = await asking.say()
        await asyncio.sleep(after)
        rest = await way.confirm(asked[-1]["id"], approved=approved)
        if twice:
            rest = await way.confirm(asked[-1]["id"], approved=approved)
        return rest if twice or after else [*asked, *rest]

    return play


async def ask_while_one_waits(way: Http) -> Events:
    await Sse(way.browser).say()
    return await way.say()


async def confirm_the_unknown(way: Http) -> Events:
    return await way.confirm("unheard-of", approved=True)


async def ask_once_more(way: Http) -> Events:
    await way.say("Hello")
    return await way.say("Hello again")


async def ask_again_with_another_text(way: Http) -> Events:
    await way.say("Hello", id="m1")
    return await way.say("Something else", id="m1")


async def ask_again(way: Http) -> Events:
    await way.say("Hello", id="m1")
    return await way.say("Hello", id="m1")


async def _running(way: Http) -> tuple[asyncio.Task[Events], str]:
    """A message that is being answered, and its turn."""
    asking = asyncio.create_task(way.say())
    while ScriptedProvider.script is None or not ScriptedProvider.script.open_streams:  # noqa: ASYNC110 - it has no event
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.02)
    turn = await ChatTurn.objects.order_by("-created").afirst()
    assert turn is not None
    return asking, turn.pk


async def ask_twice_at_once(way: Http) -> Events:
    asking, turn_id = await _running(Sse(way.browser))
    refused = await way.say()
    await Sse(way.browser).cancel(turn_id)
    await asking
    return refused


async def cancel(way: Http) -> Events:
    asking, turn_id = await _running(way)
    async with asyncio.timeout(1):
        await way.cancel(turn_id)
        return await asking


async def leave(way: Http) -> Events:
    asking, turn_id = await _running(way)
    async with asyncio.timeout(1):
        await way.leave(asking)
        while (await ChatTurn.objects.aget(pk=turn_id)).state == "running":  # noqa: ASYNC110 - a row
            await asyncio.sleep(0.01)
    return await Http(way.browser).resume(turn_id)


async def resume_what_died(way: Http) -> Events:
    """A process died in the middle of a turn; the next message finds that out."""
    reset_runtime()
    first = await Http(way.browser).say()
    reset_runtime()  # and with it what the process knew
    rows = ChatTurn.objects.filter(pk=first[0]["turn_id"])
    turn = await rows.aget()
    dead = timezone.now() - timedelta(seconds=1)
    await rows.aupdate(state="running", active_key=turn.owner_key, alive_until=dead, events=turn.events[:1])
    await way.say()
    return await way.resume(turn.pk)


@dataclass(frozen=True)
class Scenario:
    name: str
    rounds: Sequence[Any]
    play: Play = ask
    settings: Mapping[str, Any] = field(default_factory=dict)
    denied: str | None = None
    elsewhere: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What another transport makes of it, where it cannot do the same."""


QUERY: Final = call("query", manager="MaterialManager", fields=["name"])
OTHER: Final = call("query", manager="MaterialManager", fields=["density"])
CREATE: Final = call("mutate", mutation="createMaterial", input={"name": "Zinc", "density": 7.1})
TELLING: Final = call("query", manager="MaterialManager", fields=["name"], filters={"name": f"Bearer {PLANTED}"})
AT_ONCE: Final = {"confirm_mutations": []}
WRONG: Final = [[call("query", manager=f"No{number}Manager", fields=["x"])] for number in range(9)]
HTTP_CANNOT: Final = {"HTTP": ["call mutate", "error confirmation_required_transport"]}

SCENARIOS: Final = [
    Scenario("text only", [["One ", "two."]]),
    Scenario("text that JSON must escape", [['"\n\u2028\\ 😀 שלום', done(1, 2)]]),
    Scenario("a tool call", [["Let me look. ", QUERY], ["Nothing."]]),
    Scenario("secrets", [[f"password={PLANTED} ", TELLING], ["Nothing."]], body({"text": f"token: {PLANTED}"})),
    Scenario("a batch", [[QUERY, OTHER], ["Nothing."]]),
    Scenario("a tool that does not exist", [[call("shout")], ["Sorry."]]),
    Scenario("a mutation at once", [[CREATE], ["Done."]], settings=AT_ONCE),
    Scenario("a mutation, approved", [[CREATE], ["Done."]], confirm(approved=True)),
    Scenario("a mutation, rejected", [[CREATE], ["As you wish."]], confirm(approved=False)),
    Scenario("a mutation, too late", [[CREATE]], confirm(approved=True, after=0.2), {"confirm_timeout_seconds": 0.1}),
    Scenario("a mutation, approved twice", [[CREATE], ["Done."]], confirm(approved=True, twice=True)),
    Scenario("a mutation that needs approval", [[CREATE]], elsewhere=HTTP_CANNOT),
    Scenario("a message while one waits", [[CREATE]], ask_while_one_waits),
    Scenario("a confirmation of nothing", [], confirm_the_unknown),
    Scenario("a blank message", [], body({"text": " "})),
    Scenario("no JSON", [], body(b"Hello")),
    Scenario("no object", [], body(b"[1]")),
    Scenario("10,000 levels deep", [], body(b"[" * 10_000)),
    Scenario("a message above the cap", [], body({"text": "x" * 101}), {"max_message_characters": 100}),
    Scenario("2 MB", [], body({"text": "x" * 2_000_000})),
    Scenario("a message while one is answered", [["One ", 60]], ask_twice_at_once),
    Scenario("the same message again", [["Once."]], ask_again),
    Scenario("its id with another text", [["Once."]], ask_again_with_another_text),
    Scenario("a denied message", [], denied="message"),
    Scenario("too many messages", [["Once."]], ask_once_more, LIMITED),
    Scenario("too many tokens", [["Let me look. ", QUERY, done(70, 50)]], settings=LIMITED),
    Scenario("too many failed rounds", WRONG),
    Scenario("too many mutations", [[CREATE]], settings=AT_ONCE | {"max_mutations_per_message": 0}),
    Scenario("too many rounds", [[QUERY]], settings={"max_total_rounds_per_message": 1}),
    Scenario("a mutation in a batch", [["Both. ", CREATE, QUERY]]),
    Scenario("the provider fails before", [[ProviderError("secret")]]),
    Scenario("the provider fails in the middle", [["One ", QUERY], ["Two ", ProviderError("secret")]]),
    Scenario("the provider says when to try again", [[ProviderError("secret", retry_after=7)]]),
    Scenario("the provider does it then", [[ProviderError("secret", retry_after=0)], ["Now."]], settings=RETRIED),
    Scenario("the fallback answers", [[ProviderError("secret")], ["Hello."]], settings=FALLBACK),
    Scenario("the provider ends without an end", [["One ", NO_DONE]]),
    Scenario("the provider is silent", [["One ", 60]], settings={"provider_config": {"stream_timeout_seconds": 0.2}}),
    Scenario("the provider does not begin", [[60]], settings={"provider_config": {"timeout_seconds": 0.2}}),
    Scenario("the turn takes too long", [["One ", 60]], settings={"turn_timeout_seconds": 0.3}),
    Scenario("a cancel", [["One ", 60]], cancel),
    Scenario("a disconnect", [["One ", 60]], leave),
    Scenario("a process that died", [["One ", "two."], ["Next."]], resume_what_died),
    *(Scenario(f"planned: {name}", rounds, settings=PLANNED | more) for name, (rounds, more) in PLANNED_ROUNDS.items()),
    Scenario("planned: a mutation", [[plan(intent="mutation")], [CREATE], ["Done."]], confirm(approved=True), PLANNED),
    Scenario("planned: a cancel", [[plan(task())], [QUERY], [60]], cancel, PLANNED),
    Scenario("planned: a disconnect", [[plan(task())], [QUERY], [60]], leave, PLANNED),
]  # fmt: skip


def shown(events: Events) -> list[str]:
    """Events in words, without what differs from turn to turn."""
    return [_shown(event) for event in events]


def _shown(event: Mapping[str, Any]) -> str:
    match event:
        case {"type": "text_chunk", "content": content}:
            return f"text {content!r}"
        case {"type": "tool_call", "name": name}:
            return f"call {name}"
        case {"type": "tool_result", "name": name, "result": result}:
            outcome = result.get("status") or ("error" if "error" in result else "data")
            return f"result {name} {outcome}"
        case {"type": "confirm_mutation", "mutation": mutation}:
            return f"confirm {mutation}"
        case {"type": "done", "usage": usage}:
            coverage = event["orchestration"]["coverage"] if "orchestration" in event else {}
            answered = f", {coverage['resolved']} of {coverage['total']}" if coverage else ""
            return f"done {usage['input_tokens']}/{usage['output_tokens']}{answered}"
        case {"type": "error", "code": code}:
            return f"error {code}"
    raise AssertionError(event)


def comparable(events: Events) -> Events:
    """Events with ids in the order of their appearance, so that two turns can be compared field by field."""
    numbers: dict[str, int] = {}
    counter = itertools.count(1)

    def number(id: Any) -> int:
        if id not in numbers:
            numbers[id] = next(counter)
        return numbers[id]

    def alike(value: Any) -> Any:
        match value:
            case Mapping():
                return {key: _same(key, item) for key, item in value.items()}
            case list():
                return [alike(item) for item in value]
        return value

    def _same(key: str, value: Any) -> Any:
        if key in {"id", "turn_id", "call_id"}:
            return number(value)
        if key == "retry_after_seconds" and value > 1000:  # of a window, whose end comes nearer
            return "later"
        return "..." if key == "correlation_id" else alike(value)

    return [alike(event) for event in events]


@pytest.fixture
def played(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Scenario, type[Http]], Awaitable[Events]]]:
    """Play a scenario over one transport, as a user of its own."""
    faults: list[str] = []
    names = map("user-{}".format, itertools.count(1))

    async def play(scenario: Scenario, way: type[Http]) -> Events:
        await Material.objects.all().adelete()
        await ChatTurn.objects.all().adelete()
        book = AuditBook()
        audit = {"enabled": True, "level": "all", "logger": book, "required": ["logger"]}
        settings.GM_CHAT = {**CHAT, "audit": audit, **scenario.settings}
        browser = AsyncClient()
        await browser.aforce_login(
            await get_user_model()._default_manager.acreate(username=next(names), is_superuser=True)
        )
        with monkeypatch.context() as patch, ScriptedProvider.playing(*scenario.rounds) as script:
            if scenario.denied is not None:
                patch.setattr(Runtime, "permit", _denying(scenario.denied))
            async with way(browser) as client:
                async with asyncio.timeout(10):
                    events = await scenario.play(client)
            assert script.open_streams == 0
        faults.extend(f"{scenario.name} over {way.name}: {fault}" for fault in await book.faults())
        return events

    yield play
    assert faults == [], "the audit tells of each event once, in order"


def _denying(kind: str) -> Any:
    async def permit(self: Any, action: Any, actor: Any, context: Any) -> Decision:
        return Decision.deny("denied by the test") if action.kind == kind else Decision.abstain()

    return permit


async def test_every_scenario_is_the_same_over_every_transport(played: Any, capsys: pytest.CaptureFixture[str]) -> None:
    rows, problems, codes = [], [], set()
    for scenario in SCENARIOS:
        events = {way.name: await played(scenario, way) for way in WAYS}
        usual = next(seen for name, seen in events.items() if name not in scenario.elsewhere)
        rows.append((scenario.name, ", ".join(shown(usual)), *(_mark(scenario, name) for name in events)))
        for name, seen in events.items():
            codes |= {event["code"] for event in seen if event["type"] == "error"}
            expected = scenario.elsewhere.get(name)
            if expected is None and comparable(seen) != comparable(usual):
                problems.append((scenario.name, name, comparable(seen), comparable(usual)))
            if expected is not None and shown(seen) != expected:
                problems.append((scenario.name, name, shown(seen), expected))
    with capsys.disabled():
        print("\n" + _table(rows))  # noqa: T201 - the table is what this test is for
    assert problems == []
    assert codes >= PUBLIC_MESSAGES.keys() | {CANCELLED.code, INTERRUPTED.code}


def _mark(scenario: Scenario, name: str) -> str:
    return ", ".join(scenario.elsewhere[name]) if name in scenario.elsewhere else "same"


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = [("scenario", "events", *(way.name for way in WAYS)), ("---",) * 5, *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
