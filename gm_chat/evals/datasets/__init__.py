"""Where datasets come from, and which half of their cases nobody may look at while prompts are being tuned."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LEGACY", "PACKAGED", "find", "fixture_of", "is_held_out", "packaged"]

LEGACY: Final = ("basic_queries", "demo_readiness", "edge_cases", "follow_ups", "large_schema", "multi_hop")
"""Those that the command line runs."""

PACKAGED: Final = (*LEGACY, "planned_orchestration")
"""All seven. The last one needs providers whose roles are pinned."""


def packaged(name: str) -> Path:
    """Return the file of a packaged dataset. Raises ``ValueError`` for an unknown name."""
    _known(name)
    return Path(__file__).with_name(f"{name}.yaml")


def find(name: str, offered: Iterable[str] = ()) -> Path:
    """Return the file of a dataset: a packaged one's name, the name of one that a plugin offers, or a path.

    ``offered`` are the paths that the hook ``gm_chat_eval_datasets`` gave; their names are those of the files, without
    suffix. What ends in ``.yaml`` or ``.yml`` is a path. Raises ``ValueError`` for a name that nothing or two have.
    """
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    files = [*map(packaged, PACKAGED), *map(Path, offered)]
    found = [file for file in files if file.stem == name]
    if len(found) > 1:
        raise ValueError(f"two datasets are called {name!r}: {' and '.join(map(str, found))}; give the path of one")
    if not found:
        known = ", ".join(sorted({file.stem for file in files}))
        raise ValueError(f"there is no dataset {name!r}; known: {known}; or give the path of a .yaml file")
    return found[0]


def fixture_of(name: str) -> str:
    """Return the name of the fixture whose rows a packaged dataset asks about. Raises ``ValueError``, as above."""
    _known(name)
    return "large" if name == "large_schema" else "toy"


def is_held_out(case_name: str) -> bool:
    """Whether a case belongs to the half that a change is judged by: it depends on the case's name alone.

    Prompts, tools and models are improved by looking at the other half. A gain that shows in that half only is a gain
    in knowing the questions.
    """
    return hashlib.sha256(case_name.encode()).digest()[0] < 128


def _known(name: str) -> None:
    if name not in PACKAGED:
        raise ValueError(f"there is no packaged dataset {name!r}; known: {', '.join(PACKAGED)}")
