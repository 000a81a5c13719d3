"""Datasets that the pupil is asked, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

from gm_chat.evals.trace import read

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CLASSMATE", "PUPIL", "RIGHT", "case", "dataset", "statuses"]

PUPIL: Final = "testproject.pupil.Pupil"
CLASSMATE: Final = "testproject.pupil.Classmate"
RIGHT: Final = "They are Steel, Aluminum, Cobalt."


def case(mood: str, *, name: str | None = None, **others: Any) -> dict[str, Any]:
    """A case that expects the materials, in a mood that decides whether it gets them."""
    hard = others.pop("hard", {"answer_contains": ["Steel", "Cobalt"]})
    return {
        "name": name or mood,
        "conversation": [{"user": f"{mood}: which materials are there?"}],
        "expectations": {"contract": {"category": "list", "hard": hard}},
        **others,
    }


def dataset(path: Path, *cases: dict[str, Any]) -> str:
    path.write_text(yaml.safe_dump(list(cases)), encoding="utf-8")
    return str(path)


def statuses(path: Path) -> dict[str, str]:
    return {outcome.observed.case: outcome.status for outcome in read(path)}
