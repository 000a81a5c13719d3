"""Arithmetic over evidence: exact, typed, and never over a list that was cut off."""

import dataclasses
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.planned.calculations import EVERY, CalculationError, CalculationOperand, calculate, calculate_evidence
from gm_chat.planned.evidence import EvidenceRecord, EvidenceStore
from gm_chat.planned.models import EvidenceRequirement

ROWS = [{"name": "Bolt", "price": "2.50", "tags": ["a", "b"]}, {"name": "Gear", "price": 7, "tags": []}]
WHOLE = {"data": ROWS, "total_count": 2, "has_more": False}


def store_with(payload: object, kind: Any = "query") -> EvidenceStore:
    store = EvidenceStore()
    store.add(EvidenceRecord.create("t1:query:1", "t1", kind, "call", None, payload))
    return store


def at(*path: str | int) -> CalculationOperand:
    return CalculationOperand("t1:query:1", path)


def evaluate(operation: str, *operands: CalculationOperand, payload: object = WHOLE) -> Any:
    made = calculate_evidence("t1:calculation:1", "t1", operation, operands, store_with(payload))
    return made.payload()["value"]


@pytest.mark.parametrize(
    ("operation", "operands", "value"),
    [
        ("count", [[1, 2]], 2),
        ("count", [[]], 0),
        ("count", [{"a": 1, "b": 2}], 2),
        ("sum", [1, 2.5, "3.1"], Decimal("6.6")),
        ("sum", [0.1, 0.2], Decimal("0.3")),
        ("sum", ["1e3", " -5 ", "+.5"], Decimal("995.5")),
        ("sum", ["9" * 50, 1], Decimal(10**50)),
        ("sum", [Decimal("1.10"), Decimal("1.10")], Decimal("2.20")),
        ("average", [1, 2], Decimal("1.5")),
        ("average", [1, 1, 2], Decimal("1.333333333333333333333333333")),
        ("minimum", [3, "-2", 1], Decimal(-2)),
        ("maximum", [3, "-2", 1], Decimal(3)),
        ("maximum", [7], Decimal(7)),
        ("difference", [3, "5.5"], Decimal("-2.5")),
        ("ratio", [1, 3], Decimal("0.3333333333333333333333333333")),
        ("percentage", [1, 4], Decimal(25)),
        ("percentage", [2, 3], Decimal("66.66666666666666666666666667")),
    ],
)
def test_the_eight_operations(operation: str, operands: list[Any], value: Decimal | int) -> None:
    assert calculate(operation, operands) == value


@pytest.mark.parametrize(
    ("operation", "operands", "words"),
    [
        ("median", [1], "no operation 'median'"),
        ("", [], "no operation ''"),
        ("count", [], "exactly 1 operand"),
        ("count", [[1], [2]], "exactly 1 operand"),
        ("count", [1], "not a single value"),
        ("count", ["text"], "not a single value"),
        ("count", [None], "not null"),
        ("sum", [], "at least 1 operand"),
        ("average", [], "at least 1 operand"),
        ("minimum", [], "at least 1 operand"),
        ("maximum", [], "at least 1 operand"),
        ("difference", [1], "exactly 2 operands, but there are 1"),
        ("ratio", [1, 2, 3], "exactly 2 operands, but there are 3"),
        ("percentage", [], "exactly 2 operands"),
        ("sum", [True], "not a truth value"),
        ("sum", [None], "not null"),
        ("sum", [[1]], "not a list"),
        ("sum", [{"a": 1}], "not an object"),
        ("sum", ["ten"], "'ten'"),
        ("sum", [""], "''"),
        ("sum", ["1,000"], "'1,000'"),
        ("sum", ["1_0"], "'1_0'"),
        ("sum", ["0x10"], "'0x10'"),
        ("sum", ["٣"], "'٣'"),
        ("sum", ["NaN"], "'NaN'"),
        ("sum", ["Infinity"], "'Infinity'"),
        ("sum", [float("nan")], "finite"),
        ("sum", [float("inf")], "finite"),
        ("sum", [Decimal("Infinity")], "finite"),
        ("sum", ["1e200"], "more than 100 digits"),
        ("sum", ["1e-200"], "more than 100 digits"),
        ("sum", ["1e99999999999"], "finite number"),
        ("sum", [10**400], "more than 100 digits"),
        ("sum", ["9" * 101], "more than 100 digits"),
        ("ratio", [1, 0], "divisor is 0"),
        ("ratio", [0, "0.00"], "divisor is 0"),
        ("percentage", [1, "-0"], "divisor is 0"),
    ],
)
def test_what_cannot_be_calculated_is_refused(operation: str, operands: list[Any], words: str) -> None:
    with pytest.raises(CalculationError, match=words):
        calculate(operation, operands)


NUMBERS = st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**20), max_value=10**20))


@given(NUMBERS.filter(bool))
def test_sums_are_exact_in_any_order(numbers: list[Decimal]) -> None:
    exact = sum(map(Fraction, numbers), Fraction(0))
    assert Fraction(calculate("sum", numbers)) == Fraction(calculate("sum", numbers[::-1])) == exact


@given(st.integers(-(10**15), 10**15), st.integers(1, 10**15))
def test_quotients_have_28_digits(left: int, right: int) -> None:
    error = abs(Fraction(calculate("ratio", [left, right])) - Fraction(left, right))
    assert error <= abs(Fraction(left, right)) / 10**27


class TestEvidence:
    def test_the_result_is_a_record_that_nobody_has_stored(self) -> None:
        store = store_with(WHOLE)
        made = calculate_evidence(
            "t1:calculation:1", "t1", "sum", [at("data", 0, "price"), at("data", 1, "price")], store
        )
        places = [
            {"evidence_id": "t1:query:1", "path": ["data", 0, "price"]},
            {"evidence_id": "t1:query:1", "path": ["data", 1, "price"]},
        ]
        assert made.payload() == {"operation": "sum", "operands": places, "value": "9.50"}
        assert (made.kind, made.task_id) == ("calculation", "t1")
        assert made.provenance == {"calculator": "framework", "operation": "sum"}
        assert made.call_identity.endswith('"name":"calculate"}')
        assert store.get(made.evidence_id) is None
        requirement = EvidenceRequirement("c", "calculation", "The sum.", "sum")
        assert store.add(made, requirement=requirement) is made

    def test_provenance_and_identity_may_be_given(self) -> None:
        made = calculate_evidence(
            "e", "t1", "count", [at("data")], store_with(WHOLE), provenance={"a": "b"}, call_identity="call"
        )
        assert (dict(made.provenance), made.call_identity) == ({"a": "b"}, "call")

    @pytest.mark.parametrize(
        ("operation", "paths", "value"),
        [
            ("count", [("data",)], 2),
            ("count", [("data", 0)], 3),
            ("count", [("data", 0, "tags")], 2),
            ("count", [()], 3),
            ("sum", [("data", EVERY, "price")], "9.50"),
            ("average", [("data", EVERY, "price")], "4.75"),
            ("maximum", [("data", EVERY, "price")], 7),
            ("difference", [("data", EVERY, "price")], "-4.50"),
            ("ratio", [("data", 1, "price"), ("total_count",)], "3.5"),
            ("percentage", [("total_count",), ("total_count",)], 100),
        ],
    )
    def test_operands_point_into_a_query(self, operation: str, paths: list[tuple[Any, ...]], value: object) -> None:
        assert evaluate(operation, *(at(*path) for path in paths)) == value

    @pytest.mark.parametrize(
        ("path", "words"),
        [
            (("rows",), "at 'rows' the keys there are data, has_more, total_count"),
            (("data", 2), "at 2 there are 2 items"),
            (("data", "0"), "at '0' there are 2 items"),
            ((0,), "at 0 the keys there are"),
            (("total_count", "x"), "at 'x' there is a single value"),
            (("total_count", EVERY), "there is a single value"),
            (("data", 0, "name"), "the text 'Bolt'"),
            (("data",), "not a list"),
            (("data", EVERY), "not an object"),
        ],
    )
    def test_a_path_that_leads_to_no_number_is_refused(self, path: tuple[Any, ...], words: str) -> None:
        with pytest.raises(CalculationError) as caught:
            evaluate("sum", at(*path))
        assert words in str(caught.value)

    def test_only_query_evidence_counts(self) -> None:
        with pytest.raises(CalculationError, match="no evidence 'x'"):
            calculate_evidence("e", "t1", "count", [CalculationOperand("x", ())], store_with(WHOLE))
        for kind in ("schema", "path", "calculation"):
            with pytest.raises(CalculationError, match=f"is of kind '{kind}'"):
                calculate_evidence("e", "t1", "count", [at()], store_with(WHOLE, kind))

    @pytest.mark.parametrize(
        "payload", [{**WHOLE, "has_more": True}, {**WHOLE, "truncated": True}, {**WHOLE, "total_count": 3}]
    )
    @pytest.mark.parametrize(("operation", "path"), [("count", ("data",)), ("sum", ("data", EVERY, "price"))])
    def test_a_part_of_the_rows_is_not_all(self, payload: object, operation: str, path: tuple[Any, ...]) -> None:
        with pytest.raises(CalculationError, match="only a part of the rows"):
            evaluate(operation, at(*path), payload=payload)
        assert evaluate("sum", at("data", 1, "price"), payload=payload) == 7

    @pytest.mark.parametrize("path", [("data", 0, "tags"), ("data", EVERY, "tags", EVERY)])
    def test_a_nested_list_that_was_cut_is_not_all(self, path: tuple[Any, ...]) -> None:
        payload = {**WHOLE, "cut_lists": {"paths": ["tags"], "note": "..."}}
        with pytest.raises(CalculationError, match="is cut off"):
            evaluate("count", at(*path), payload=payload)

    def test_a_result_that_is_a_list_can_be_counted(self) -> None:
        assert evaluate("count", at(), payload=[1, 2, 3]) == 3
        assert evaluate("sum", at(EVERY), payload=[1, 2, 3]) == 6


class TestOperand:
    @pytest.mark.parametrize(
        "values",
        [("", ()), (None, ()), ("e", "data"), ("e", None), ("e", (-1,)), ("e", (True,)), ("e", (1.0,)), ("e", (None,))],
    )
    def test_its_members_are_typed(self, values: Any) -> None:
        with pytest.raises(CalculationError):
            CalculationOperand(*values)

    def test_it_is_an_immutable_value(self) -> None:
        made = CalculationOperand("e", ["data", 0])  # type: ignore[arg-type]  # as it comes out of JSON
        assert made == CalculationOperand("e", ("data", 0))
        with pytest.raises(dataclasses.FrozenInstanceError):
            made.path = ()  # type: ignore[misc]  # that it is frozen is the point
