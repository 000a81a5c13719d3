"""An executor's actions: their form, and what is said of another one."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.planned.actions import Action, Block, Calculate, Complete, SpawnChildren, read_action
from gm_chat.planned.calculations import CalculationOperand
from gm_chat.planned.reading import DefectError

OPERAND = {"evidence_id": "t1:query:1", "path": ["data", 0, "price"]}
CALCULATE: dict[str, Any] = {
    "action": "calculate",
    "requirement_id": "r2",
    "operation": "sum",
    "operands": [OPERAND, {"evidence_id": "t2:query:1", "path": []}],
}


@pytest.mark.parametrize(
    ("members", "action"),
    [
        ({"action": "complete", "evidence_ids": ["a", "b"]}, Complete(("a", "b"))),
        ({"action": "block", "reason": "There is none."}, Block("There is none.")),
        ({"action": "block", "reason": "x" * 1_000}, Block("x" * 300)),
        ({"action": "spawn_children", "children": [{"task_id": 1}]}, SpawnChildren({"children": [{"task_id": 1}]})),
        ({"action": "spawn_children", "children": None}, SpawnChildren({"children": None})),
        (
            CALCULATE,
            Calculate(
                "r2",
                "sum",
                (CalculationOperand("t1:query:1", ("data", 0, "price")), CalculationOperand("t2:query:1", ())),
            ),
        ),
    ],
)
def test_an_action_is_read(members: dict[str, Any], action: Action) -> None:
    assert read_action(json.dumps(members)) == action
    assert read_action(f"```json\n{json.dumps(members)}\n```") == action


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([], "one JSON object"),
        ({}, "action must be one of complete, block, spawn_children, calculate, not null"),
        ({"action": "mutate"}, 'not "mutate"'),
        ({"action": ["complete"]}, "action must be one of"),
        ({"action": "complete"}, "exactly the keys action, evidence_ids, not action"),
        ({"action": "complete", "evidence_ids": ["a"], "note": ""}, "exactly the keys action, evidence_ids"),
        ({"action": "complete", "evidence_ids": []}, "one id or more"),
        ({"action": "complete", "evidence_ids": "a"}, "one id or more"),
        ({"action": "complete", "evidence_ids": ["a", 1]}, r"evidence_ids\[1\] must be a text"),
        ({"action": "complete", "evidence_ids": ["a", "a"]}, "each id once"),
        ({"action": "block", "reason": " "}, "reason must be a text"),
        ({**CALCULATE, "requirement_id": None}, "requirement_id must be a text"),
        ({**CALCULATE, "operation": "median"}, 'operation must be one of count, .*, not "median"'),
        ({**CALCULATE, "operation": None}, "operation must be one of"),
        ({**CALCULATE, "operands": []}, "one operand or more"),
        ({**CALCULATE, "operands": OPERAND}, "one operand or more"),
        ({**CALCULATE, "operands": [OPERAND, "a"]}, r"operands\[1\] must be an object"),
        ({**CALCULATE, "operands": [{**OPERAND, "value": 3}]}, r"operands\[0\] must be an object with exactly"),
        ({**CALCULATE, "operands": [{**OPERAND, "path": [-1]}]}, r"operands\[0\]: path holds -1"),
        ({**CALCULATE, "operands": [{**OPERAND, "path": "data"}]}, r"operands\[0\]: path must be an array"),
        ({**CALCULATE, "operands": [{**OPERAND, "evidence_id": 1}]}, r"operands\[0\]: evidence_id"),
    ],
)
def test_any_other_is_refused_with_its_defect(members: Any, words: str) -> None:
    with pytest.raises(DefectError, match=words):
        read_action(json.dumps(members))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*CALCULATE, *OPERAND, "reason", "x"]), inner),
    max_leaves=10,
)


@given(
    st.sampled_from(["complete", "block", "spawn_children", "calculate", "other"]), st.lists(JSON_VALUES, min_size=3)
)
def test_nothing_but_a_defect_comes_of_any_members(name: str, values: list[Any]) -> None:
    keys = {
        "complete": ["evidence_ids"],
        "block": ["reason"],
        "spawn_children": ["children"],
        "calculate": ["requirement_id", "operation", "operands"],
    }.get(name, [])
    members = {"action": name, **dict(zip(keys, values, strict=False))}
    try:
        read_action(json.dumps(members))
    except DefectError as error:
        assert error.detail  # noqa: PT017 - either outcome is right, and this one must say why
