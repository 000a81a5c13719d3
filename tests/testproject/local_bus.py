"""A bus between the runners of one process, for tests of what they do with one."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class LocalBus:
    """A bus within the process. ``sent`` tells what went over it; one that is ``cut`` delivers nothing."""

    reaches_others = True

    def __init__(self) -> None:
        self.cut = False
        self.closed = 0
        self.sent: list[tuple[str, str, int]] = []
        self.ears: defaultdict[tuple[str, str], list[Callable[[int], None]]] = defaultdict(list)

    def announce(self, turn_id: str, seq: int) -> None:
        self._send("announced", turn_id, seq)

    def request(self, turn_id: str) -> None:
        self._send("requested", turn_id, 0)

    def on_announced(self, turn_id: str, heard: Callable[[int], None]) -> Any:
        return self._listening("announced", turn_id, heard)

    def on_requested(self, turn_id: str, heard: Callable[[], None]) -> Any:
        return self._listening("requested", turn_id, lambda _: heard())

    async def aclose(self) -> None:
        self.closed += 1

    def _send(self, kind: str, turn_id: str, seq: int) -> None:
        self.sent.append((kind, turn_id, seq))
        for heard in () if self.cut else tuple(self.ears[kind, turn_id]):
            heard(seq)

    @contextmanager
    def _listening(self, kind: str, turn_id: str, heard: Callable[[int], None]) -> Iterator[None]:
        self.ears[kind, turn_id].append(heard)
        try:
            yield
        finally:
            self.ears[kind, turn_id].remove(heard)
