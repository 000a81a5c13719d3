"""Evidence: snapshots that nobody can change, and links that must fit."""

import dataclasses
import datetime
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.planned.evidence import (
    DuplicateEvidenceError,
    EvidenceError,
    EvidenceLinkError,
    EvidenceNotFoundError,
    EvidenceRecord,
    EvidenceStore,
    IncompatibleEvidenceError,
    InvalidEvidenceError,
    canonical_call_identity,
    evidence_kind,
)
from gm_chat.planned.models import EvidenceRequirement

QUERY = EvidenceRequirement("r1", "query", "The parts.", None)
SUM = EvidenceRequirement("c1", "calculation", "The sum.", "sum")
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text("aä€ 1"),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc"), inner),
    max_leaves=10,
)


def record(
    evidence_id: str = "t1:query:1", kind: Any = "query", payload: object = None, task: str = "t1"
) -> EvidenceRecord:
    return EvidenceRecord.create(evidence_id, task, kind, "call", None, {"data": []} if payload is None else payload)


class TestRecord:
    def test_the_payload_is_canonical_json(self) -> None:
        made = record(payload={"b": 1, "a": ["Ä", 2.5, None, True]})
        assert made.payload_json == '{"a":["Ä",2.5,null,true],"b":1}'
        assert dict(made.provenance) == {}

    def test_every_access_gives_a_fresh_copy(self) -> None:
        made = record(payload={"data": [1]})
        made.payload()["data"].append(2)
        assert made.payload() == {"data": [1]}

    def test_it_is_a_snapshot(self) -> None:
        payload = {"data": [1]}
        provenance = {"tool": "query"}
        made = EvidenceRecord.create("e", "t", "query", "c", provenance, payload)
        payload["data"].append(2)
        provenance["tool"] = "x"
        assert made.payload() == {"data": [1]}
        assert made.provenance == {"tool": "query"}
        with pytest.raises(TypeError):
            made.provenance["tool"] = "x"  # type: ignore[index]  # that it is read-only is the point
        with pytest.raises(dataclasses.FrozenInstanceError):
            made.payload_json = "{}"  # type: ignore[misc]  # that it is frozen is the point

    def test_values_beyond_json_are_written_as_everywhere(self) -> None:
        payload = {"price": Decimal("12.50"), "day": datetime.date(2026, 1, 2)}
        assert record(payload=payload).payload() == {"price": "12.50", "day": "2026-01-02"}

    @pytest.mark.parametrize(
        "values",
        [
            ("", "t", "query", "c", None, 1),
            (" ", "t", "query", "c", None, 1),
            (1, "t", "query", "c", None, 1),
            ("e", "", "query", "c", None, 1),
            ("e", "t", "search", "c", None, 1),
            ("e", "t", None, "c", None, 1),
            ("e", "t", "query", "", None, 1),
            ("e", "t", "query", "c", {"a": 1}, 1),
            ("e", "t", "query", "c", {1: "a"}, 1),
            ("e", "t", "query", "c", ["a"], 1),
            ("e", "t", "query", "c", None, float("nan")),
            ("e", "t", "query", "c", None, {"data": [{"x": float("inf")}]}),
            ("e", "t", "query", "c", None, (Decimal("NaN"),)),
            ("e", "t", "query", "c", None, {float("-inf")}),
            ("e", "t", "query", "c", None, object()),
            ("e", "t", "query", "c", None, {(1, 2): 3}),
        ],
    )
    def test_what_cannot_be_represented_is_refused(self, values: Any) -> None:
        with pytest.raises(InvalidEvidenceError):
            EvidenceRecord.create(*values)

    @pytest.mark.parametrize("text", ["", "{", "NaN", "[Infinity]", None, "[" * 100_000])
    def test_a_record_made_by_hand_holds_json(self, text: Any) -> None:
        with pytest.raises(InvalidEvidenceError, match="not JSON"):
            EvidenceRecord("e", "t", "query", "c", {}, text)

    @given(JSON_VALUES)
    def test_every_json_value_comes_back(self, value: Any) -> None:
        assert record(payload=value).payload() == ({"data": []} if value is None else value)


class TestStore:
    def test_records_keep_their_order(self) -> None:
        store = EvidenceStore()
        first, second, third = record("b"), record("a", task="t2"), record("c")
        for item in (first, second, third):
            assert store.add(item) is item
        assert store.records == (first, second, third)
        assert store.for_task("t1") == (first, third)
        assert store.for_task("x") == ()
        assert store.get("a") is second
        assert store.get("x") is None

    def test_an_id_is_taken_once(self) -> None:
        store = EvidenceStore()
        store.add(record())
        with pytest.raises(DuplicateEvidenceError, match="'t1:query:1'"):
            store.add(record(payload=[1]))
        assert store.records == (record(),)

    def test_a_link_may_come_with_the_record_or_later(self) -> None:
        store = EvidenceStore()
        first = store.add(record("a"), requirement=QUERY)
        second = store.add(record("b"))
        assert store.for_requirement("t1", QUERY) == (first,)
        assert store.link("t1", QUERY, "b") is second
        assert store.link("t1", QUERY, "b") is second
        assert store.for_requirement("t1", QUERY) == (first, second)
        assert store.for_requirement("t2", QUERY) == ()

    def test_a_record_that_does_not_fit_is_not_kept(self) -> None:
        store = EvidenceStore()
        with pytest.raises(IncompatibleEvidenceError, match="of kind 'schema', not 'query'"):
            store.add(record("a", "schema"), requirement=QUERY)
        assert store.records == ()

    def test_links_must_fit(self) -> None:
        store = EvidenceStore()
        store.add(record("a"))
        store.add(record("s", "calculation", {"operation": "count", "value": 1}))
        store.add(record("odd", "calculation", [1]))
        with pytest.raises(EvidenceNotFoundError, match="'x'"):
            store.link("t1", QUERY, "x")
        with pytest.raises(EvidenceLinkError, match="belongs to the task 't1', not to 't2'"):
            store.link("t2", QUERY, "a")
        with pytest.raises(IncompatibleEvidenceError, match="of kind 'query', not 'calculation'"):
            store.link("t1", SUM, "a")
        with pytest.raises(IncompatibleEvidenceError, match="operation is 'count', not 'sum'"):
            store.link("t1", SUM, "s")
        with pytest.raises(IncompatibleEvidenceError, match="operation is None"):
            store.link("t1", SUM, "odd")
        assert store.for_requirement("t1", SUM) == ()

    def test_a_calculation_of_that_operation_fits(self) -> None:
        store = EvidenceStore()
        made = store.add(record("s", "calculation", {"operation": "sum", "value": 1}), requirement=SUM)
        assert store.for_requirement("t1", SUM) == (made,)


def test_the_errors_form_one_family() -> None:
    for error in (InvalidEvidenceError, DuplicateEvidenceError, EvidenceNotFoundError, IncompatibleEvidenceError):
        assert issubclass(error, EvidenceError)
    assert issubclass(EvidenceError, ValueError)
    assert EvidenceLinkError is IncompatibleEvidenceError


class TestCallIdentity:
    def test_the_order_of_arguments_does_not_matter(self) -> None:
        identity = canonical_call_identity("query", {"b": 1, "a": {"y": [1, 2], "x": None}})
        assert identity == '{"args":{"a":{"x":null,"y":[1,2]},"b":1},"name":"query"}'
        assert canonical_call_identity("query", {"a": {"x": None, "y": [1, 2]}, "b": 1}) == identity

    @pytest.mark.parametrize(
        "other", [("query", {"a": 2}), ("query", {"a": "1"}), ("find_path", {"a": 1}), ("query", {})]
    )
    def test_other_calls_have_other_identities(self, other: tuple[str, dict[str, Any]]) -> None:
        assert canonical_call_identity(*other) != canonical_call_identity("query", {"a": 1})

    def test_what_json_does_not_have_is_refused(self) -> None:
        for args in ({"a": float("nan")}, {"a": object()}):
            with pytest.raises(InvalidEvidenceError):
                canonical_call_identity("query", args)
        with pytest.raises(InvalidEvidenceError):
            canonical_call_identity(" ", {})
        with pytest.raises(TypeError):
            canonical_call_identity("query", ["a"])  # type: ignore[arg-type]  # that it is refused is the point

    @given(st.dictionaries(st.text("abc"), JSON_VALUES))
    def test_an_identity_holds_the_call(self, args: dict[str, Any]) -> None:
        assert json.loads(canonical_call_identity("query", args)) == {"name": "query", "args": args}


@pytest.mark.parametrize(
    ("tool", "result", "kind"),
    [
        ("query", {"data": []}, "query"),
        ("aggregate", {"data": [{"n": 1}], "has_more": False}, "query"),
        ("get_manager_schema", {"manager": "PartManager"}, "schema"),
        ("get_manager_schema", None, None),
        ("find_path", [], "path"),
        ("find_path", ["material"], "path"),
        ("find_path", None, None),
        ("search_managers", [{"manager": "PartManager"}], None),
        ("mutate", {"status": "executed"}, None),
        ("other", {}, None),
    ],
)
def test_what_a_result_proves(tool: str, result: object, kind: str | None) -> None:
    assert evidence_kind(tool, result) == kind
