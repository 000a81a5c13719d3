"""Running cases under one variant of the settings, one after the other or some side by side."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.db import connections

from gm_chat.encoding import jsonable
from gm_chat.engine.shielding import to_the_end
from gm_chat.engine.tools import MUTATE
from gm_chat.evals.case_runtime import case_runtime, seeded_ids
from gm_chat.evals.conversing import SCOPE, Conversation, converse, observed
from gm_chat.evals.gate import Gate
from gm_chat.evals.record import Observed, Outcome
from gm_chat.host.problems import Failed
from gm_chat.plugin import ToolContext, ToolError, TurnContext

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gm_chat.evals.case_runtime import CaseRuntime
    from gm_chat.evals.dataset import Case
    from gm_chat.evals.fixtures.installing import Fixture
    from gm_chat.evals.gate import Pass
    from gm_chat.evals.record import Verdict
    from gm_chat.plugin import Actor
    from gm_chat.wiring import Runtime

__all__ = ["Bench", "Job", "Judges", "run_all"]

WRITES: Final = "writes"
"""The tag of cases that change data."""


@dataclass(frozen=True, slots=True)
class Judges:
    """How runs are judged: see :mod:`gm_chat.evals.judging`."""

    judge: Callable[..., tuple[Verdict, ...]]
    reference_rows: Callable[..., Sequence[tuple[Any, ...]] | None]


@dataclass(frozen=True, slots=True)
class Job:
    """A case that is to be run once, and who asks."""

    dataset: str
    case: Case
    repeat: int
    actor: Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where the cases of one variant are run: its Runtime, its data, and who judges. Belongs to one event loop."""

    runtime: Runtime
    variant: str
    seed: int
    alias: str
    fixture: Fixture | None
    judges: Judges
    may_write: bool
    gate: Gate = field(default_factory=Gate)

    async def run(self, job: Job) -> Outcome:
        """Run a case. Whatever breaks is an outcome too, an error; only cancellation is raised.

        A case that changes a fixture's data is alone with it, and the data is put back afterwards.
        """
        async with self.gate.entered(alone=_writes(job.case)) as held:
            wrote = False

            async def before_write() -> None:
                nonlocal wrote
                await held.be_alone()
                wrote = True

            try:
                return await self._run(job, before_write)
            finally:
                if wrote:
                    await self._put_back(held)

    async def _run(self, job: Job, before_write: Callable[[], Any]) -> Outcome:
        which: dict[str, Any] = {"dataset": job.dataset, "case": job.case.name, "repeat": job.repeat}
        which["variant"] = self.variant
        ids = seeded_ids(self.seed, *which.values())
        which["tags"] = job.case.tags
        which["tags"] = job.case.tags
        runtime, store = case_runtime(self.runtime, ids, before_write, may_write=self.may_write)
        try:
            reference = await self._reference(job, runtime)
        except Exception as error:  # noqa: BLE001 (SQL and tools of others: the case cannot be judged, others can)
            return Outcome(observed=Observed(**which, error=f"no reference: {Failed(error)}"))
        said, began = Conversation(), time.perf_counter()
        await converse(job.case, runtime, job.actor, said)
        seen = observed(said, runtime, store, began, **which)
        if seen.error:
            return Outcome(observed=seen)
        fault = () if said.fault is None else (said.fault,)
        return Outcome(observed=seen, verdicts=(*fault, *self.judges.judge(job.case, seen, reference)))

    async def _reference(self, job: Job, runtime: CaseRuntime) -> Sequence[tuple[Any, ...]] | None:
        """The rows that the case asks for, as the data stands before the conversation."""
        if job.case.hard.result_set is None:
            return None
        loop = asyncio.get_running_loop()
        context = TurnContext(runtime.new_id(), None, job.actor, "", "terminal", SCOPE)

        def ask(arguments: Mapping[str, Any]) -> Any:
            return asyncio.run_coroutine_threadsafe(_ask(runtime, context, arguments), loop).result()

        # In a thread of its own: it waits for tools, which wait for a thread of the database's pool.
        read = partial(self.judges.reference_rows, job.case, alias=self.alias, run_query=ask)
        return await asyncio.to_thread(_closing, read)

    async def _put_back(self, held: Pass) -> None:
        if self.fixture is not None and held.is_alone:
            await to_the_end(asyncio.to_thread(self.fixture.reset))


def _writes(case: Case) -> bool:
    """Whether a case is expected to change data. One that does it all the same waits when it comes to that."""
    hard = case.hard
    mutates = any(call.name == MUTATE for call in hard.required_tool_calls)
    return mutates or WRITES in case.tags or hard.confirmation == "required"


async def _ask(runtime: CaseRuntime, context: TurnContext, arguments: Mapping[str, Any]) -> Any:
    """What the read tool that takes such arguments answers, in plain JSON types."""
    name = "aggregate" if "measures" in arguments else "query"
    tool = next((tool for tool in runtime.host.tools if tool.definition.name == name), None)
    if tool is None:
        raise ToolError("unknown_tool", f"the reference needs the tool {name!r}, which is not there")
    asked = ToolContext(context, "reference", runtime.managers, runtime.settings)
    return jsonable(await tool.run(jsonable(arguments), asked))


def _closing(read: Callable[[], Any]) -> Any:
    try:
        return read()
    finally:
        connections.close_all()


async def run_all(bench: Bench, jobs: Iterable[Job], *, concurrency: int, done: Callable[[Job, Outcome], None]) -> bool:
    """Run the jobs, ``concurrency`` of them side by side, and tell of each as it ends; whether all of them did.

    A cancellation, such as Ctrl-C, ends what runs; that is not told of, and ``False`` is returned.
    """
    waiting = iter(jobs)
    workers = [asyncio.create_task(_work(bench, waiting, done)) for _ in range(concurrency)]
    try:
        await asyncio.gather(*workers)
    except asyncio.CancelledError:
        return False
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return True


async def _work(bench: Bench, waiting: Iterator[Job], done: Callable[[Job, Outcome], None]) -> None:
    for job in waiting:
        done(job, await bench.run(job))
