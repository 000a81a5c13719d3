"""From what a planner wrote to a plan that may be carried out. Nothing is read from the application before this.

The form is exact: every object has exactly its keys, and what follows from the rest (``completion_criteria``,
``routing_features``) must agree with it. A private detail names the first defect and its place, so that a model can
mend it when it is asked once more; clients get ``invalid_plan``. (Specification: "Planned task and validation types".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

from gm_chat.planned.models import (
    CALCULATION_OPERATIONS,
    EvidenceRequirement,
    PlanIntent,
    PlannedTask,
    RequirementKind,
    RoutingFeature,
    ValidatedPlan,
)
from gm_chat.planned.reading import DefectError, UnreadableError, plain_json, read_object, shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

__all__ = [
    "MAX_CHILDREN_PER_ROOT",
    "MAX_ID_CHARACTERS",
    "MAX_ROOTS",
    "MAX_ROOT_DEPENDENCY_DEPTH",
    "PlanValidationError",
    "read_plan",
    "validate_dynamic_children",
    "validate_plan",
]

MAX_ROOTS: Final = 6
MAX_CHILDREN_PER_ROOT: Final = 2
MAX_ROOT_DEPENDENCY_DEPTH: Final = 1
"""Edges between a root and the furthest one that it builds on: a root may depend on roots that depend on none."""

MAX_ID_CHARACTERS: Final = 128
"""Characters of an id; longer ones have no place in the audit."""

_PLAN: Final = ("intent", "tasks")
_TASK: Final = (
    "task_id",
    "objective",
    "depends_on",
    "requirements",
    "completion_criteria",
    "routing_features",
)
_REQUIREMENT: Final = ("requirement_id", "kind", "description", "operation")


class PlanValidationError(DefectError):
    """A plan, or the children of a root, cannot be carried out.

    ``detail`` names the defect for the planner and the log; ``str(error)`` and ``public_reason`` say ``invalid_plan``,
    which is all that a client learns.
    """

    reason: Final = "invalid_plan"
    code: Final = "invalid_plan"
    public_reason: Final = "invalid_plan"

    def __str__(self) -> str:
        return self.reason

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.reason!r})"


def validate_plan(payload: object) -> ValidatedPlan:
    """Return the plan that a JSON value describes: one to six roots to read, or a mutation without tasks.

    Raises :class:`PlanValidationError` for every other value, whatever it is; its size is measured first.
    """
    plan = _object(_plain(payload), _PLAN, "the plan")
    intent: PlanIntent = _one_of(plan["intent"], get_args(PlanIntent), "intent")
    items = _array(plan["tasks"], "tasks")
    if intent == "mutation":
        if items:
            raise PlanValidationError(f"tasks must be [] for the intent 'mutation', but there are {len(items)}")
        return ValidatedPlan(intent, ())
    if not 1 <= len(items) <= MAX_ROOTS:
        raise PlanValidationError(f"tasks must hold 1 to {MAX_ROOTS} tasks, but there are {len(items)}")
    tasks = _tasks(items, "tasks", parent_id=None, taken=())
    _check_root_dependencies(tasks)
    return ValidatedPlan(intent, tasks)


def read_plan(text: str) -> ValidatedPlan:
    """Return the plan that a model wrote as JSON text; duplicate keys and ``NaN`` are refused, too."""
    try:
        payload = read_object(text)
    except UnreadableError as error:
        raise PlanValidationError(error.detail) from None
    return validate_plan(payload)


def validate_dynamic_children(
    parent: PlannedTask, payload: object, existing_tasks: Collection[PlannedTask]
) -> tuple[PlannedTask, ...]:
    """Return the children that ``{"children": [...]}`` adds to a root.

    ``existing_tasks`` are all tasks of the plan so far, of other roots, too: ids are unique among all of them, and the
    children that ``parent`` has count towards its two. A child may depend on its root and on its siblings only.
    Raises :class:`PlanValidationError`.
    """
    if parent.parent_id is not None:
        raise PlanValidationError(f"the task {shown(parent.task_id)} is a child, and children have no children")
    siblings = [task for task in existing_tasks if task.parent_id == parent.task_id]
    items = _array(_object(_plain(payload), ("children",), "the value")["children"], "children")
    if len(siblings) + len(items) > MAX_CHILDREN_PER_ROOT:
        raise PlanValidationError(
            f"children: a task may have {MAX_CHILDREN_PER_ROOT}, but {shown(parent.task_id)} would have "
            f"{len(siblings) + len(items)}"
        )
    taken = {parent.task_id, *(task.task_id for task in existing_tasks)}
    children = _tasks(items, "children", parent_id=parent.task_id, taken=taken)
    _check_child_dependencies(parent, [*siblings, *children])
    return children


# --- tasks and requirements --------------------------------------------------------------------------------------


def _tasks(items: list[Any], place: str, *, parent_id: str | None, taken: Iterable[str]) -> tuple[PlannedTask, ...]:
    tasks: list[PlannedTask] = []
    ids = set(taken)
    for number, item in enumerate(items):
        task = _task(item, f"{place}[{number}]", parent_id)
        if task.task_id in ids:
            raise PlanValidationError(f"{place}[{number}].task_id: {shown(task.task_id)} is taken; ids are unique")
        ids.add(task.task_id)
        tasks.append(task)
    return tuple(tasks)


def _task(item: object, place: str, parent_id: str | None) -> PlannedTask:
    members = _object(item, _TASK, place)
    task_id = _id(members["task_id"], f"{place}.task_id")
    depends_on = _unique(members["depends_on"], f"{place}.depends_on")
    if task_id in depends_on:
        raise PlanValidationError(f"{place}.depends_on: {shown(task_id)} cannot depend on itself")
    requirements = _requirements(members["requirements"], f"{place}.requirements")
    criteria = _unique(members["completion_criteria"], f"{place}.completion_criteria")
    _expect(criteria, [item.requirement_id for item in requirements], f"{place}.completion_criteria")
    features = _unique(members["routing_features"], f"{place}.routing_features")
    derived = _routing_features(depends_on, requirements)
    _expect(features, derived, f"{place}.routing_features")
    return PlannedTask(
        task_id=task_id,
        objective=_words(members["objective"], f"{place}.objective"),
        depends_on=depends_on,
        requirements=requirements,
        completion_criteria=criteria,
        routing_features=tuple(derived),
        parent_id=parent_id,
    )


def _requirements(value: object, place: str) -> tuple[EvidenceRequirement, ...]:
    requirements: list[EvidenceRequirement] = []
    for number, item in enumerate(_array(value, place)):
        requirement = _requirement(item, f"{place}[{number}]")
        name = requirement.requirement_id
        if any(name == other.requirement_id for other in requirements):
            raise PlanValidationError(
                f"{place}[{number}].requirement_id: {shown(name)} is taken; ids are unique within a task"
            )
        requirements.append(requirement)
    return tuple(requirements)


def _requirement(item: object, place: str) -> EvidenceRequirement:
    members = _object(item, _REQUIREMENT, place)
    kind: RequirementKind = _one_of(members["kind"], get_args(RequirementKind), f"{place}.kind")
    operation = members["operation"]
    if kind == "calculation":
        operation = _one_of(operation, CALCULATION_OPERATIONS, f"{place}.operation")
    elif operation is not None:
        raise PlanValidationError(
            f"{place}.operation must be null for the kind {kind!r}; only a 'calculation' has an operation"
        )
    return EvidenceRequirement(
        requirement_id=_id(members["requirement_id"], f"{place}.requirement_id"),
        kind=kind,
        description=_words(members["description"], f"{place}.description"),
        operation=operation,
    )


def _routing_features(
    depends_on: tuple[str, ...], requirements: tuple[EvidenceRequirement, ...]
) -> list[RoutingFeature]:
    kinds = [requirement.kind for requirement in requirements]
    features: list[RoutingFeature] = []
    if depends_on:
        features.append("has_dependency")
    if "calculation" in kinds:
        features.append("requires_calculation")
    if kinds.count("query") > 1:
        features.append("multiple_queries")
    return features


# --- dependencies ------------------------------------------------------------------------------------------------


def _check_root_dependencies(tasks: tuple[PlannedTask, ...]) -> None:
    depths: dict[str, int] = {}
    for number, task in enumerate(tasks):
        place = f"tasks[{number}].depends_on"
        for name in task.depends_on:
            if name not in depths:
                raise PlanValidationError(f"{place}: {shown(name)} is no earlier task")
        depth = max((depths[name] + 1 for name in task.depends_on), default=0)
        if depth > MAX_ROOT_DEPENDENCY_DEPTH:
            raise PlanValidationError(f"{place}: a task may depend only on tasks that depend on none themselves")
        depths[task.task_id] = depth


def _check_child_dependencies(parent: PlannedTask, children: list[PlannedTask]) -> None:
    family = {parent.task_id, *(child.task_id for child in children)}
    for child in children:
        for name in child.depends_on:
            if name not in family:
                raise PlanValidationError(
                    f"children: {shown(child.task_id)} depends on {shown(name)}, neither its root nor a sibling"
                )
    settled = {parent.task_id}
    waiting = children
    while waiting:
        ready = [child for child in waiting if settled.issuperset(child.depends_on)]
        if not ready:
            names = ", ".join(shown(child.task_id) for child in waiting)
            raise PlanValidationError(f"children: {names} depend on each other in a circle")
        settled.update(child.task_id for child in ready)
        waiting = [child for child in waiting if child.task_id not in settled]


# --- values ------------------------------------------------------------------------------------------------------


def _plain(payload: object) -> Any:
    try:
        return plain_json(payload)
    except UnreadableError as error:
        raise PlanValidationError(error.detail) from None


def _object(value: object, keys: tuple[str, ...], place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise PlanValidationError(f"{place} must be an object with the keys {', '.join(keys)}")
    missing = [key for key in keys if key not in value]
    unknown = [key for key in value if key not in keys]
    if missing:
        raise PlanValidationError(f"{place} lacks the key {missing[0]!r}; it has exactly {', '.join(keys)}")
    if unknown:
        raise PlanValidationError(f"{place} has the key {shown(unknown[0])}; it has exactly {', '.join(keys)}")
    return value


def _array(value: object, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise PlanValidationError(f"{place} must be an array, not {shown(value)}")
    return value


def _unique(value: object, place: str) -> tuple[str, ...]:
    """Return an array of distinct ids."""
    items = tuple(_id(item, f"{place}[{number}]") for number, item in enumerate(_array(value, place)))
    if len(set(items)) < len(items):
        twice = next(item for item in items if items.count(item) > 1)
        raise PlanValidationError(f"{place}: {shown(twice)} stands there twice")
    return items


def _id(value: object, place: str) -> str:
    text = _words(value, place)
    if len(text) > MAX_ID_CHARACTERS:
        raise PlanValidationError(f"{place} has {len(text)} characters, more than the {MAX_ID_CHARACTERS} allowed")
    return text


def _words(value: object, place: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise PlanValidationError(f"{place} must be a text that is not blank, not {shown(value)}")
    return value


def _one_of(value: object, allowed: tuple[Any, ...], place: str) -> Any:
    if not isinstance(value, str) or value not in allowed:
        raise PlanValidationError(f"{place} must be one of {', '.join(allowed)}, not {shown(value)}")
    return value


def _expect(given: tuple[str, ...], expected: Collection[str], place: str) -> None:
    if set(given) != set(expected):
        raise PlanValidationError(f"{place} must be {list(expected)}, as the rest of the task says, not {list(given)}")
