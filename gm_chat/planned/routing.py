"""Which executor works on a task: the cheap one only where every known fact is simple."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from gm_chat.planned.models import PlannedTask

__all__ = ["ExecutorRole", "select_executor_role"]

ExecutorRole = Literal["simple_executor", "complex_executor"]

MAX_SIMPLE_PATH: Final = 1
"""Relations between managers that a simple task may step over."""


def select_executor_role(
    task: PlannedTask, *, unique_manager: bool, path_depth: int | None, prior_failure: bool
) -> ExecutorRole:
    """Choose the simple executor for one query, at most, that builds on no other task and leaves nothing in doubt.

    ``unique_manager``: the resolver found exactly one exact candidate. ``path_depth``: relations on the longest path
    that the task needs, ``None`` if it needs no path. ``prior_failure``: a round on this task has failed before.
    Raises ``ValueError`` for a path depth below 0.
    """
    if path_depth is not None and path_depth < 0:
        raise ValueError(f"path_depth is {path_depth!r}: expected None or a number of relations, 0 or more")
    near = path_depth is None or path_depth <= MAX_SIMPLE_PATH
    simple = unique_manager and near and not prior_failure and not task.routing_features
    return "simple_executor" if simple else "complex_executor"
