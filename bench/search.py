"""How well and how fast ``search_managers`` ranks: ``python bench/search.py``.

1,000 managers of the ``large`` fixture, the 800 committed queries, 300 of which need the fixture's catalog. Prints
recall@1 and recall@5 by kind of query and over all, with the catalog and without, then the time of one search (median
and 95th percentile, each query run five times, the best counted).
"""

from __future__ import annotations

import json
import statistics
import time
from collections import defaultdict
from pathlib import Path

from gm_chat.managers.api import ManagerVisibility, Visibility
from gm_chat.managers.index import SchemaIndex
from gm_chat.planned.catalog import load_manager_catalog
from gm_chat.testing.fixtures.large import large_catalog, large_managers

QUERIES = Path(__file__).parents[1] / "tests" / "data" / "search_queries.jsonl"
REPEATS = 5


def main() -> None:
    managers = large_managers()
    names = {info.name: info for info in managers}
    for label, source in (("without a catalog", None), ("with its catalog", large_catalog())):
        started = time.perf_counter()
        index = SchemaIndex.build(managers, load_manager_catalog(source, names))
        print(f"index of {len(index.managers)} managers {label} built in {time.perf_counter() - started:.2f} s")
        measure(index)


def measure(index: SchemaIndex) -> None:
    everything = {
        name: ManagerVisibility(
            frozenset(item.name for item in info.fields), frozenset(item.name for item in info.relations), frozenset()
        )
        for name, info in index.managers.items()
    }
    view = index.view(Visibility("bench", everything))
    view.search("warm up")
    ranks: dict[str, list[int]] = defaultdict(list)
    times: list[float] = []
    for line in QUERIES.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        best = float("inf")
        for _ in range(REPEATS):
            started = time.perf_counter()
            found = view.search(case["query"])
            best = min(best, time.perf_counter() - started)
        times.append(best * 1000)
        names = [info.name for info in found]
        ranks[case["kind"]].append(names.index(case["manager"]) + 1 if case["manager"] in names else 99)
    print(f"{'':12} recall@1 recall@5")
    of_names = [place for kind, places in ranks.items() if not kind.startswith(("alias", "use")) for place in places]
    ranks |= {"names": of_names, "all": [place for places in ranks.values() for place in places]}
    for kind, places in ranks.items():
        first, fifth = (sum(place <= most for place in places) / len(places) for most in (1, 5))
        print(f"{kind:12} {first:8.3f} {fifth:8.3f}   ({len(places)} queries)")
    print(f"median {statistics.median(times):.2f} ms, p95 {statistics.quantiles(times, n=20)[-1]:.2f} ms\n")


if __name__ == "__main__":
    main()
