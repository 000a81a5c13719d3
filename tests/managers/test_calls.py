from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from testproject.desk import whole_view

from gm_chat.managers.calls import build_call
from gm_chat.plugin import ToolError

VIEW = whole_view()


def refusal(name: str, /, **values: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        build_call(name, values, VIEW)
    return caught.value


def test_inputs_are_coerced_and_spellings_resolve() -> None:
    values = {"number": "P", "name": "x", "price": "9.90", "materialId": 3, "tags": [1, 2], "leadTime": 60}
    call = build_call("createPart", values, VIEW)
    assert call.mutation.name == "createPart"
    assert list(call.values) == ["number", "name", "price", "material", "tags", "lead_time"]
    assert call.values["price"] == Decimal("9.90")
    assert (call.values["material"], call.values["tags"]) == (3, [1, 2])
    assert build_call("updatePart", {"id": 1, "supplier_id": None, "status": "Released"}, VIEW).values == {
        "id": 1,
        "supplier": None,
        "status": "released",
    }


@pytest.mark.parametrize(
    ("name", "values", "code", "says"),
    [
        ("createPrat", {}, "unknown_mutation", "'createPrat'"),
        ("createPart", {"number": "P"}, "invalid_argument", "needs name, material"),
        ("createPart", {"nmae": "x"}, "invalid_argument", "'nmae'"),
        ("createPart", {"material": 1, "material_id": 2}, "invalid_argument", "twice"),
        ("updatePart", {"name": "x"}, "invalid_argument", "needs id"),
        ("updatePart", {"id": 1}, "invalid_argument", "nothing is to change"),
        ("updatePart", {"id": "1", "name": "x"}, "invalid_value", "id"),
        ("updatePart", {"id": 1, "name": None}, "invalid_value", "name"),
        ("updatePart", {"id": 1, "tags": 5}, "invalid_value", "list"),
        ("updatePart", {"id": 1, "tags": ["x"]}, "invalid_value", "tags"),
        ("updatePart", {"id": 1, "tags": list(range(501))}, "invalid_value", "500"),
        ("deletePart", {"id": 1, "name": "x"}, "invalid_argument", "'name'"),
        ("updatePart", {"id": 1, "status": "gone"}, "invalid_value", "choices"),
        ("updatePart", {"id": 1, "gross": "1"}, "invalid_argument", "'gross'"),
    ],
)
def test_mistakes_name_the_culprit(name: str, values: dict[str, Any], code: str, says: str) -> None:
    error = refusal(name, **values)
    assert error.code == code
    assert says in error.message


def test_the_nearest_are_first() -> None:
    assert refusal("createPrat").details["allowed"][0] == "createPart"
    assert refusal("createPart", nmae="x").details["allowed"][0] == "name"
    assert refusal("createPart", number="P").details["missing"] == ["name", "material"]


def test_long_texts_may_be_written() -> None:
    call = build_call("updatePart", {"id": 1, "description": "x" * 100_000}, VIEW)
    assert len(call.values["description"]) == 100_000


def test_expected_values_are_coerced_and_spellings_resolve() -> None:
    expected = {"PRICE": "9.9", "status": "In design", "material_id": 3, "createdAt": "2024-01-01T00:00:00Z", "id": 1}
    for name, values in (("updatePart", {"id": 1, "name": "x"}), ("deletePart", {"id": 1})):
        call = build_call(name, values, VIEW, expected)
        assert call.expected == {
            "price": Decimal("9.9"),
            "status": "draft",
            "material": 3,
            "created_at": datetime(2024, 1, 1, tzinfo=UTC),
            "id": 1,
        }
    assert build_call("updatePart", {"id": 1, "name": "x"}, VIEW, {"name": None}).expected == {"name": None}
    assert build_call("createTag", {"name": "x"}, VIEW).expected == {}


@pytest.mark.parametrize(
    ("name", "values", "expected", "code", "says"),
    [
        ("createTag", {"name": "x"}, {"name": "y"}, "invalid_argument", "createTag changes no row that exists"),
        ("deletePart", {"id": 1}, {"pirce": 1}, "invalid_argument", "expected: PartManager has no field 'pirce'"),
        ("deletePart", {"id": 1}, {"gross": "1"}, "invalid_argument", "no field 'gross'"),
        ("deletePart", {"id": 1}, {"tags": [1]}, "invalid_argument", "no field 'tags'"),
        ("deletePart", {"id": 1}, {"price": True}, "invalid_value", "expected: price: expected a decimal number"),
        ("deletePart", {"id": 1}, {"status": "gone"}, "invalid_value", "expected: status: 'gone' is not one of"),
        ("deletePart", {"id": 1}, {"material": "x"}, "invalid_value", "expected: material: expected an integer"),
    ],
)
def test_expected_values_that_cannot_be_compared(name: str, values: Any, expected: Any, code: str, says: str) -> None:
    with pytest.raises(ToolError) as caught:
        build_call(name, values, VIEW, expected)
    assert caught.value.code == code
    assert says in caught.value.message


def test_the_nearest_fields_are_offered() -> None:
    with pytest.raises(ToolError) as caught:
        build_call("deletePart", {"id": 1}, VIEW, {"pirce": 1})
    assert caught.value.details["allowed"][0] == "price"
