"""The trace of a run: a file of JSON lines, one for each run of a case, with all that is needed to judge it again.

A line holds no time but ``seconds``: two runs of a deterministic provider with the same seed differ in nothing else.
``docs/evals.md`` lists the keys.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from gm_chat.encoding import canonical_json
from gm_chat.evals.record import Observed, Outcome, ToolUse, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["VERSION", "Head", "TraceError", "read", "read_entries", "to_line"]

VERSION: Final = 1
"""Of the lines' format."""


class TraceError(ValueError):
    """A file is no trace. The message names the file, the line and what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Under which circumstances a case was run: a result counts for these alone.

    ``settings_sha256`` is of what the command line and the variant's file changed in the chat's settings. ``versions``
    are those of gm-chat, of the provider's distribution and of its SDK.
    """

    seed: int = 0
    dataset_sha256: str = ""
    settings_sha256: str = ""
    fixture: str = ""
    provider: str = ""
    model: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)


def to_line(outcome: Outcome, head: Head) -> str:
    """Return the line, without its end, of a run of a case."""
    observed = asdict(outcome.observed)
    cost = outcome.observed.cost
    return canonical_json(
        {
            "version": VERSION,
            "status": outcome.status,
            **observed,
            "cost": None if cost is None else format(cost, "f"),
            "verdicts": [asdict(verdict) for verdict in outcome.verdicts],
            "head": asdict(head),
        }
    )


def read(path: Path) -> list[Outcome]:
    """Return the runs of a trace, in its order. Raises :class:`TraceError`."""
    return [outcome for _, outcome in read_entries(path)]


def read_entries(path: Path) -> list[tuple[Head, Outcome]]:
    """Return the runs of a trace, each with its circumstances. Raises :class:`TraceError`.

    A last line without its end is what an interrupted run left, and is passed over.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return list(_entries(text.split("\n")[:-1], path))


def _entries(lines: list[str], path: Path) -> Iterator[tuple[Head, Outcome]]:
    for number, line in enumerate(lines, 1):
        try:
            raw = json.loads(line)
            if raw["version"] != VERSION:
                raise TraceError(f"{path}: line {number}: has version {raw['version']!r}; this gm-chat reads {VERSION}")
            yield Head(**raw["head"]), _outcome(raw)
        except TraceError:
            raise
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise TraceError(f"{path}: line {number}: is no line of a trace: {error!r}") from error


def _outcome(raw: Mapping[str, Any]) -> Outcome:
    known = {each.name: raw[each.name] for each in fields(Observed)}
    cost = known["cost"]
    changed: dict[str, Any] = {
        "tags": tuple(known["tags"]),
        "questions": tuple(known["questions"]),
        "answers": tuple(known["answers"]),
        "confirmations": tuple(known["confirmations"]),
        "calls": tuple(ToolUse(**call) for call in known["calls"]),
        "cost": None if cost is None else Decimal(cost),
    }
    return Outcome(
        observed=Observed(**{**known, **changed}), verdicts=tuple(Verdict(**verdict) for verdict in raw["verdicts"])
    )
