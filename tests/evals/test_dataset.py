"""The dataset format: what is read, and how mistakes are told."""

import contextlib
import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.evals.dataset import MAX_BYTES, Case, Dataset, DatasetError, load_dataset, parse_dataset

SMALLEST = {
    "name": "count_parts",
    "conversation": [{"user": "How many parts are there?"}],
    "expectations": {"contract": {"category": "count"}},
}


def parse(*cases: Any) -> Dataset:
    return parse_dataset(yaml.safe_dump(list(cases)).encode(), name="x", source="x.yaml")


def changed(**changes: Any) -> dict[str, Any]:
    return {**SMALLEST, **changes}


def hard(**expectations: Any) -> dict[str, Any]:
    return changed(expectations={"contract": {"category": "count", "hard": expectations}})


def test_a_case_needs_a_name_a_question_and_a_category() -> None:
    case = parse(SMALLEST).cases[0]
    assert (case.name, case.tier, case.tags, case.user) == ("count_parts", 1, (), None)
    assert [message.user for message in case.conversation] == ["How many parts are there?"]
    assert case.hard.grounded
    assert case.hard.answer_contains == ()


def test_everything_that_can_be_expected() -> None:
    case = parse(
        hard(
            required_tool_calls=[{"name": "query", "args_contain": {"manager": "PartManager"}}],
            forbidden_tools=["mutate"],
            tool_order=["search_managers", "query"],
            results_contain=["Bolt"],
            results_exclude=["Gear"],
            result_set={"sql": "SELECT 1", "ordered": True},
            answer_contains=["3", ["three", "drei"]],
            answer_excludes=["4"],
            grounded=False,
            confirmation="required",
        )
    ).cases[0]
    assert case.hard.required_tool_calls[0].args_contain == {"manager": "PartManager"}
    assert case.hard.answer_contains == ("3", ("three", "drei"))
    assert case.hard.result_set is not None
    assert case.hard.result_set.sql == "SELECT 1"


def test_a_dataset_is_named_and_hashed_by_its_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump([SMALLEST]))
    assert load_dataset(path) == Dataset(
        "mine", (Case.model_validate(SMALLEST),), hashlib.sha256(path.read_bytes()).hexdigest()
    )


@pytest.mark.parametrize(
    ("case", "told"),
    [
        (changed(name="no spaces"), "case 1 ('no spaces'): name: "),
        (changed(tier=0), "case 1 ('count_parts'): tier: "),
        (changed(tier="1"), "case 1 ('count_parts'): tier: "),
        (changed(tags=["a", "a"]), "tags: Value error, names a tag twice"),
        (changed(conversation=[]), "conversation: "),
        (changed(conversation=[{"usr": "Hi"}]), "conversation.0.usr: "),
        (changed(expectation={}), "expectation: "),
        (hard(answer_contain=["x"]), "expectations.contract.hard.answer_contain: "),
        (hard(result_set={}), "expectations.contract.hard.result_set: Value error, needs one of 'query' and 'sql'"),
        (hard(result_set={"sql": "x", "query": {}}), "result_set: Value error, needs one of"),
        (hard(confirmation="maybe"), "confirmation: "),
        (hard(answer_contains=[""]), "answer_contains"),
        ("not a case", "case 1: the case: "),
        (None, "case 1: the case: "),
    ],
)
def test_a_mistake_names_the_file_the_case_and_the_key(case: Any, told: str) -> None:
    with pytest.raises(DatasetError) as caught:
        parse(case)
    assert str(caught.value).startswith("x.yaml: case 1")
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "must be a list of cases with at least one, not NoneType"),
        (b"[]", "must be a list of cases with at least one"),
        (b"a: 1", "not dict"),
        (b"[", "is no YAML"),
        (b"\xff\xfe\x00", "is no YAML"),
        (b"- name: a\n  name: b", "the key 'name' stands twice"),
        (b"- !!python/object/apply:os.system ['true']", "is no YAML"),
        (b"[" * 20_000, "is no YAML"),
        (b"#" * (MAX_BYTES + 1), "is longer than 5,000,000 bytes"),
    ],
    ids=["empty", "no-case", "mapping", "broken", "bytes", "key-twice", "object", "deep", "long"],
)
def test_what_is_no_dataset_is_refused(content: bytes, told: str) -> None:
    with pytest.raises(DatasetError) as caught:
        parse_dataset(content, name="x", source="x.yaml")
    assert str(caught.value).startswith("x.yaml: ")
    assert told in str(caught.value)


def test_two_cases_of_one_name_are_refused() -> None:
    with pytest.raises(DatasetError, match=r"case 2 \('count_parts'\): name: another case has it already"):
        parse(SMALLEST, SMALLEST)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"absent\.yaml: cannot be read: No such file"):
        load_dataset(tmp_path / "absent.yaml")


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(content: bytes) -> None:
    with contextlib.suppress(DatasetError):
        parse_dataset(content, name="x", source="x.yaml")
