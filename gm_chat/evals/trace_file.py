"""Writing a trace while cases end, and going on with one that was not finished."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from gm_chat.evals.trace import Head, read_entries, to_line

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from gm_chat.evals.record import Observed, Outcome

__all__ = ["Key", "TraceFile", "key_of"]

Key: TypeAlias = tuple[Any, ...]


def key_of(head: Head, dataset: str, case: str, variant: str, repeat: int) -> Key:
    """What a run of a case is the same by. Versions are none of it: a trace may be finished with newer ones."""
    under = (head.seed, head.dataset_sha256, head.settings_sha256, head.fixture, head.provider, head.model)
    return (*under, dataset, case, variant, repeat)


class TraceFile:
    """A trace that grows by a line as soon as a case has ended, so that nothing is lost of an interrupted run.

    At the end its lines are put in the order of the selection, whatever ended first. Without ``path`` there is none.
    """

    def __init__(self, path: Path | None, *, resume: bool) -> None:
        """Read what there is if it is to be gone on with; else a former file is overwritten.

        Raises :class:`~gm_chat.evals.trace.TraceError` and ``OSError``.
        """
        self._path = path
        entries = read_entries(path) if path is not None and resume and path.exists() else []
        self._held = {_key(head, outcome.observed): (head, outcome) for head, outcome in entries}
        self._lines = {key: to_line(outcome, head) for key, (head, outcome) in self._held.items()}
        if path is not None and resume and path.is_file():
            _write(path, self._lines.values())  # without the line that was not finished
        self._file = None if path is None else path.open("a" if resume else "w", encoding="utf-8")
        self._is_sorted = not entries

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def held(self, key: Key) -> Outcome | None:
        """The outcome that need not be found out again. An error is none."""
        _, outcome = self._held.get(key, (None, None))
        return None if outcome is None or outcome.status == "error" else outcome

    def add(self, head: Head, outcome: Outcome) -> None:
        """Write the outcome of a case that has just ended."""
        line = to_line(outcome, head)
        self._lines[_key(head, outcome.observed)] = line
        if self._file is not None:
            self._file.write(f"{line}\n")
            self._file.flush()

    def sort(self, order: Iterable[Key]) -> None:
        """Put the lines in this order, after those of other runs."""
        wanted = dict.fromkeys(order)
        others = [key for key in self._lines if key not in wanted]
        keys = [*others, *(key for key in wanted if key in self._lines)]
        if self._path is None or not self._path.is_file() or (self._is_sorted and keys == list(self._lines)):
            return
        self._lines = {key: self._lines[key] for key in keys}
        _write(self._path, self._lines.values())


def _key(head: Head, observed: Observed) -> Key:
    return key_of(head, observed.dataset, observed.case, observed.variant, observed.repeat)


def _write(path: Path, lines: Iterable[str]) -> None:
    """Write the whole file or none of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
        Path(temporary).chmod(path.stat().st_mode)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
