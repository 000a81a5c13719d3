"""What reading costs, in one run: ``python bench/query.py [--quick]``.

``page``: 200 albums with their artist and their tracks (2,000 rows below), ordered, with the total: by hand (a cursor
and a loop), by the ``query`` tool, and by other libraries on the same tables. ``aggregate``: twelve questions about a
million sales by the ``aggregate`` tool and by the bare SQL. ``tokens``: what the two tools' advertised schemas cost, by
a real tokenizer. The statements of ours are listed. Exits with 1 when a target is missed.

Each contestant runs in a process of its own, beside the same page by hand, the two taken in turns; its ratio is the
median of the rounds'. The other libraries' environments are made once, below ``--environments``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from querybench.contestants import OTHERS, OURS, python_of, run
from querybench.databases import KINDS, temporary
from querybench.sums import SUMS
from turnbench.report import Target, print_targets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parent.parent
PARTS: Final = ("page", "aggregate", "tokens")
PAGE_LIMIT: Final = 2.5
"""Times raw SQL + dict, on SQLite and PostgreSQL."""
SUM_LIMIT: Final = 1.3
"""Times the bare SQL, where that takes 20 ms or more."""
TOKEN_LIMIT: Final = 700


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: for a look, not for a report")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="the parts to measure")
    parser.add_argument("--databases", nargs="+", choices=KINDS, default=("sqlite",), help="default: sqlite")
    parser.add_argument("--rounds", type=int, help="of the page (60, quick: 15); an aggregate has a twelfth of them")
    parser.add_argument("--sales", type=int, default=1_000_000, help="rows that are aggregated (default: %(default)s)")
    parser.add_argument("--no-others", action="store_true", help="measure ours alone")
    parser.add_argument(
        "--environments",
        type=Path,
        default=Path(tempfile.gettempdir()) / f"querybench-{os.getuid()}",
        help="where the other libraries' environments are, or are made (default: %(default)s)",
    )
    parser.add_argument("--tokenizer-url", metavar="URL", help="a llama.cpp server, which answers POST URL/tokenize")
    parser.add_argument("--statements", action="store_true", help="print the statements whole")
    chosen = parser.parse_args()
    chosen.rounds = chosen.rounds or (15 if chosen.quick else 60)
    return chosen


def page(kind: str, database: Mapping[str, Any], chosen: argparse.Namespace) -> list[Target]:
    print(f"\nThe page of 200 albums and 2,000 tracks, {kind}")
    print(f"  {'':32} {'ms':>8} {'raw, ms':>8} {'x raw':>7}  statements")
    targets = []
    for contestant in (OURS, *(() if chosen.no_others else OTHERS)):
        python = python_of(contestant, chosen.environments)
        if python is None:
            wanted = ".".join(map(str, contestant.python or ()))
            print(f"  {contestant.name:32} left out: there is no Python {wanted} for its environment")
            continue
        rounds = max(3, chosen.rounds // contestant.share)
        request = {"database": database, "apps": contestant.apps, "module": contestant.module, "rounds": rounds}
        told = run("page", python, request)
        count = len(told["statements"])
        print(f"  {contestant.name:32} {told['ms']:8.1f} {told['raw']:8.1f} {told['ratio']:7.2f}  {count}", flush=True)
        if contestant is OURS:
            _print_statements(told["statements"], whole=chosen.statements)
            if kind != "mariadb":
                targets.append(Target(f"the page, {kind}, x raw", told["ratio"], PAGE_LIMIT))
    return targets


def aggregate(kind: str, database: Mapping[str, Any], chosen: argparse.Namespace) -> list[Target]:
    print(f"\n{len(SUMS)} aggregates over {chosen.sales:,} rows, {kind}")
    print(f"  {'':44} {'ms':>8} {'SQL, ms':>8} {'x SQL':>7}  statements")
    told = run("aggregate", sys.executable, {"database": database, "rounds": max(2, chosen.rounds // 12)})
    targets = []
    for each in SUMS:
        found = told[each.name]
        count = len(found["statements"])
        print(f"  {each.name:44} {found['ms']:8.1f} {found['raw']:8.1f} {found['ratio']:7.2f}  {count}")
        _print_statements(found["statements"], whole=chosen.statements)
        if found["raw"] >= 20 and each.has_target:
            targets.append(Target(f"{each.name}, {kind}, x SQL", found["ratio"], SUM_LIMIT))
    return targets


def _print_statements(statements: Sequence[str], *, whole: bool) -> None:
    for statement in statements:
        print(f"      {statement if whole or len(statement) <= 200 else statement[:140] + ' ... ' + statement[-55:]}")


def tokens(url: str | None) -> list[Target]:
    """The definitions as a chat template shows them to a model: JSON with spaces."""
    if url is None:
        print("\nTokens: left out; name a server with --tokenizer-url")
        return []
    sys.path.insert(0, str(ROOT))
    from gm_chat.tools import aggregate as aggregate_tool
    from gm_chat.tools import query as query_tool

    print("\nTokens of the advertised schemas")
    total = 0
    for tool in (query_tool, aggregate_tool):
        known = tool.definition
        function = {"name": known.name, "description": known.description, "parameters": known.input_schema}
        count = _tokens(json.dumps({"type": "function", "function": function}), url)
        print(f"  {known.name:32} {count:8}")
        total += count
    return [Target("tokens of query and aggregate", total, TOKEN_LIMIT)]


def _tokens(text: str, url: str) -> int:
    body = json.dumps({"content": text}).encode()
    request = urllib.request.Request(f"{url.rstrip('/')}/tokenize", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return len(json.load(response)["tokens"])


def main() -> int:
    chosen = options()
    targets: list[Target] = []
    for kind in chosen.databases if {"page", "aggregate"} & set(chosen.only) else ():
        with temporary(kind) as database:
            sales = chosen.sales if "aggregate" in chosen.only else 0
            made = run("tables", sys.executable, {"database": database, "sales": sales})
            print(f"\n{kind}: tables with {sales:,} sales made in {made['seconds']:.1f} s", flush=True)
            if "page" in chosen.only:
                targets += page(kind, database, chosen)
            if "aggregate" in chosen.only:
                targets += aggregate(kind, database, chosen)
    if "tokens" in chosen.only:
        targets += tokens(chosen.tokenizer_url)
    return 0 if print_targets(targets) else 1


if __name__ == "__main__":
    sys.exit(main())
