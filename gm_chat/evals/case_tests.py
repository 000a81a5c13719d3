"""The cases of a dataset as tests: what :mod:`gm_chat.evals.pytest_plugin` does once it is asked to."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import async_to_sync
from django.db import connections

from gm_chat.evals import fixtures
from gm_chat.evals.configuring import configured, variants_of
from gm_chat.evals.dataset import DatasetError
from gm_chat.evals.evaluating import actors_of, bench_of, offered
from gm_chat.evals.fixtures.installing import uninstall
from gm_chat.evals.options import Options, UsageError
from gm_chat.evals.reports import failure_lines
from gm_chat.evals.running import Job
from gm_chat.evals.selecting import Selected, load, select
from gm_chat.persistence.threads import inline_database

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from gm_chat.evals.dataset import Case
    from gm_chat.evals.record import Outcome

__all__ = ["ChatCase", "MarkError", "cases_of"]

_ACCEPTED: Final = ("allow_writes", "cases", "database", "fixture", "model", "provider", "tags", "tier", "user")


class MarkError(ValueError):
    """A mark names no cases. The message says why."""


@dataclass(slots=True, kw_only=True)
class ChatCase:
    """A case that is a test. ``outcome`` is there once it has run."""

    selected: Selected
    options: Options
    database: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Within which the database may be reached."""
    _outcome: Outcome | None = field(default=None, init=False)

    @property
    def case(self) -> Case:
        """The question and what is expected."""
        return self.selected.case

    @property
    def id(self) -> str:
        """Its name among the tests."""
        return f"{self.selected.dataset.name}-{self.case.name}"

    @property
    def outcome(self) -> Outcome:
        """The run and its verdicts."""
        assert self._outcome is not None  # noqa: S101 (the plugin runs it before the test)
        return self._outcome

    def run(self) -> list[str]:
        """Run the case, and say in some lines why it did not pass; none if it did."""
        with self.database():
            outcome = self._outcome = _run(self.selected, self.options)
        if outcome.status == "pass":
            return []
        seen = outcome.observed
        said = [f"asked: {text}" for text in seen.questions[-1:]] + [f"answered: {text}" for text in seen.answers[-1:]]
        return [f"{self.id}: {outcome.status}", *failure_lines(outcome), *said]


def cases_of(args: Sequence[Any], options: Mapping[str, Any], folder: Path) -> list[ChatCase]:
    """Return the cases that a mark with these arguments names; ``folder`` is where its relative paths begin.

    Raises :class:`MarkError`.
    """
    if len(args) != 1 or not isinstance(args[0], str | Path):
        raise MarkError(f"takes one dataset, a name or a path, not {', '.join(map(repr, args)) or 'nothing'}")
    if unknown := sorted(set(options) - set(_ACCEPTED)):
        raise MarkError(f"has no option {', '.join(map(repr, unknown))}; known: {', '.join(_ACCEPTED)}")
    name = str(args[0])
    if name.endswith((".yaml", ".yml")) and (folder / name).exists():
        name = str(folder / name)
    several = {key: _texts(key, value) for key, value in options.items() if key in ("tags", "cases")}
    if (fixture := options.get("fixture")) not in (None, *fixtures.FIXTURES):
        raise MarkError(f"there is no fixture {fixture!r}; known: {', '.join(fixtures.FIXTURES)}")
    chosen = Options(**{**options, **several, "datasets": (name,)})
    try:
        selected = select(load(chosen.datasets, offered(chosen)), chosen)
    except (UsageError, DatasetError) as error:
        raise MarkError(str(error)) from error
    return [ChatCase(selected=each, options=chosen) for each in selected]


def _texts(key: str, value: Any) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise MarkError(f"{key} must be a text or a list of texts, not {value!r}")
    return tuple(texts)


def _run(selected: Selected, options: Options) -> Outcome:
    """Run a case in the process and the settings of the tests."""
    with ExitStack() as stack:
        fixture = None
        if options.fixture is not None:
            fixture = fixtures.install(options.fixture)
            stack.callback(uninstall)
        actor = actors_of([selected], options, fixture)[selected.case.user]
        (variant,) = variants_of(options, fixture)
        stack.enter_context(configured(variant))
        if any(connection.in_atomic_block for connection in connections.all(initialized_only=True)):
            # The test's transaction is seen by its own thread alone.
            stack.enter_context(inline_database())
        bench = bench_of(options, variant, fixture)
        return async_to_sync(bench.run)(Job(selected.dataset.name, selected.case, 1, actor))
