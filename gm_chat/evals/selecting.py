"""Which cases of which datasets are run, in which order."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gm_chat.evals.dataset import Dataset, load_dataset
from gm_chat.evals.datasets import find, is_held_out
from gm_chat.evals.options import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gm_chat.evals.dataset import Case
    from gm_chat.evals.options import Options

__all__ = ["Selected", "load", "select"]


@dataclass(frozen=True, slots=True)
class Selected:
    """A case and its dataset."""

    dataset: Dataset
    case: Case


def load(names: Iterable[str], offered: Iterable[str]) -> list[Dataset]:
    """Read datasets by name or path; ``offered`` are the plugins'.

    Raises :class:`UsageError` for a name that leads nowhere, and :class:`~gm_chat.evals.dataset.DatasetError` for a
    file with a mistake.
    """
    try:
        files = [find(name, list(offered)) for name in names]
    except ValueError as error:
        raise UsageError(f"--dataset: {error}") from error
    datasets = [load_dataset(file) for file in files]
    loaded = [dataset.name for dataset in datasets]
    if len(set(loaded)) < len(loaded):
        raise UsageError(f"--dataset: two files have the same name: {', '.join(map(str, files))}")
    return datasets


def select(datasets: Sequence[Dataset], options: Options) -> list[Selected]:
    """The cases that every filter leaves, in the datasets' order. Raises :class:`UsageError` if there is none."""
    every = [Selected(dataset, case) for dataset in datasets for case in dataset.cases]
    known = {item.case.name for item in every}
    if unknown := [name for name in options.cases if name not in known]:
        raise UsageError(f"--case: no selected dataset has {', '.join(map(repr, unknown))}")
    chosen = [item for item in every if _matches(item.case, options)]
    if not chosen:
        raise UsageError(f"no case matches: of {len(every)} in {', '.join(options.datasets)}, {_filters(options)}")
    if options.sample is not None and options.sample < len(chosen):
        drawn = random.Random(options.seed).sample(range(len(chosen)), options.sample)  # noqa: S311 (nothing secret)
        chosen = [chosen[position] for position in sorted(drawn)]
    return chosen


def _matches(case: Case, options: Options) -> bool:
    return (
        (options.tier is None or case.tier == options.tier)
        and set(options.tags) <= set(case.tags)
        and (not options.cases or case.name in options.cases)
        and (options.half is None or is_held_out(case.name) == (options.half == "held-out"))
    )


def _filters(options: Options) -> str:
    asked = [f"tier {options.tier}"] if options.tier is not None else []
    asked += [f"tag {tag!r}" for tag in options.tags]
    asked += [f"name {' or '.join(map(repr, options.cases))}"] if options.cases else []
    asked += [f"the {options.half} half"] if options.half else []
    return f"none has {' and '.join(asked)}"
