"""A whole run: fixture, datasets, variants, cases, reports. Needs Django to be set up."""

from __future__ import annotations

import asyncio
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model

from gm_chat.evals import fixtures, judging, reports
from gm_chat.evals.command import FAILED, INTERRUPTED, ONLY_ERRORS, PASSED
from gm_chat.evals.configuring import configured, variants_of
from gm_chat.evals.datasets import LEGACY, fixture_of
from gm_chat.evals.fixtures.installing import uninstall
from gm_chat.evals.options import DEFAULT_ALIAS, UsageError
from gm_chat.evals.progress import Progress
from gm_chat.evals.running import Bench, Job, Judges, run_all
from gm_chat.evals.selecting import load, select
from gm_chat.evals.trace import Head, read
from gm_chat.evals.trace_file import TraceFile, key_of
from gm_chat.evals.versions import versions_of
from gm_chat.host.providers import resolve
from gm_chat.plugin import Actor
from gm_chat.wiring import get_runtime

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gm_chat.evals.configuring import Variant
    from gm_chat.evals.fixtures.installing import Fixture
    from gm_chat.evals.options import Options
    from gm_chat.evals.record import Outcome
    from gm_chat.evals.selecting import Selected
    from gm_chat.evals.trace_file import Key
    from gm_chat.wiring import Runtime

__all__ = ["actors_of", "bench_of", "evaluate", "offered"]

ANALYST = "analyst"
"""Who asks in a fixture where nobody is named."""

_NOBODY = Actor(session_key="gm-chat-evals")


@dataclass(slots=True)
class _Results:
    """What is known so far, by variant and in the order of the selection once it is complete."""

    wanted: int
    heads: dict[Key, Head] = field(default_factory=dict)
    outcomes: dict[Key, Outcome] = field(default_factory=dict)

    @property
    def in_order(self) -> list[Outcome]:
        return [self.outcomes[key] for key in self.heads if key in self.outcomes]


def evaluate(options: Options) -> int:
    """Run what the options ask for, print the report, and return the exit status.

    Raises :class:`~gm_chat.evals.options.UsageError` for a selection that cannot be run, and whatever the setup, the
    datasets or the files to be written raise.
    """
    _look_ahead(options)
    with ExitStack() as stack:
        fixture = None
        if options.fixture is not None:
            fixture = fixtures.install(options.fixture)
            stack.callback(uninstall)
        selected = select(load(options.datasets, offered(options)), options)
        actors = actors_of(selected, options, fixture)
        _warn_of_other_fixtures(selected, options)
        variants = variants_of(options, fixture)
        results = _Results(len(variants) * len(selected) * options.repeat)
        trace = stack.enter_context(TraceFile(options.trace_jsonl, resume=options.resume))
        progress = stack.enter_context(Progress(results.wanted, sys.stderr))
        is_complete = True
        for variant in variants:
            with configured(variant):
                run = _Run(options, variant, fixture, get_runtime(), trace, progress, results)
                jobs = [
                    Job(item.dataset.name, item.case, repeat, actors[item.case.user])
                    for repeat in range(1, options.repeat + 1)
                    for item in selected
                ]
                is_complete = run.all(jobs, {item.dataset.name: item.dataset.sha256 for item in selected})
            if not is_complete:
                break
        trace.sort(results.heads)
    _report(options, results)
    return _status(results.in_order) if is_complete else INTERRUPTED


@dataclass(frozen=True, slots=True)
class _Run:
    """The cases under one variant of the settings, which are the chat's meanwhile."""

    options: Options
    variant: Variant
    fixture: Fixture | None
    runtime: Runtime
    trace: TraceFile
    progress: Progress
    results: _Results

    def all(self, jobs: Sequence[Job], hashes: Mapping[str, str]) -> bool:
        """Run what the trace does not hold; return whether it came to its end."""
        common = self._head()
        heads = {name: replace(common, dataset_sha256=sha256) for name, sha256 in hashes.items()}
        due = []
        for job in jobs:
            key = self._key(heads, job)
            self.results.heads[key] = heads[job.dataset]
            held = self.trace.held(key)
            if held is None:
                due.append(job)
            else:
                self._note(key, held)

        def done(job: Job, outcome: Outcome) -> None:
            self.trace.add(heads[job.dataset], outcome)
            self._note(self._key(heads, job), outcome)

        try:
            return asyncio.run(self._run(due, done))
        except KeyboardInterrupt:  # a second one, or one that came before the loop could take it
            return False

    async def _run(self, due: Sequence[Job], done: Any) -> bool:
        bench = bench_of(self.options, self.variant, self.fixture)
        return await run_all(bench, due, concurrency=self.options.concurrency, done=done)

    def _head(self) -> Head:
        """Under which circumstances these cases run. Builds the provider and the schema: better now than in each."""
        settings = self.runtime.settings
        spec = resolve(settings.provider, self.runtime.host)
        provider = spec.build(None)
        model = settings.provider_config.get("model") or getattr(provider, "model", "")
        self.runtime.managers  # noqa: B018 (reads every source)
        return Head(
            seed=self.options.seed,
            settings_sha256=self.variant.sha256,
            fixture=self.options.fixture or "",
            provider=settings.provider,
            model=model if isinstance(model, str) else "",
            versions=versions_of(provider),
        )

    def _key(self, heads: Mapping[str, Head], job: Job) -> Key:
        return key_of(heads[job.dataset], job.dataset, job.case.name, self.variant.name, job.repeat)

    def _note(self, key: Key, outcome: Outcome) -> None:
        self.results.outcomes[key] = outcome
        self.progress.advance(outcome)


def _look_ahead(options: Options) -> None:
    """Find out now what would lose a report after the run: a baseline that is none, a folder that is not there."""
    if options.baseline is not None:
        read(options.baseline)
    for option, file in (("--junit", options.junit), ("--html", options.html)):
        if file is not None and not file.parent.is_dir():
            raise UsageError(f"{option}: there is no folder {file.parent}")


def offered(options: Options) -> tuple[str, ...]:
    """The paths of the plugins' datasets. Packaged ones are found without asking plugins."""
    if set(options.datasets) <= set(LEGACY):
        return ()
    return get_runtime().host.eval_datasets


def bench_of(options: Options, variant: Variant, fixture: Fixture | None) -> Bench:
    """Where cases are run under a variant, whose settings must be the chat's."""
    return Bench(
        runtime=get_runtime(),
        variant=variant.name,
        seed=options.seed,
        alias=options.alias or (DEFAULT_ALIAS if fixture is None else fixture.database_alias),
        fixture=fixture,
        judges=Judges(judging.judge, judging.reference_rows),
        may_write=fixture is not None or options.allow_writes,
    )


def actors_of(selected: Sequence[Selected], options: Options, fixture: Fixture | None) -> dict[str | None, Actor]:
    """Who asks, by what the cases say about it. Raises :class:`UsageError` for a user who is not known."""
    asked = {item.case.user for item in selected}
    find = _project_actor if fixture is None else _fixture_finder(fixture)
    default = options.user or (None if fixture is None else ANALYST)
    return {user: find(user or default) for user in asked}


def _fixture_finder(fixture: Fixture) -> Any:
    """Find the fixture's users by name."""

    def find(name: str) -> Actor:
        user = fixture.users.get(name)
        if user is None:
            raise UsageError(f"the fixture {fixture.name!r} has no user {name!r}; known: {', '.join(fixture.users)}")
        return Actor(user_id=str(user.pk), user=user)

    return find


def _project_actor(name: str | None) -> Actor:
    if name is None:
        return _NOBODY
    model = get_user_model()
    try:
        user = model._default_manager.get_by_natural_key(name)
    except model.DoesNotExist:
        raise UsageError(f"the project has no user {name!r}, who is to ask") from None
    return Actor(user_id=str(user.pk), user=user)


def _warn_of_other_fixtures(selected: Sequence[Selected], options: Options) -> None:
    names = dict.fromkeys(item.dataset.name for item in selected)
    other = [name for name in names if name in LEGACY and fixture_of(name) != options.fixture]
    if other:
        has = "the project's schema" if options.fixture is None else f"the fixture {options.fixture!r}"
        print(f"note: {', '.join(other)}: asks about another fixture than {has}", file=sys.stderr)  # noqa: T201 (a command's output)


def _report(options: Options, results: _Results) -> None:
    outcomes = results.in_order
    heads = [results.heads[key] for key in results.heads if key in results.outcomes]
    by_variant: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_variant.setdefault(outcome.observed.variant, []).append(outcome)
    if options.compare or options.variants:
        judged = sum(outcome.status != "error" for outcome in outcomes)
        parts = [reports.comparison(by_variant), f"{judged} of {results.wanted} evaluated"]
    else:
        parts = [reports.table(outcomes, evaluated_of=results.wanted, verbose=options.verbose)]
    if options.baseline is not None:
        parts.append(reports.baseline(options.baseline, outcomes))
    print("\n\n".join(parts))  # noqa: T201 (a command's output)
    if options.junit is not None:
        reports.write_junit(options.junit, outcomes)
    if options.html is not None:
        reports.write_html(options.html, outcomes, heads[0] if heads else Head())


def _status(outcomes: Sequence[Outcome]) -> int:
    statuses = {outcome.status for outcome in outcomes}
    if "fail" in statuses:
        return FAILED
    return ONLY_ERRORS if "error" in statuses else PASSED
