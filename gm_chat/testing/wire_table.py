"""The table that ``pytest --wire-table`` ends with: wire cases by providers, and what became of each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gm_chat.testing.wire_cases import FORMATS, KINDS, wire_cases

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["wire_table"]

_TEST: Final = re.compile(r"::(?:Test)?(\w+)::test_a_wire_case\[(.+)\]$")


def wire_table(outcomes: Iterable[tuple[str, str]]) -> Sequence[str]:
    """Return the lines of the table for pairs of a test's id and its outcome; none if no wire case was run."""
    results: dict[str, dict[str, str]] = {}
    for test, outcome in outcomes:
        if found := _TEST.search(test):
            provider, case = found.groups()
            results.setdefault(case, {})[provider] = outcome
    providers = sorted({provider for row in results.values() for provider in row})
    return list(_lines(results, providers)) if providers else []


def _lines(results: Mapping[str, Mapping[str, str]], providers: Sequence[str]) -> Iterator[str]:
    width = max(map(len, results)) + 2
    columns = {provider: max(len(provider), len("skipped")) for provider in providers}
    yield f"{'':{width}}  {'  '.join(f'{name:{column}}' for name, column in columns.items())}".rstrip()
    for kind, names in _by_kind(results).items():
        if kind:
            yield f"{kind}: {KINDS[kind]}"
        for name in names:
            cells = (f"{results[name].get(provider, '-'):{column}}" for provider, column in columns.items())
            yield f"{'  ' + name:{width}}  {'  '.join(cells)}".rstrip()


def _by_kind(results: Mapping[str, object]) -> Mapping[str, list[str]]:
    """The names in the order of the kinds and the tables; those of no kind, a third party's, under ""."""
    known = dict.fromkeys(case.name for wire_format in FORMATS for case in wire_cases(wire_format))
    names = [*(name for name in known if name in results), *(name for name in results if name not in known)]
    rows: dict[str, list[str]] = {kind: [] for kind in (*KINDS, "")}
    for name in names:
        kind = name.partition(":")[0]
        rows[kind if kind in KINDS else ""].append(name)
    return {kind: names for kind, names in rows.items() if names}
