"""Turns per second and what a turn costs, against the reference in the same run: ``python bench/turns.py [--quick]``.

Both servers are uvicorn with one worker in a process of its own, Django, 301 parts in a SQLite file (WAL, IMMEDIATE,
20 s), logged-in users with their sessions, and a language model that costs nothing. The reference is GeneralManager
0.86.14; its environment is made once, in the folder ``--reference-venv``. Exits with 1 when a target is missed.

The parts: ``rates`` (turns per second), ``statements`` (SQL per turn), ``sockets`` (500 idle WebSockets), ``blocks``
(of the event loop), ``slow`` (a 2 s tool beside other users' turns), ``history`` (2,000 stored messages), ``planned``
(rates and statements of planned turns), ``parallel`` (tasks of one plan side by side).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from turnbench import single
from turnbench.client import TRANSPORTS
from turnbench.machine import Machine
from turnbench.parallel import tasks_side_by_side
from turnbench.rates import Cell, measure
from turnbench.report import Target, print_rates, print_table, print_targets, rate_targets
from turnbench.servers import Server, reference_python, running

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT: Final = Path(__file__).resolve().parent.parent
PARTS: Final = ("rates", "statements", "sockets", "blocks", "slow", "history", "planned", "parallel")
KINDS: Final = ("text", "query")
USERS: Final = 2_000
MOST_STATEMENTS: Final = {"text": 7, "query": 9, "planned": 10}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short runs: for a look, not for a report")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="the parts to measure")
    parser.add_argument("--skip", nargs="+", choices=PARTS, default=(), help="the parts to leave out")
    parser.add_argument("--transports", nargs="+", choices=tuple(TRANSPORTS), default=tuple(TRANSPORTS))
    parser.add_argument("--clients", nargs="+", type=int, default=(1, 8, 32), metavar="N")
    parser.add_argument("--seconds", type=float, help="of each run of a cell (4, quick: 1.5)")
    parser.add_argument("--repeats", type=int, help="runs of each cell, of which the median counts (3, quick: 1)")
    parser.add_argument(
        "--standard", action="store_true", help="both servers on uvloop and httptools, as uvicorn[standard] brings them"
    )
    parser.add_argument("--no-reference", action="store_true", help="measure ours alone; ratios are left out")
    parser.add_argument(
        "--reference-venv",
        type=Path,
        default=Path(tempfile.gettempdir()) / f"turnbench-reference-{os.getuid()}",
        help="where the reference's environment is, or is made (default: %(default)s)",
    )
    parser.add_argument("--reference-python", default="python3.12", help="what makes it (default: %(default)s)")
    parser.add_argument("--checkout", type=Path, default=ROOT, help="another checkout of gm-chat to measure as ours")
    chosen = parser.parse_args()
    chosen.seconds = chosen.seconds or (1.5 if chosen.quick else 4.0)
    chosen.repeats = chosen.repeats or (1 if chosen.quick else 3)
    chosen.parts = [part for part in chosen.only if part not in chosen.skip]
    if chosen.standard and "blocks" in chosen.parts:
        print("Without the part blocks: uvloop shows nobody its callbacks.")
        chosen.parts.remove("blocks")
    return chosen


async def rates(servers: Sequence[Server], chosen: argparse.Namespace, kinds: Sequence[str] = KINDS) -> list[Target]:
    cells = [Cell(t, kind, clients) for kind in kinds for t in chosen.transports for clients in chosen.clients]
    samples = await measure(servers, cells, seconds=chosen.seconds, repeats=chosen.repeats)
    print_rates(samples)
    return rate_targets(samples)


async def statements(
    servers: Sequence[Server], chosen: argparse.Namespace, kinds: Sequence[str] = KINDS
) -> list[Target]:
    rows, targets = [], []
    for kind in kinds:
        for transport in chosen.transports:
            for server in servers:
                counted = await single.statements(server, transport, kind)
                rows.append((f"{kind:7} {transport:4} {server.kind}", *(counted[group] for group in single.GROUPS)))
                if server.kind == "ours":
                    name = f"statements of a turn, {kind} {transport}"
                    targets.append(Target(name, counted["chat"], MOST_STATEMENTS[kind]))
    print_table("SQL statements per turn", ("turn, transport", *single.GROUPS), rows)
    return targets


async def sockets(servers: Sequence[Server], chosen: argparse.Namespace) -> list[Target]:
    if "ws" not in chosen.transports:
        return []
    head = ("", "open", "before_mib", "held_mib", "after_mib", "each_kib", "p50_alone", "p50_beside")
    rows = []
    for server in servers:
        told = await single.idle_sockets(server, 100 if chosen.quick else 500)
        rows.append((server.kind, *(told[name] for name in head[1:])))
    print_table("Idle WebSockets: memory, and a text turn (p50 ms) alone and beside them", head, rows)
    return []


async def blocks(servers: Sequence[Server], chosen: argparse.Namespace) -> list[Target]:
    rows, targets, names = [], [], []
    for transport in chosen.transports:
        for clients in (1, 8):
            for server in servers:
                told = await single.blocks(server, transport, clients, seconds=chosen.seconds)
                (worst, cpu), (_, wall) = told["cpu"][0], told["wall"][0]
                lags = (told["lag_p99"], told["lag_max"])
                rows.append((f"{transport:4} {clients} {server.kind}", cpu, told["collector"], wall, *lags, worst))
                if server.kind == "ours":
                    targets.append(Target(f"longest block of the loop, CPU ms, {transport} {clients}", cpu, 10))
                    names += [f"{transport} {clients}: " + ", ".join(f"{n} {ms:.1f}" for n, ms in told["cpu"][:4])]
    head = ("query turns", "cpu ms", "collector", "wall ms", "lag p99", "lag max", "longest by CPU")
    print_table("The longest single callback of the event loop, and a 5 ms heartbeat's lag", head, rows)
    print("  ours, by CPU: " + "\n                ".join(names))
    return targets


async def slow(servers: Sequence[Server], chosen: argparse.Namespace) -> list[Target]:
    rows, targets = [], []
    for transport in chosen.transports:
        for server in servers:
            without, with_it, took = await single.slow_tool(server, transport)
            rows.append((f"{transport:4} {server.kind}", without, with_it, took))
            if server.kind == "ours":
                targets.append(Target(f"others' slowest turn beside a 2 s tool, ms, {transport}", with_it, 1000))
    head = ("transport", "without", "beside it", "the slow one")
    print_table("Four users' slowest query turn (ms) while another user's query takes 2 s", head, rows)
    return targets


async def history(servers: Sequence[Server], chosen: argparse.Namespace) -> list[Target]:
    messages, rows, targets = (400 if chosen.quick else 2_000), [], []
    for server in servers:
        told = await single.history(server, "http", messages=messages, turns=20 if chosen.quick else 60)
        ratio = told["long"] / told["empty"]
        rows.append(
            (server.kind, told["empty"], told["window"], told["long"], f"{ratio:.2f}", f"{told['summaries']:.2f}")
        )
        if server.kind == "ours":
            targets.append(Target(f"a turn after {messages} messages to a first one", ratio, 1.3))
            targets.append(Target("summary calls per ten messages", told["summaries"], 1))
    head = ("p50 ms, text over HTTP", "first", "after 24", f"after {messages}", "ratio", "summaries / 10")
    print_table("What a long conversation costs, with summaries as they are by default", head, rows)
    return targets


async def planned(servers: Sequence[Server], chosen: argparse.Namespace) -> list[Target]:
    # Statements first: a server's first turn reads much once.
    targets = await statements(servers, chosen, ("planned",))
    return targets + await rates(servers, chosen, ("planned",))


async def parallel() -> list[Target]:
    rows = [
        (f"max_concurrent_tasks {slots}", await tasks_side_by_side(6, latency=0.2, slots=slots) * 1000)
        for slots in (1, 3, 6)
    ]
    print_table("Six independent tasks of 200 ms each: time for evidence", ("", "ms"), rows)
    return [Target("six tasks of 200 ms, three at once, ms", rows[1][1], 600)]


async def run(chosen: argparse.Namespace) -> bool:
    targets: list[Target] = []
    pythons = {"ours": sys.executable}
    if not chosen.no_reference:
        pythons["reference"] = reference_python(
            chosen.reference_venv, chosen.reference_python, standard=chosen.standard
        )
    # sockets first: memory once freed hides what is taken
    for plans, parts in ((False, (sockets, rates, statements, blocks, slow)), (True, (planned,))):
        wanted = [part for part in parts if part.__name__ in chosen.parts]
        with ExitStack() as stack:
            servers = [
                stack.enter_context(
                    running(
                        kind,
                        python,
                        checkout=chosen.checkout,
                        users=USERS,
                        planned=plans,
                        standard=chosen.standard,
                    )
                )
                for kind, python in pythons.items()
                if wanted
            ]
            for server in servers:
                print(f"{server.kind}: {server.about['version']}; {server.about['memory'] / 2**20:.0f} MiB after start")
            for part in wanted:
                machine = Machine(servers)
                targets += await part(servers, chosen)
                print(f"  ({machine})")
    if "parallel" in chosen.parts:
        targets += await parallel()
    if "history" in chosen.parts:
        # The reference rewrites its summary every turn, and gets slower with each; 2,000 messages are ours to prove.
        only_ours = running(
            "ours", sys.executable, checkout=chosen.checkout, users=200, summaries=True, standard=chosen.standard
        )
        with only_ours as server:
            machine = Machine([server])
            targets += await history([server], chosen)
            print(f"  ({machine})")
    return print_targets(targets)


def main() -> int:
    chosen = options()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096) if most > 0 else 4096, most))
    return 0 if asyncio.run(run(chosen)) else 1


if __name__ == "__main__":
    sys.exit(main())
