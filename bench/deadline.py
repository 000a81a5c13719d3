"""How late a deadline is kept: ``python bench/deadline.py [--databases sqlite postgresql mariadb]``.

Work that takes longer than half a second is run under a deadline of that, through ``query`` and through ``aggregate``,
over the million sales of ``bench/query.py``: single heavy statements of several kinds, many small ones, and rows that
the driver or Python makes objects of. Printed is how long after the deadline each refusal came, the median and the
worst of the rounds, and whether the connection answered and wrote afterwards. Exits with 1 when a median is later than
0.1 s, which a machine that is busy with other things cannot keep.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final

from querybench.contestants import run
from querybench.databases import KINDS, temporary
from turnbench.report import Target, print_targets

LATEST: Final = 0.1
"""Seconds after the deadline."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--databases", nargs="+", choices=KINDS, default=("sqlite",), help="default: sqlite")
    parser.add_argument("--seconds", type=float, default=0.5, help="the deadline (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="of each kind of work (default: %(default)s)")
    parser.add_argument("--sales", type=int, default=1_000_000, help="rows (default: %(default)s)")
    chosen = parser.parse_args()
    targets = []
    for kind in chosen.databases:
        with temporary(kind) as database:
            run("tables", sys.executable, {"database": database, "sales": chosen.sales})
            # SQLite sorts as many rows at a stretch as its cache holds: here as many as it does by default.
            request = {"database": {**database, "OPTIONS": {}}, "seconds": chosen.seconds, "rounds": chosen.rounds}
            answer = run("late", sys.executable, request)
        print(f"\n{kind}, {chosen.seconds} s, {chosen.sales:,} sales: late by, in ms")
        print(f"  {'':44} {'median':>8} {'worst':>8}")
        for name, late in answer.items():
            if not late:
                print(f"  {name:44} {'done before the deadline':>17}")
                continue
            median = sorted(late)[len(late) // 2]
            print(f"  {name:44} {median * 1000:8.1f} {max(late) * 1000:8.1f}", flush=True)
            targets.append(Target(f"{name}, {kind}, seconds late", median, LATEST))
    return 0 if print_targets(targets) else 1


if __name__ == "__main__":
    sys.exit(main())
