"""Ready tests for rate-limit stores: what is taken, refused, corrected, and what happens all at once."""

# ruff: noqa: S101 (these are tests, which pytest runs from here)

from __future__ import annotations

import asyncio
import time
import uuid
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from gm_chat.plugin import Charge
from gm_chat.testing.hook_contracts.base import HookContract

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gm_chat.plugin import RateLimitStore, Tally

__all__ = ["RateLimitStoresContract"]

WINDOW: Final = 7 * 10**8
"""Seconds; neither a fixed window nor a slice of a sliding one ends while a test runs."""

SECOND: Final = 1
PLACES: Final = 3
PATIENCE: Final = 30


class RateLimitStoresContract(HookContract):
    """``gm_chat_rate_limit_stores``. The clock is the store's own, so that windows' ends are for its author to test.

    One guarantee depends on the kind of window, ``windows``: ``"sliding"`` never grants more than a budget in any
    window's time, ``"fixed"`` never more than two, at the end of a window and at the beginning of the next. What
    is taken last may come on top of either. All others are the same for both.
    """

    hooks = ("gm_chat_rate_limit_stores",)
    windows: ClassVar[Literal["fixed", "sliding"]] = "sliding"

    def run(self, test: Callable[[RateLimitStore], Awaitable[None]]) -> None:
        """Give each of the stores to the test, which finds nothing counted under a key of its own."""
        specs = self.host().rate_limit_stores.values()
        assert specs
        for spec in specs:
            asyncio.run(_awaited(test(spec.build())))

    def test_it_grants_until_nothing_is_left(self) -> None:
        """A limit of three grants three, tells what counts, and says how long to wait."""

        async def fill(store: RateLimitStore) -> None:
            key = new_key()
            tallies = [await take(store, Charge(key, 1, 3)) for _ in range(5)]
            assert [tally.granted for tally in tallies] == [True, True, True, False, False]
            assert [tally.standings[0].used for tally in tallies] == [1, 2, 3, 3, 3]
            assert all(0 < tally.standings[0].wait_seconds <= 2 * WINDOW for tally in tallies)
            assert (await take(store, Charge(new_key(), 1, 3))).granted

        self.run(fill)

    def test_what_is_taken_last_may_exceed_the_limit(self) -> None:
        """Granted as long as anything is left: whoever needs more than that overspends once."""

        async def exceed(store: RateLimitStore) -> None:
            key = new_key()
            assert used(await take(store, Charge(key, 60, 100))) == [60]
            assert used(await take(store, Charge(key, 60, 100))) == [120]
            refused = await take(store, Charge(key, 1, 100))
            assert (refused.granted, used(refused)) == (False, [120])

        self.run(exceed)

    def test_asking_takes_nothing(self) -> None:
        """A charge of nothing is granted as long as anything is left."""

        async def ask(store: RateLimitStore) -> None:
            key = new_key()
            asked = await take(store, Charge(key, 0, 1))
            assert (asked.granted, used(asked), asked.standings[0].wait_seconds) == (True, [0], 0)
            await take(store, Charge(key, 1, 1))
            asked = await take(store, Charge(key, 0, 1))
            assert (asked.granted, used(asked)) == (False, [1])

        self.run(ask)

    def test_it_takes_all_or_nothing(self) -> None:
        """A charge that one budget refuses is not counted under the others, in whichever order they come."""

        async def take_both(store: RateLimitStore) -> None:
            full, free = new_key(), new_key()
            await take(store, Charge(full, 1, 1))
            for charges in ((Charge(full, 1, 1), Charge(free, 1, 5)), (Charge(free, 1, 5), Charge(full, 1, 1))):
                assert not (await take(store, *charges)).granted
            asked = await take(store, Charge(free, 0, 5), Charge(full, 0, 2))
            assert (asked.granted, used(asked)) == (True, [0, 1])

        self.run(take_both)

    def test_it_corrects_whatever_the_limit(self) -> None:
        """Up and down, several budgets at once, and never below zero."""

        async def correct(store: RateLimitStore) -> None:
            one, other = new_key(), new_key()
            at = (await take(store, Charge(one, 50, 60), Charge(other, 50, 60))).at
            changed = await store.correct([Charge(one, 40, 60), Charge(other, -20, 60)], window_seconds=WINDOW, at=at)
            assert used(changed) == [90, 30]
            assert not (await take(store, Charge(one, 1, 60))).granted
            changed = await store.correct([Charge(one, -500, 60)], window_seconds=WINDOW, at=at)
            assert used(changed) == [0]
            assert used(await take(store, Charge(one, 1, 60))) == [1]

        self.run(correct)

    def test_what_was_never_counted_is_not_given_back(self) -> None:
        """As when the store has lost its counts."""

        async def give_back(store: RateLimitStore) -> None:
            at = (await take(store, Charge(new_key(), 1, 10))).at
            key = new_key()
            assert used(await store.correct([Charge(key, -5, 10)], window_seconds=WINDOW, at=at)) == [0]
            assert used(await take(store, Charge(key, 1, 10))) == [1]

        self.run(give_back)

    def test_it_grants_no_more_when_all_come_at_once(self) -> None:
        """Forty for ten places, each with a budget that all of them share beside it."""

        async def race(store: RateLimitStore) -> None:
            key, other = new_key(), new_key()
            tallies = await asyncio.gather(
                *(take(store, Charge(key, 1, 10), Charge(other, 1, 1000)) for _ in range(40))
            )
            assert sum(tally.granted for tally in tallies) == 10
            assert used(await take(store, Charge(key, 0, 1000), Charge(other, 0, 1000))) == [10, 10]

        self.run(race)

    def test_after_the_wait_there_is_something_left(self) -> None:
        """Whoever waits as long as they were told to is granted again."""

        async def wait(store: RateLimitStore) -> None:
            key = new_key()
            tally = await take(store, Charge(key, 1, 1), seconds=SECOND)
            while tally.granted:  # a window may have ended in between
                tally = await take(store, Charge(key, 1, 1), seconds=SECOND)
            assert 0 < tally.standings[0].wait_seconds <= 2 * SECOND
            await asyncio.sleep(tally.standings[0].wait_seconds + 0.01)
            assert (await take(store, Charge(key, 1, 1), seconds=SECOND)).granted

        self.run(wait)

    def test_a_window_s_time_grants_no_more_than_its_kind_allows(self) -> None:
        """Asked without a pause over more than two windows: by when it was asked and answered, not by any clock."""
        most = PLACES if self.windows == "sliding" else 2 * PLACES

        async def hammer(store: RateLimitStore) -> None:
            key, granted = new_key(), list[tuple[float, float]]()
            until = time.monotonic() + 2.2 * SECOND
            # On a machine that stands still meanwhile it takes longer until more than one window was granted.
            while (asked := time.monotonic()) < until or (len(granted) <= PLACES and asked < until + PATIENCE):
                if (await take(store, Charge(key, 1, PLACES), seconds=SECOND)).granted:
                    granted.append((asked, time.monotonic()))
                await asyncio.sleep(0.01)
            assert len(granted) > PLACES
            for first in range(len(granted) - most):
                # Were these all in one window's time, whenever between question and answer each was granted?
                assert granted[first + most][1] - granted[first][0] >= SECOND, granted

        self.run(hammer)


async def _awaited(test: Awaitable[None]) -> None:
    await test


def new_key() -> str:
    """A key under which nothing counts yet."""
    return f"contract:{uuid.uuid4().hex}:requests"


def take(store: RateLimitStore, *charges: Charge, seconds: int = WINDOW) -> Awaitable[Tally]:
    """Take, in windows that do not end meanwhile unless others are asked for."""
    return store.take(charges, window_seconds=seconds)


def used(tally: Tally) -> list[int]:
    """What counts under each key."""
    return [standing.used for standing in tally.standings]
