"""All tasks of a plan at work: independent ones side by side, within the time for evidence.

A root waits for those that it depends on, and is blocked where one of them could not be resolved. What was found when
the time is over stays found. Whoever leaves the events, or is cancelled, ends all work and closes all streams.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NoReturn

from gm_chat.engine.failures import TurnStopped
from gm_chat.planned.worker import work_on

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from gm_chat.engine.events import Event
    from gm_chat.planned.board import Board
    from gm_chat.planned.models import PlannedTask

__all__ = ["gather"]


async def gather(board: Board, events: asyncio.Queue[Event | None], *, slots: int) -> AsyncGenerator[Event, None]:
    """Work the roots of the board's plan, at most ``slots`` at once, and yield what it releases into ``events``.

    When it ends, every task is settled. Raises :class:`~gm_chat.engine.failures.TurnStopped` and what breaks a tool.
    """
    work = asyncio.create_task(_work_all(board, slots))
    work.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        work.result()
    finally:
        if not work.done():
            work.cancel()
            await asyncio.wait({work})
        if not work.cancelled():
            work.exception()  # seen, also where nobody is left to be told


async def _work_all(board: Board, slots: int) -> None:
    limit = asyncio.Semaphore(slots)
    ended = {task.task_id: asyncio.Event() for task in board.plan.tasks}
    try:
        async with asyncio.timeout(max(0.0, board.left())), asyncio.TaskGroup() as group:
            for task in board.plan.tasks:
                group.create_task(_work_root(board, task, limit, ended))
    except TimeoutError:
        for task in board.tasks:
            board.settle(task, "deadline_exceeded")
    except ExceptionGroup as failures:
        _raise_one(failures)


async def _work_root(
    board: Board, task: PlannedTask, limit: asyncio.Semaphore, ended: Mapping[str, asyncio.Event]
) -> None:
    for name in task.depends_on:
        await ended[name].wait()
    if any(board.statuses[name] != "resolved" for name in task.depends_on):
        board.settle(task, "dependency_blocked")
    else:
        roots = {root.task_id: root for root in board.plan.tasks}
        given = [record for name in task.depends_on for record in board.findings(roots[name]).linked()]
        async with limit:
            await work_on(board, task, given)
    ended[task.task_id].set()


def _raise_one(failures: ExceptionGroup) -> NoReturn:
    """Raise one of the exceptions that ended the work: a decision of the engine's before what broke."""
    flat = list(_flat(failures))
    raise next((error for error in flat if isinstance(error, TurnStopped)), flat[0])


def _flat(group: ExceptionGroup) -> list[Exception]:
    return [
        each for error in group.exceptions for each in (_flat(error) if isinstance(error, ExceptionGroup) else [error])
    ]
