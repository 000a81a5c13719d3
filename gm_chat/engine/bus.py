"""How processes that share a store wake each other, instead of waiting for the next look into it.

A message names a turn and says nothing of it: what happened stands in the store. So a message may be lost, doubled or
late, and whoever waits for one looks by itself now and then.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

__all__ = ["SILENCE", "TurnBus"]


class TurnBus(Protocol):
    """Carries two kinds of message between processes. Nothing here waits, or fails: what cannot be sent is dropped."""

    @property
    def reaches_others(self) -> bool:
        """Whether there is anything that messages could go over; if not, none need be sent."""
        ...

    def announce(self, turn_id: str, seq: int) -> None:
        """Tell the turn's followers that its events up to ``seq`` can be read."""
        ...

    def request(self, turn_id: str) -> None:
        """Tell whoever runs the turn that something is wanted of it: a follower has come, or it is to stop."""
        ...

    def on_announced(self, turn_id: str, heard: Callable[[int], None]) -> AbstractContextManager[None]:
        """Call ``heard(seq)`` in the running event loop for each :meth:`announce`, as long as the block runs."""
        ...

    def on_requested(self, turn_id: str, heard: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``heard()`` in the running event loop for each :meth:`request`, as long as the block runs."""
        ...

    async def aclose(self) -> None:
        """Leave the bus with the running event loop, when its server stops. Takes a second at most."""
        ...


class _Silence:
    """For a single process, and for several that only look into the store."""

    reaches_others: Final = False

    def announce(self, turn_id: str, seq: int) -> None:
        """Nobody is told."""

    def request(self, turn_id: str) -> None:
        """Nobody is told."""

    def on_announced(self, turn_id: str, heard: Callable[[int], None]) -> AbstractContextManager[None]:
        """Nothing is heard."""
        del turn_id, heard
        return nullcontext()

    def on_requested(self, turn_id: str, heard: Callable[[], None]) -> AbstractContextManager[None]:
        """Nothing is heard."""
        del turn_id, heard
        return nullcontext()

    async def aclose(self) -> None:
        """Nothing is open."""


SILENCE: Final[TurnBus] = _Silence()
"""A bus that carries nothing."""
