from __future__ import annotations

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
