from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testproject.desk import whole_view

from gm_chat.managers.api import ManagerVisibility, Order, QueryPlan, RelationSelection, Selection, Visibility
from gm_chat.managers.index import MaskedView, SchemaIndex
from gm_chat.managers.plan import PlanLimits, build_plan
from gm_chat.managers.reach import managers_of
from gm_chat.managers.resolve import find_manager
from gm_chat.plugin import ToolError


@pytest.fixture(scope="module")
def view() -> MaskedView:
    return whole_view()


def plan(view: MaskedView, fields: Any = ("name",), manager: Any = "PartManager", **args: Any) -> QueryPlan:
    limits = args.pop("limits", PlanLimits())
    return build_plan({"manager": manager, "fields": fields, **args}, view, max_results=200, limits=limits)


def refusal(view: MaskedView, **args: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        plan(view, **args)
    return caught.value


# --- fields -----------------------------------------------------------------------------------------------------


def test_names_paths_and_objects_merge_into_one_shape(view: MaskedView) -> None:
    fields = ["name", "material__name", "material.density", {"material": ["name", "id"]}, {"tags": ["name"]}, "name"]
    assert plan(view, fields).selection == Selection(
        ("name",),
        (
            RelationSelection("material", Selection(("name", "density", "id"))),
            RelationSelection("tags", Selection(("name",)), limit=100),
        ),
    )


def test_star_is_every_scalar_field_of_its_level(view: MaskedView) -> None:
    part = view.get("PartManager")
    assert part is not None
    assert plan(view, ["*"]).selection == Selection(tuple(field.name for field in part.fields))
    assert plan(view, ["material__*"]).selection.relations[0].selection.fields == ("id", "name", "density", "notes")


def test_a_relation_alone_means_its_scalar_fields(view: MaskedView) -> None:
    assert plan(view, ["material"]).selection == plan(view, [{"material": ["*"]}]).selection


@pytest.mark.parametrize("spelling", ["lead_time", "leadTime", "LeadTime", "LEAD_TIME", "leadtime"])
def test_spellings_resolve(view: MaskedView, spelling: str) -> None:
    assert plan(view, [spelling]).selection.fields == ("lead_time",)
    nested = plan(view, [{"orderLines": ["unitPrice"]}, "order_lines__unit_price"]).selection.relations
    assert [(item.name, item.selection.fields) for item in nested] == [("order_lines", ("unit_price",))]


def test_unknown_fields_name_the_culprit_and_the_nearest(view: MaskedView) -> None:
    error = refusal(view, fields=["nmae"])
    assert (error.code, error.message) == ("unknown_field", "PartManager has no field 'nmae'")
    assert error.details["allowed"][0] == "name"
    assert len(error.details["allowed"]) <= 20
    inner = refusal(view, fields=[{"material": ["densty"]}])
    assert inner.details["allowed"][0] == "density"
    assert "MaterialManager" in inner.message


def test_unknown_relations_name_the_relations(view: MaskedView) -> None:
    for fields in ([{"materiall": ["name"]}], ["materiall__name"]):
        error = refusal(view, fields=fields)
        assert error.code == "unknown_relation"
        assert error.details["allowed"][0] == "material"
    assert refusal(view, fields=["name__name"]).code == "unknown_relation"


@pytest.mark.parametrize(
    "fields", [None, [], (), "name", {"name": 1}, [1], [None], [[]], [{}], [{1: ["name"]}], [{"material": "name"}]]
)
def test_fields_of_another_shape_are_refused(view: MaskedView, fields: Any) -> None:
    assert refusal(view, fields=fields).code == "invalid_argument"


@pytest.mark.parametrize("name", ["", "__", "a____b", "__name", ".", "name__", "x" * 1000])
def test_text_that_is_no_path_is_refused(view: MaskedView, name: str) -> None:
    assert refusal(view, fields=[name]).code in ("invalid_argument", "unknown_field")


def test_sizes_are_bounded_before_anything_runs(view: MaskedView) -> None:
    deep: Any = ["name"]
    for _ in range(30):
        deep = [{"boss": deep}]
    assert refusal(view, manager="EmployeeManager", fields=deep).code == "too_large"
    assert refusal(view, manager="EmployeeManager", fields=["__".join(["boss"] * 30 + ["name"])]).code == "too_large"
    assert refusal(view, fields=["name"] * 5_000).code == "too_large"
    assert refusal(view, fields=["*"] * 50).code == "too_large"
    wide = ["material__parts__supplier__parts", "tags__parts__material__parts", "projects__parts__tags__parts"]
    assert refusal(view, fields=wide, limits=PlanLimits(relations=10)).code == "too_large"


@pytest.mark.parametrize("kind", [list, dict])
def test_json_ten_thousand_deep_is_an_error_not_a_crash(view: MaskedView, kind: type) -> None:
    deep: Any = ["name"]
    for _ in range(10_000):
        deep = [deep] if kind is list else [{"boss": deep}]
    assert refusal(view, manager="EmployeeManager", fields=deep).code in ("too_large", "invalid_argument")
    nested: Any = {"name": "x"}
    for _ in range(10_000):
        nested = {"not": nested} if kind is dict else {"or": [nested]}
    assert refusal(view, manager="EmployeeManager", filters=nested).code == "too_large"
    assert refusal(view, manager="EmployeeManager", filters={"name": deep}).code == "invalid_value"


def test_nested_lists_are_bounded(view: MaskedView) -> None:
    made = plan(
        view, [{"parts": ["name", "supplier__name"]}], manager="MaterialManager", limits=PlanLimits(nested_rows=7)
    )
    (parts,) = made.selection.relations
    assert (parts.limit, parts.selection.relations[0].limit, made.nested_rows) == (100, None, 7)


# --- limit, offset, order, manager ------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, -1, "10", True, False, 1.5, [], {}, float("nan"), float("inf")])
def test_limits_that_are_no_positive_integer_are_refused(view: MaskedView, limit: Any) -> None:
    error = refusal(view, limit=limit)
    assert error.code == "invalid_argument"
    assert "limit" in error.message
    assert error.details["allowed"] == "1 or more"


@pytest.mark.parametrize("offset", [-1, "0", True, 1.5, 10**30, None])
def test_offsets(view: MaskedView, offset: Any) -> None:
    if offset is None:
        assert plan(view, offset=None).offset == 0
    else:
        assert "offset" in refusal(view, offset=offset).message


def test_limits_are_lowered_and_defaulted(view: MaskedView) -> None:
    assert plan(view, limit=10**9).limit == 200
    assert plan(view).limit == 200
    assert plan(view, limit=5.0, offset=7).limit == 5
    assert plan(view, offset=7).offset == 7


def test_orders_follow_single_relations(view: MaskedView) -> None:
    assert plan(view, order_by=["-price", "material__name", "price"]).order == (
        Order(("price",), descending=True),
        Order(("material", "name")),
    )
    assert plan(view, order_by="-leadTime").order == (Order(("lead_time",), descending=True),)


@pytest.mark.parametrize(
    ("order", "code"),
    [
        (["tags__name"], "invalid_argument"),
        (["nope"], "unknown_field"),
        (["material"], "unknown_field"),
        (["nope__name"], "unknown_relation"),
        (["gross"], "invalid_argument"),
        (["attributes"], "invalid_argument"),
        ([1], "invalid_argument"),
        ({"price": "desc"}, "invalid_argument"),
        (["--price"], "unknown_field"),
        ([""], "invalid_argument"),
        (["name"] * 7, "too_large"),
        (["__".join(["material"] * 9)], "too_large"),
    ],
)
def test_orders_that_cannot_be(view: MaskedView, order: Any, code: str) -> None:
    error = refusal(view, order_by=order)
    assert error.code == code
    if code.startswith("unknown"):
        assert error.details["allowed"]


@pytest.mark.parametrize("spelling", ["PartManager", "part", "Part", "partmanager", "part_manager"])
def test_managers_are_found_by_near_spellings(view: MaskedView, spelling: str) -> None:
    assert find_manager(spelling, view).name == "PartManager"


@pytest.mark.parametrize("name", [None, 7, ["PartManager"], {}, ""])
def test_managers_must_be_named(view: MaskedView, name: Any) -> None:
    assert refusal(view, manager=name).code in ("invalid_argument", "unknown_manager")


def test_hidden_is_answered_like_unknown() -> None:
    infos = list(whole_view())
    rights = {
        info.name: ManagerVisibility(frozenset({"id", "name"}), frozenset({"material", "tags"}), frozenset())
        for info in infos
        if info.name != "MaterialManager"
    }
    view = SchemaIndex.build(infos).view(Visibility("few", rights))

    def answers(build: str, unknown: str, **args: Any) -> None:
        hidden_error, unknown_error = (refusal(view, **_fill(args, word)).as_result() for word in (build, unknown))
        assert str(hidden_error).replace(build, "?") == str(unknown_error).replace(unknown, "?")

    answers("MaterialManager", "MaterialManegar", manager="{}")
    answers("price", "prize", fields=["{}"])
    answers("material", "materiel", fields=[{"{}": ["name"]}])
    answers("price", "prize", filters={"{}": 1})
    answers("price", "prize", order_by=["{}"])


def _fill(value: Any, word: str) -> Any:
    if isinstance(value, str):
        return value.replace("{}", word)
    if isinstance(value, list):
        return [_fill(item, word) for item in value]
    return {_fill(k, word): _fill(v, word) for k, v in value.items()} if isinstance(value, dict) else value


def test_unknown_arguments_are_refused(view: MaskedView) -> None:
    error = refusal(view, where={"name": "x"})
    assert error.details["allowed"] == ["manager", "fields", "filters", "order_by", "first_per", "limit", "offset"]


def test_managers_of_a_plan_are_all_that_it_touches(view: MaskedView) -> None:
    made = plan(view, ["name", "material__name"], filters={"not": {"tags__name": "x"}, "or": [{"supplier": None}]})
    assert managers_of(made, view) == {"PartManager", "MaterialManager", "TagManager", "SupplierManager"}


# --- anything ---------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(
    (
        *("name", "price", "material", "tags", "*", "and", "or", "not", "id", "lead_time", "created_at", "status"),
        *("nameIcontains", "name_Icontains", "price__gte", "price__in", "created_at__date", "tags__isnull"),
        "material__name",
    )
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**400), max_value=10**400)
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=20)
    | st.sampled_from(["2024-01-01", "2024-01-01T10:00:00+23:59", "9999-12-31", "0001-01-01T00:00:00", "1e400", "P1D"])
    | NAMES
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=20
)
ARGUMENTS = st.fixed_dictionaries(
    {"manager": st.just("PartManager"), "fields": st.just(["name"]) | JSON},
    optional={"filters": JSON | st.dictionaries(NAMES, JSON), "order_by": JSON, "limit": JSON, "offset": JSON},
)


@settings(max_examples=400, deadline=None)
@given(args=ARGUMENTS)
def test_no_arguments_raise_anything_but_a_tool_error(args: dict[str, Any]) -> None:
    try:
        made = build_plan(args, VIEW, max_results=200)
    except ToolError as error:
        text = str(error)
    else:
        assert 1 <= made.limit <= 200
        return
    assert 0 < len(text) < 1000


VIEW = whole_view()
