"""Plans: what is accepted, and for each kind of defect what the planner is told."""

import copy
import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.errors import planned_public_error, public_chat_error
from gm_chat.planned.models import CALCULATION_OPERATIONS, EvidenceRequirement, PlannedTask, ValidatedPlan
from gm_chat.planned.reading import MAX_BITS, MAX_CHARACTERS, MAX_DEPTH, MAX_VALUES
from gm_chat.planned.validation import (
    MAX_CHILDREN_PER_ROOT,
    MAX_ROOT_DEPENDENCY_DEPTH,
    PlanValidationError,
    read_plan,
    validate_dynamic_children,
    validate_plan,
)

JSON = Any


def requirement(requirement_id: JSON = "r1", kind: JSON = "query", operation: JSON = None, **more: JSON) -> JSON:
    return {
        "requirement_id": requirement_id,
        "kind": kind,
        "description": "The parts.",
        "operation": operation,
        **more,
    }


def task(task_id: JSON = "t1", *requirements: JSON, **more: JSON) -> JSON:
    """A task whose derivable members are right unless they are given."""
    needed = list(requirements) or [requirement()]
    kinds = [item.get("kind") for item in needed if isinstance(item, dict)]
    features = ["has_dependency"] if more.get("depends_on") else []
    features += ["requires_calculation"] if "calculation" in kinds else []
    features += ["multiple_queries"] if kinds.count("query") > 1 else []
    return {
        "task_id": task_id,
        "objective": "List the parts.",
        "depends_on": [],
        "requirements": needed,
        "completion_criteria": [item.get("requirement_id") for item in needed if isinstance(item, dict)],
        "routing_features": features,
        **more,
    }


def plan(*tasks: JSON, intent: JSON = "read", **more: JSON) -> JSON:
    return {"intent": intent, "tasks": list(tasks), **more}


def without(value: JSON, key: str) -> JSON:
    return {name: item for name, item in value.items() if name != key}


def nested(depth: int) -> JSON:
    value: JSON = "deep"
    for _ in range(depth):
        value = [value]
    return value


def itself() -> JSON:
    value = plan()
    value["tasks"].append(value)
    return value


CALCULATION = requirement("c1", "calculation", "sum")

VALID: Mapping[str, JSON] = {
    "one task": plan(task()),
    "six tasks": plan(*(task(f"t{number}") for number in range(6))),
    "a mutation": plan(intent="mutation"),
    "a task that needs nothing": plan(task(requirements=[], completion_criteria=[], routing_features=[])),
    "a schema": plan(task("t1", requirement(kind="schema"))),
    "a path": plan(task("t1", requirement(kind="path"))),
    "two queries": plan(task("t1", requirement("a"), requirement("b"))),
    "a query and a path": plan(task("t1", requirement("a"), requirement("b", "path"))),
    "criteria in another order": plan(task("t1", requirement("a"), requirement("b"), completion_criteria=["b", "a"])),
    "features in another order": plan(
        task(
            "t1",
            requirement("a"),
            requirement("b"),
            CALCULATION,
            routing_features=["multiple_queries", "requires_calculation"],
        )
    ),
    "a task that builds on an earlier one": plan(task(), task("t2", depends_on=["t1"])),
    "two that build on one": plan(task(), task("t2", depends_on=["t1"]), task("t3", depends_on=["t1"])),
    "one that builds on two": plan(task(), task("t2"), task("t3", depends_on=["t2", "t1"])),
    "equal requirement ids in two tasks": plan(task("t1"), task("t2")),
    "ids that differ in case": plan(task("t1"), task("T1")),
    "an id of 128 characters": plan(task("x" * 128)),
    "other scripts": plan(task("部品", requirement("ß"), objective="Wie viele Teile? \N{NUT AND BOLT}\u2028")),
    **{
        f"the operation {name}": plan(task("t1", requirement("c", "calculation", name)))
        for name in CALCULATION_OPERATIONS
    },
}

# Each with words of the detail that tell the planner what to mend, and where.
INVALID: Mapping[str, tuple[JSON, str]] = {
    # the plan
    "null": (None, "the plan must be an object"),
    "a truth value": (True, "the plan must be an object"),
    "a number": (1, "the plan must be an object"),
    "a text": (json.dumps(plan(task())), "the plan must be an object"),
    "an array": ([plan(task())], "the plan must be an object"),
    "bytes": (b"{}", "type bytes"),
    "a tuple": ({"intent": "read", "tasks": (task(),)}, "type tuple"),
    "a set": ({"intent", "tasks"}, "type set"),
    "no intent": (without(plan(task()), "intent"), "lacks the key 'intent'"),
    "no tasks": (without(plan(task()), "tasks"), "lacks the key 'tasks'"),
    "one key more": (plan(task(), note="x"), 'has the key "note"'),
    "another case of a key": ({"Intent": "read", "tasks": []}, "lacks the key 'intent'"),
    "an unknown intent": (plan(task(), intent="write"), 'intent must be one of read, mutation, not "write"'),
    "intent null": (plan(task(), intent=None), "intent must be one of"),
    "intent an array": (plan(task(), intent=["read"]), "intent must be one of"),
    "tasks null": (plan(task()) | {"tasks": None}, "tasks must be an array"),
    "tasks an object": (plan() | {"tasks": task()}, "tasks must be an array"),
    "a read without tasks": (plan(), "1 to 6 tasks, but there are 0"),
    "seven tasks": (plan(*(task(f"t{number}") for number in range(7))), "but there are 7"),
    "a mutation with a task": (plan(task(), intent="mutation"), "must be [] for the intent 'mutation'"),
    # a task
    "a task that is null": (plan(None), "tasks[0] must be an object"),
    "a task that is a text": (plan("t1"), "tasks[0] must be an object"),
    **{f"a task without {key}": (plan(without(task(), key)), f"tasks[0] lacks the key {key!r}") for key in task()},
    "a task with a key more": (plan(task(parent_id=None)), 'tasks[0] has the key "parent_id"'),
    "task_id null": (plan(task(None)), "tasks[0].task_id must be a text"),
    "task_id a number": (plan(task(1)), "tasks[0].task_id must be a text that is not blank, not 1"),
    "task_id empty": (plan(task("")), "tasks[0].task_id"),
    "task_id blank": (plan(task(" \t")), "tasks[0].task_id"),
    "task_id too long": (plan(task("x" * 129)), "tasks[0].task_id has 129 characters"),
    "task_id taken": (plan(task(), task()), 'tasks[1].task_id: "t1" is taken'),
    "objective null": (plan(task(objective=None)), "tasks[0].objective"),
    "objective empty": (plan(task(objective="")), "tasks[0].objective"),
    "objective blank": (plan(task(objective="\n ")), "tasks[0].objective"),
    "objective an object": (plan(task(objective={})), "tasks[0].objective"),
    # dependencies
    "depends_on null": (plan(task(depends_on=None)), "tasks[0].depends_on must be an array"),
    "depends_on a text": (plan(task(), task("t2", depends_on="t1")), "tasks[1].depends_on must be an array"),
    "depends_on with a number": (plan(task(), task("t2", depends_on=[1])), "tasks[1].depends_on[0]"),
    "depends_on twice": (plan(task(), task("t2", depends_on=["t1", "t1"])), '"t1" stands there twice'),
    "depends on itself": (plan(task(depends_on=["t1"])), '"t1" cannot depend on itself'),
    "depends on a later one": (plan(task(depends_on=["t2"]), task("t2")), '"t2" is no earlier task'),
    "depends on none of the plan": (plan(task(depends_on=["x"])), '"x" is no earlier task'),
    "two edges deep": (
        plan(task(), task("t2", depends_on=["t1"]), task("t3", depends_on=["t2"])),
        "tasks[2].depends_on: a task may depend only on tasks that depend on none",
    ),
    # requirements
    "requirements null": (plan(task(requirements=None)), "tasks[0].requirements must be an array"),
    "requirements an object": (plan(task(requirements=requirement())), "tasks[0].requirements must be an array"),
    "a requirement that is a text": (plan(task("t1", "r1")), "tasks[0].requirements[0] must be an object"),
    **{
        f"a requirement without {key}": (
            plan(task("t1", without(requirement(), key))),
            f"tasks[0].requirements[0] lacks the key {key!r}",
        )
        for key in requirement()
    },
    "a requirement with a key more": (plan(task("t1", requirement(manager="Part"))), 'has the key "manager"'),
    "requirement_id a number": (plan(task("t1", requirement(7))), "requirements[0].requirement_id must be a text"),
    "requirement_id empty": (plan(task("t1", requirement(""))), "requirements[0].requirement_id"),
    "requirement_id too long": (plan(task("t1", requirement("r" * 129))), "has 129 characters"),
    "requirement_id taken": (plan(task("t1", requirement(), requirement())), 'requirement_id: "r1" is taken'),
    "an unknown kind": (plan(task("t1", requirement(kind="search"))), "kind must be one of schema, path, query"),
    "kind null": (plan(task("t1", requirement(kind=None))), "kind must be one of"),
    "description null": (plan(task("t1", requirement(description=None))), "requirements[0].description"),
    "description blank": (plan(task("t1", requirement(description=" "))), "requirements[0].description"),
    "a calculation without operation": (
        plan(task("t1", requirement("c", "calculation"))),
        "operation must be one of count, sum, average, minimum, maximum, difference, ratio, percentage, not null",
    ),
    "an unknown operation": (plan(task("t1", requirement("c", "calculation", "median"))), 'not "median"'),
    "an operation in capitals": (plan(task("t1", requirement("c", "calculation", "SUM"))), 'not "SUM"'),
    "an operation that is an array": (plan(task("t1", requirement("c", "calculation", ["sum"]))), "operation"),
    "a query with an operation": (
        plan(task("t1", requirement(operation="sum"))),
        "operation must be null for the kind 'query'",
    ),
    "a path with an empty operation": (
        plan(task("t1", requirement(kind="path", operation=""))),
        "operation must be null",
    ),
    # what follows from the rest
    "criteria null": (plan(task(completion_criteria=None)), "completion_criteria must be an array"),
    "criteria empty": (plan(task(completion_criteria=[])), "completion_criteria must be ['r1']"),
    "criteria unknown": (plan(task(completion_criteria=["r1", "r2"])), "completion_criteria must be ['r1']"),
    "criteria twice": (plan(task(completion_criteria=["r1", "r1"])), '"r1" stands there twice'),
    "criteria with a number": (plan(task(completion_criteria=[1])), "completion_criteria[0]"),
    "features null": (plan(task(routing_features=None)), "routing_features must be an array"),
    "an unknown feature": (plan(task(routing_features=["hard"])), "routing_features must be []"),
    "a feature twice": (
        plan(task("t1", CALCULATION, routing_features=["requires_calculation"] * 2)),
        "stands there twice",
    ),
    "a feature that is not so": (plan(task(routing_features=["requires_calculation"])), "routing_features must be []"),
    "has_dependency left out": (
        plan(task(), task("t2", depends_on=["t1"], routing_features=[])),
        "routing_features must be ['has_dependency']",
    ),
    "requires_calculation left out": (
        plan(task("t1", CALCULATION, routing_features=[])),
        "routing_features must be ['requires_calculation']",
    ),
    "multiple_queries left out": (
        plan(task("t1", requirement("a"), requirement("b"), routing_features=[])),
        "routing_features must be ['multiple_queries']",
    ),
    # what JSON does not have, and what is too large
    "NaN": (plan(task(objective=float("nan"))), "$.tasks[0].objective is nan"),
    "infinity": (plan(task(objective=float("-inf"))), "$.tasks[0].objective is -inf"),
    "a key that is a number": (plan(task()) | {1: 2}, "$ has a value of type int as a key"),
    "a key that is null": (plan({None: 1}), "$.tasks[0] has null as a key"),
    "an object of Python": (plan(object()), "$.tasks[0] is a value of type object"),
    "half of a character": (plan(task(objective="\ud800")), "$.tasks[0].objective holds"),
    "a NUL": (plan(task(objective="\0")), "$.tasks[0].objective holds"),
    "a huge number": (plan(task(10**5000)), "too many digits"),
    "nested too deep": (plan(nested(MAX_DEPTH)), f"deeper than {MAX_DEPTH} levels"),
    "nested a thousand times as deep": (plan(nested(500_000)), f"deeper than {MAX_DEPTH} levels"),
    "itself": (itself(), f"deeper than {MAX_DEPTH} levels"),
    "too many values": (plan(*[None] * MAX_VALUES), f"more than {MAX_VALUES} values"),
    "too much text": (plan(task(objective="x" * (MAX_CHARACTERS + 1))), f"more than {MAX_CHARACTERS} characters"),
    "too much text in keys": (plan(**{"x" * (MAX_CHARACTERS + 1): 1}), f"more than {MAX_CHARACTERS} characters"),
}


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(PlanValidationError) as caught:
        call()
    return caught.value.detail


def test_the_table_has_the_size_it_should_have() -> None:
    assert len(VALID) + len(INVALID) >= 80


@pytest.mark.parametrize("name", VALID)
def test_a_valid_plan_is_taken(name: str) -> None:
    before = copy.deepcopy(VALID[name])
    accepted = validate_plan(VALID[name])
    assert accepted.intent == VALID[name]["intent"]
    assert [item.task_id for item in accepted.tasks] == [item["task_id"] for item in VALID[name]["tasks"]]
    assert VALID[name] == before
    assert read_plan(json.dumps(VALID[name])) == accepted


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_plan_is_refused_with_its_defect(name: str) -> None:
    payload, words = INVALID[name]
    assert words in refusal(lambda: validate_plan(payload))


def test_a_plan_becomes_immutable_values() -> None:
    payload = plan(task(), task("t2", requirement("a"), CALCULATION, depends_on=["t1"]))
    accepted = validate_plan(payload)
    assert accepted == ValidatedPlan(
        "read",
        (
            PlannedTask(
                "t1", "List the parts.", (), (EvidenceRequirement("r1", "query", "The parts.", None),), ("r1",), ()
            ),
            PlannedTask(
                "t2",
                "List the parts.",
                ("t1",),
                (
                    EvidenceRequirement("a", "query", "The parts.", None),
                    EvidenceRequirement("c1", "calculation", "The parts.", "sum"),
                ),
                ("a", "c1"),
                ("has_dependency", "requires_calculation"),
            ),
        ),
    )
    payload["tasks"].clear()
    assert len(accepted.tasks) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        accepted.tasks[0].task_id = "x"  # type: ignore[misc]  # that it is frozen is the point


def test_clients_learn_nothing_of_a_defect() -> None:
    error = PlanValidationError("tasks[0].objective: secret")
    assert str(error) == error.reason == error.code == "invalid_plan"
    assert "secret" not in repr(error)
    assert public_chat_error(error) == planned_public_error("invalid_plan")


def test_a_detail_quotes_little_of_what_the_model_wrote() -> None:
    assert len(refusal(lambda: validate_plan(plan(task(["x" * 1_000]))))) < 150


# --- text -------------------------------------------------------------------------------------------------------

TEXT = json.dumps(plan(task()))


@pytest.mark.parametrize(
    "text", [TEXT, f"  {TEXT}\n", f"```json\n{TEXT}\n```", f"```\n{TEXT}```", json.dumps(plan(task()), indent=2)]
)
def test_text_is_read(text: str) -> None:
    assert read_plan(text) == validate_plan(plan(task()))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("Here is the plan.", "not JSON"),
        (f"{TEXT} {TEXT}", "not JSON: Extra data"),
        (TEXT[:-1], "not JSON"),
        ("[]", "one JSON object, not an array"),
        ("null", "one JSON object, not null"),
        ('{"intent": "read", "intent": "mutation", "tasks": []}', 'the key "intent" stands twice'),
        ('{"intent": "read", "tasks": [{"a": 1, "a": 1}]}', 'the key "a" stands twice'),
        ('{"intent": "read", "tasks": NaN}', "NaN is no JSON number"),
        ('{"intent": "read", "tasks": -Infinity}', "-Infinity is no JSON number"),
        ('{"intent": "read", "tasks": 1e999}', "inf, which is no JSON number"),
        ('{"intent": "read", "tasks": ' + "9" * 5_000 + "}", "too many digits"),
        ('{"intent": "read", "tasks": "\\ud800"}', "half of a character"),
        ('{"a":' * 12_000, "deeper than"),
        ("[" * 60_000, "deeper than"),
        ('{"a":' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}", "deeper than"),
        (" " * (MAX_CHARACTERS + 1), f"more than the {MAX_CHARACTERS} allowed"),
        ("{" + " " * MAX_CHARACTERS + "}", f"more than the {MAX_CHARACTERS} allowed"),
    ],
)
def test_text_that_is_no_plan_is_refused(text: str, words: str) -> None:
    assert words in refusal(lambda: read_plan(text))


# --- children ---------------------------------------------------------------------------------------------------

ROOT, OTHER = validate_plan(plan(task("root"), task("other"))).tasks
CHILD = dataclasses.replace(ROOT, task_id="c0", parent_id="root")
OTHERS = dataclasses.replace(ROOT, task_id="o0", parent_id="other")


def children(*tasks: JSON) -> JSON:
    return {"children": list(tasks)}


def test_the_bounds_are_the_specification_s() -> None:
    assert (MAX_CHILDREN_PER_ROOT, MAX_ROOT_DEPENDENCY_DEPTH) == (2, 1)


@pytest.mark.parametrize(
    ("payload", "existing", "ids"),
    [
        (children(), [ROOT], []),
        (children(task("c1")), [ROOT, OTHER], ["c1"]),
        (children(task("c1"), task("c2")), [ROOT, OTHER, OTHERS], ["c1", "c2"]),
        (children(task("c1", depends_on=["root"])), [ROOT], ["c1"]),
        (children(task("c1", depends_on=["c2"]), task("c2")), [ROOT], ["c1", "c2"]),
        (children(task("c1", depends_on=["c0", "root"])), [ROOT, CHILD], ["c1"]),
        (children(task("c1", CALCULATION)), [], ["c1"]),
    ],
)
def test_children_are_taken(payload: JSON, existing: list[PlannedTask], ids: list[str]) -> None:
    taken = validate_dynamic_children(ROOT, payload, existing)
    assert [child.task_id for child in taken] == ids
    assert {child.parent_id for child in taken} <= {"root"}
    assert {child.root_id for child in taken} <= {"root"}


@pytest.mark.parametrize(
    ("parent", "payload", "existing", "words"),
    [
        (ROOT, [task("c1")], [ROOT], "must be an object with the keys children"),
        (ROOT, {}, [ROOT], "lacks the key 'children'"),
        (ROOT, {"children": None}, [ROOT], "children must be an array"),
        (ROOT, {**children(), "action": "spawn"}, [ROOT], 'has the key "action"'),
        (ROOT, children("c1"), [ROOT], "children[0] must be an object"),
        (ROOT, children(task("c1", requirement(kind="search"))), [ROOT], "children[0].requirements[0].kind"),
        (ROOT, children({**task("c1"), "parent_id": "root"}), [ROOT], 'children[0] has the key "parent_id"'),
        (ROOT, children(task("a"), task("b"), task("c")), [ROOT], '"root" would have 3'),
        (ROOT, children(task("a"), task("b")), [ROOT, CHILD], '"root" would have 3'),
        (CHILD, children(task("a")), [ROOT, CHILD], '"c0" is a child, and children have no children'),
        (ROOT, children(task("root")), [], '"root" is taken'),
        (ROOT, children(task("other")), [ROOT, OTHER], '"other" is taken'),
        (ROOT, children(task("o0")), [ROOT, OTHER, OTHERS], '"o0" is taken'),
        (ROOT, children(task("a"), task("a")), [ROOT], 'children[1].task_id: "a" is taken'),
        (ROOT, children(task("a", depends_on=["a"])), [ROOT], '"a" cannot depend on itself'),
        (ROOT, children(task("a", depends_on=["other"])), [ROOT, OTHER], "neither its root nor a sibling"),
        (ROOT, children(task("a", depends_on=["o0"])), [ROOT, OTHER, OTHERS], "neither its root nor a sibling"),
        (ROOT, children(task("a", depends_on=["x"])), [ROOT], "neither its root nor a sibling"),
        (
            ROOT,
            children(task("a", depends_on=["b"]), task("b", depends_on=["a"])),
            [ROOT],
            '"a", "b" depend on each other in a circle',
        ),
        (ROOT, children(*[None] * MAX_VALUES), [ROOT], f"more than {MAX_VALUES} values"),
    ],
)
def test_children_are_refused(parent: PlannedTask, payload: JSON, existing: list[PlannedTask], words: str) -> None:
    assert words in refusal(lambda: validate_dynamic_children(parent, payload, existing))


# --- anything ----------------------------------------------------------------------------------------------------

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.sampled_from(["read", "mutation", "query", "calculation", "sum", "t1", "r1", "has_dependency", 2**MAX_BITS]),
)
KEYS = st.one_of(
    st.sampled_from(["intent", "tasks", "children", *task(), *requirement()]), st.text(), st.integers(), st.none()
)
ANYTHING = st.recursive(
    ODD, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner) | st.tuples(inner), max_leaves=30
)


@st.composite
def bent_plans(draw: st.DrawFn) -> JSON:
    """A valid plan in which one place, at any depth, holds something else, is gone, or stands twice."""
    payload = copy.deepcopy(draw(st.sampled_from(list(VALID.values()))))
    place = payload
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return payload
        key = draw(st.sampled_from(keys))
        inner = place[key]
        if isinstance(inner, dict | list) and inner and draw(st.booleans()):
            place = inner
            continue
        match draw(st.sampled_from(["replace", "remove", "repeat"])):
            case "replace":
                place[key] = draw(ANYTHING)
            case "remove":
                del place[key]
            case "repeat" if isinstance(place, list):
                place.append(inner)
        return payload


def judge(payload: object) -> None:
    try:
        accepted = validate_plan(payload)
    except PlanValidationError as error:
        assert error.detail.strip()  # noqa: PT017 - either outcome is right, and this one must say why
    else:
        assert isinstance(accepted, ValidatedPlan)


@given(ANYTHING)
def test_nothing_but_a_plan_validation_error_comes_of_any_value(payload: object) -> None:
    judge(payload)


@given(bent_plans())
def test_nothing_but_a_plan_validation_error_comes_of_a_bent_plan(payload: object) -> None:
    judge(payload)
    try:
        validate_dynamic_children(ROOT, {"children": payload}, [ROOT])
    except PlanValidationError as error:
        assert error.detail  # noqa: PT017 - as above


@given(st.text() | st.from_regex(r'\s*[{\[]["\w:,{}\[\]\s.+-]*', fullmatch=True))
def test_nothing_but_a_plan_validation_error_comes_of_any_text(text: str) -> None:
    try:
        read_plan(text)
    except PlanValidationError as error:
        assert error.detail  # noqa: PT017 - as above


class OddText(str):
    __slots__ = ()

    def strip(self, *_: Any) -> str:
        raise RuntimeError("asked")

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("asked")


class OddDict(dict[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise RuntimeError("asked")

    def __iter__(self) -> Any:
        raise RuntimeError("asked")


def test_subclasses_are_taken_for_what_they_are() -> None:
    payload = plan(task(OddText("t1"), objective=OddText("List.")))
    assert validate_plan(OddDict(payload)).tasks[0].objective == "List."
