"""Many at once, in threads and in processes, some of them killed: on SQLite and on the servers that there are."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connections
from django.utils import timezone
from testproject import claimants
from testproject.stored import ANONYMOUS, answer, closed, confirmation, opened, paused, request

from gm_chat.engine.failures import TurnStopped
from gm_chat.engine.ports import JoinedTurn, OpenedTurn, ResumedTurn
from gm_chat.models import ChatConversation, ChatMessage, ChatPendingConfirmation, ChatTurn
from gm_chat.persistence import database
from gm_chat.persistence.conversations import DjangoTurnStore
from gm_chat.plugin import Actor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")

AT_ONCE = 8


@pytest.fixture(autouse=True)
def chat(alias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the chat in that database."""
    monkeypatch.setattr(database.router, "db_for_write", lambda *_, **__: alias)


def codes(results: Sequence[object]) -> list[str]:
    """The refusals among what a race came to. Nothing but refusals may fail."""
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, TurnStopped):
            raise result
    return [result.event.code for result in results if isinstance(result, TurnStopped)]


async def at_once(*work: Any) -> list[Any]:
    return await asyncio.gather(*work, return_exceptions=True)


class TestMessages:
    @pytest.mark.parametrize("key", [None, "k1"])
    async def test_of_first_messages_at_once_one_is_accepted(
        self, alias: str, store: DjangoTurnStore, key: str | None
    ) -> None:
        results = await at_once(
            *(
                store.open_turn(request(f"Hello {n}", key=key and f"{key}-{n}"), f"t{n}", max_messages=20)
                for n in range(AT_ONCE)
            )
        )
        assert codes(results) == ["turn_in_progress"] * (AT_ONCE - 1)
        for model in (ChatConversation, ChatTurn, ChatMessage):
            assert await model._default_manager.using(alias).acount() == 1

    async def test_of_second_messages_at_once_one_is_accepted(self, alias: str, store: DjangoTurnStore) -> None:
        await store.close_turn(closed("t", await opened(store, "t")))
        results = await at_once(
            *(store.open_turn(request(f"Again {n}"), f"t{n}", max_messages=20) for n in range(AT_ONCE))
        )
        assert codes(results) == ["turn_in_progress"] * (AT_ONCE - 1)
        (accepted,) = [result for result in results if isinstance(result, OpenedTurn)]
        assert [message.content for message in accepted.history] == ["Hello", "Hi"]
        assert await ChatMessage.objects.using(alias).acount() == 3

    async def test_a_request_repeated_at_once_makes_one_turn(self, alias: str, store: DjangoTurnStore) -> None:
        results = await at_once(*(store.open_turn(request(key="k1"), f"t{n}", max_messages=20) for n in range(AT_ONCE)))
        assert codes(results) == []
        (turn,) = [row async for row in ChatTurn.objects.using(alias).all()]
        assert [result for result in results if isinstance(result, JoinedTurn)] == [JoinedTurn(turn.pk)] * (AT_ONCE - 1)

    async def test_a_dead_turn_makes_way_for_one(self, alias: str, store: DjangoTurnStore) -> None:
        await opened(DjangoTurnStore(alive_seconds=0), "dead")
        results = await at_once(*(store.open_turn(request(), f"t{n}", max_messages=20) for n in range(AT_ONCE)))
        assert codes(results) == ["turn_in_progress"] * (AT_ONCE - 1)
        dead = await ChatTurn.objects.using(alias).aget(pk="dead")
        assert [event["code"] for event in dead.events] == ["interrupted"]

    async def test_messages_and_ends_of_turns_do_not_get_in_each_others_way(
        self, alias: str, store: DjangoTurnStore
    ) -> None:
        """Each of an actor's turns ends while the next message, pulses and followers come in."""
        turn = await opened(store, "t0")
        for n in range(1, 13):
            closing = store.close_turn(closed(f"t{n - 1}", turn))
            others = (store.pulse(f"t{n - 1}", []), store.read_turn(f"t{n - 1}", ANONYMOUS, after_seq=0))
            early = store.open_turn(request(), f"t{n}", max_messages=20)
            results = await at_once(early, closing, *others, store.request_cancel(f"t{n - 1}", ANONYMOUS))
            refused = codes(results)
            assert refused in ([], ["turn_in_progress"])
            turn = await opened(store, f"t{n}") if refused else results[0]
        assert await ChatTurn.objects.using(alias).filter(state="done").acount() == 12


class TestConfirmations:
    async def test_parallel_confirmations_run_the_mutation_once(self, alias: str, store: DjangoTurnStore) -> None:
        await paused(store)
        ran: list[str] = []

        async def confirm(approved: bool) -> None:
            asked = confirmation(approved=approved)
            resumed = await DjangoTurnStore().claim(asked, max_messages=20, lease_seconds=60)
            ran.append(resumed.pending.id)
            await store.settle(resumed, state="executed" if approved else "rejected", answer=answer())

        results = await at_once(*(confirm(n % 4 != 0) for n in range(AT_ONCE)))
        assert ran == ["c1"]
        assert codes(results) == ["confirmation_unavailable"] * (AT_ONCE - 1)
        assert await ChatMessage.objects.using(alias).filter(role="tool").acount() == 1

    async def test_the_end_of_the_time_is_handed_out_once(self, alias: str, store: DjangoTurnStore) -> None:
        """Eight processes end what eight actors waited for, while each of these comes with a word."""
        expires_at = timezone.now() + timedelta(minutes=1)
        actors = {f"c{n}": Actor(session_key=f"s{n}") for n in range(AT_ONCE)}
        for n, (id, actor) in enumerate(actors.items()):
            await paused(store, f"t{n}", id, actor, expires_at=expires_at)
        words = (confirmation(id, actor) for id, actor in actors.items())
        results = await at_once(
            *(DjangoTurnStore().expire(now=expires_at) for _ in actors),
            *(store.claim(word, max_messages=20, lease_seconds=60) for word in words),
        )
        assert set(codes(results)) <= {"confirmation_unavailable"}
        ended = [item.pending.id for items in results if isinstance(items, list) for item in items]
        claimed = [turn.pending.id for turn in results if isinstance(turn, ResumedTurn)]
        assert sorted(ended + claimed) == list(actors)
        assert await ChatMessage.objects.using(alias).filter(role="tool").acount() == len(ended)

    def test_processes_that_confirm_at_once_run_the_mutation_once(
        self, alias: str, store: DjangoTurnStore, tmp_path: Path
    ) -> None:
        async_to_sync(paused)(store)
        ran = tmp_path / "ran"
        with claiming(alias, [("confirm", "c1", ANONYMOUS, ran, 60)] * AT_ONCE) as workers:
            reports = [line.split()[2] for line in workers.stdout or ()]
        assert sorted(reports) == ["claimed"] + ["confirmation_unavailable"] * (AT_ONCE - 1)
        assert len(ran.read_text().splitlines()) == 1
        assert states(alias) == {"c1": "executed"}

    def test_a_worker_killed_after_its_claim_leaves_an_unknown_outcome_and_no_second_run(
        self, alias: str, store: DjangoTurnStore, tmp_path: Path
    ) -> None:
        """Eight trials side by side, each with an actor, a confirmation and a worker of its own."""
        trials = {f"c{n}": Actor(session_key=f"s{n}") for n in range(AT_ONCE)}
        for n, (id, actor) in enumerate(trials.items()):
            async_to_sync(paused)(store, f"t{n}", id, actor)
        ran, lease = tmp_path / "ran", 1.0
        with claiming(alias, [("die", id, actor, ran, lease) for id, actor in trials.items()]) as workers:
            assert workers.stdout is not None
            for _ in trials:
                pid, _, report = workers.stdout.readline().split()
                assert report == "claimed"
                os.kill(int(pid), signal.SIGKILL)
        assert confirm_again(store, trials) == ["confirmation_unavailable"] * AT_ONCE
        time.sleep(lease)
        assert confirm_again(store, trials) == ["confirmation_unavailable"] * AT_ONCE
        assert states(alias) == dict.fromkeys(trials, "unknown")
        assert sorted(line.split()[0] for line in ran.read_text().splitlines()) == sorted(trials)


def claiming(alias: str, workers: Sequence[tuple[str, str, Actor, Path, float]]) -> subprocess.Popen[str]:
    """Start workers of ``testproject.claimants`` on the database."""
    settings = {**connections.databases[alias], "NAME": str(connections[alias].settings_dict["NAME"])}
    settings["TEST"] = {}
    rows = [(what, id, actor.session_key, str(file), lease) for what, id, actor, file, lease in workers]
    return subprocess.Popen(
        [sys.executable, claimants.__file__, json.dumps(settings), json.dumps(rows)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )


@async_to_sync
async def confirm_again(store: DjangoTurnStore, trials: dict[str, Actor]) -> list[str]:
    attempts = (confirmation(id, actor) for id, actor in trials.items())
    return codes(await at_once(*(store.claim(word, max_messages=20, lease_seconds=60) for word in attempts)))


def states(alias: str) -> dict[str, str]:
    return dict(ChatPendingConfirmation.objects.using(alias).values_list("confirmation_id", "state"))
