"""``python -m querybench.late``: work that takes too long, and how long after the deadline it was stopped."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

from querybench.project import set_up

if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> None:
    request = json.load(sys.stdin)
    set_up(request["database"], ["gm_chat"])
    from querybench.slow import WORK  # its managers need the project

    print(json.dumps({name: _late(work, request["seconds"], request["rounds"]) for name, work in WORK.items()}))


def _late(work: Callable[[float], Any], seconds: float, rounds: int) -> list[float]:
    """Seconds from the deadline to the refusal, of each round; none if the work was done before."""
    from gm_chat.plugin import ToolError
    from querybench.store.models import Artist

    times: list[float] = []
    for _ in range(rounds):
        deadline = time.monotonic() + seconds
        try:
            work(deadline)
        except ToolError as error:
            if error.code != "timeout":
                raise
            times.append(time.monotonic() - deadline)
        else:
            return []
        written = Artist.objects.create(pk=1_000_000, name="the connection writes")
        if Artist.objects.filter(pk=written.pk).delete()[0] != 1:
            raise SystemExit("the connection does not do what it is told")
    return times


if __name__ == "__main__":
    main()
