"""``python -m querybench.aggregate``: the ``aggregate`` tool beside the bare SQL, question by question."""

from __future__ import annotations

import json
import sys
import time
from decimal import Decimal
from typing import Any

from querybench.project import set_up
from querybench.sums import SUMS


def main() -> None:
    request = json.load(sys.stdin)
    set_up(request["database"], ["gm_chat"])
    from django.db import connection

    from gm_chat.managers.aggregate import build_aggregate
    from gm_chat.managers.aggregation import execute_aggregate
    from querybench.pages.ours import ACTOR, BINDINGS, SECONDS, VIEW
    from querybench.timing import heard, in_turns

    answers = {}
    for each in SUMS:
        sql = each.by_hand(connection.vendor)

        def bare(sql: str = sql) -> Any:
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return cursor.fetchall()

        def ours(arguments: Any = each.arguments) -> Any:
            plan = build_aggregate(arguments, VIEW, max_results=200)
            return execute_aggregate(plan, BINDINGS, ACTOR, deadline=time.monotonic() + SECONDS).data

        found, statements = heard(ours)
        _compare(each.name, bare(), found)
        answers[each.name] = {**in_turns(bare, ours, request["rounds"]), "bare": sql, "statements": statements}
    print(json.dumps(answers))


def _compare(name: str, expected: Any, got: Any) -> None:
    rows = [tuple(row.values()) for row in got]
    if len(rows) != len(expected) or not all(
        _alike(*pair) for one, other in zip(expected, rows, strict=True) for pair in zip(one, other, strict=True)
    ):
        raise SystemExit(f"{name}: {expected[:3]} by hand, {rows[:3]} by aggregate")


def _alike(expected: Any, got: Any) -> bool:
    if isinstance(expected, int | float | Decimal) and got is not None:
        return abs(float(expected) - float(got)) <= 1e-7 * max(1.0, abs(float(expected)))
    return expected == got or str(expected) == str(got)


if __name__ == "__main__":
    main()
