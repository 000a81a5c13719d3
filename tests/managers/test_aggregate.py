"""The aggregate tool's arguments: what is read, and what every mistake is told."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from testproject.desk import whole_view

from gm_chat.managers.aggregate import FILLED, MAX_GROUPS, MAX_MEASURES, build_aggregate
from gm_chat.managers.api import And, Condition, FieldReference, Order, Related
from gm_chat.managers.meaning import MAX_COLUMNS, MAX_SIZE
from gm_chat.managers.measures import (
    AcrossGroups,
    Aggregated,
    AggregatePlan,
    Arithmetic,
    Behind,
    Constant,
    Elapsed,
    FieldValue,
    Group,
    Measure,
    MeasureValue,
    parts_of,
)
from gm_chat.plugin import ToolError

VIEW = whole_view()


def plan(manager: str = "OrderLineManager", **args: Any) -> AggregatePlan:
    return build_aggregate({"manager": manager, **args}, VIEW, max_results=200)


def refusal(manager: str = "OrderLineManager", **args: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        plan(manager, **args)
    return caught.value


def formula(text: Any, manager: str = "OrderLineManager", **args: Any) -> Any:
    (measure,) = plan(manager, measures={"m": text}, **args).measures
    return measure.formula


QUANTITY = FieldValue(("quantity",), "integer")
PRICE = FieldValue(("unit_price",), "decimal")


class TestWhatIsRead:
    def test_everything_at_once(self) -> None:
        assert plan(
            measures={
                "n": "count()",
                "revenue": {"formula": "sum(quantity * unitPrice)", "where": {"quantity__gt": 1}},
            },
            group_by=["order__status", "order.orderedAt.month"],
            filters={"part__purchased": True},
            having={"revenue__gte": "12.50"},
            order_by=["-Revenue", "order__status"],
            limit=5,
            offset=10,
        ) == AggregatePlan(
            manager="OrderLineManager",
            groups=(
                Group("order__status", ("order", "status"), "string"),
                Group("order__ordered_at__month", ("order", "ordered_at"), "date", "month"),
            ),
            measures=(
                Measure("n", Aggregated("count", None), "integer"),
                Measure(
                    "revenue",
                    Aggregated("sum", Arithmetic("*", QUANTITY, PRICE), And((Condition(("quantity",), "gt", 1),))),
                    "decimal",
                ),
            ),
            where=And((Related("part", And((Condition(("purchased",), "exact", value=True),))),)),
            having=And((Condition(("revenue",), "gte", Decimal("12.50")),)),
            order=(Order(("revenue",), descending=True), Order(("order__status",))),
            limit=5,
            offset=10,
        )

    def test_a_relation_alone_means_its_id(self) -> None:
        assert plan(group_by=["order", "order__id"]).groups == (
            Group("order", ("order", "id"), "integer"),
            Group("order__id", ("order", "id"), "integer"),
        )
        assert formula("count(distinct part)") == Aggregated(
            "count", FieldValue(("part", "id"), "integer"), distinct=True
        )
        assert plan("BomLineManager", group_by="project").groups == (Group("project", ("project", "code"), "string"),)
        assert plan("BomLineManager", group_by="project__id").groups[0].path == ("project", "code")

    def test_measures_may_be_one_text_or_a_list(self) -> None:
        assert [item.name for item in plan(measures="count()").measures] == ["value"]
        assert [item.name for item in plan(measures=["count()", "sum(quantity)"]).measures] == ["count", "sum_quantity"]
        asked = ["sum(quantity + id)", "sum(quantity - id)", "max(part__id)", "2 * count()", "sum(quantity + id)"]
        names = ["sum_quantity_id", "sum_quantity_id_2", "max_part_id", "count"]
        assert [item.name for item in plan(measures=asked).measures] == names
        assert plan(measures={"n": {"formula": "count()", "filters": {"quantity": 1}}}).measures[
            0
        ].formula == Aggregated("count", None, And((Condition(("quantity",), "exact", 1),)))

    def test_groups_alone_are_distinct_values(self) -> None:
        for measures in (None, {}, []):
            assert plan(group_by=["quantity"], measures=measures).measures == ()

    def test_to_many_relations_are_aggregated_for_each_row_first(self) -> None:
        lines = Behind("lines", "sum", QUANTITY)
        assert formula("sum(lines__quantity)", "OrderManager") == Aggregated("sum", lines)
        assert formula("avg(sum(lines__quantity))", "OrderManager") == Aggregated("avg", lines)
        assert formula("count(lines)", "OrderManager") == Aggregated("sum", Behind("lines", "count", None))
        assert formula("avg(lines__quantity)", "OrderManager") == Arithmetic(
            "/", Aggregated("sum", lines), Aggregated("sum", Behind("lines", "count", QUANTITY))
        )

    def test_conditions_behind_a_relation_restrict_what_is_behind_it(self) -> None:
        where = {"lines__quantity__gt": 2, "status": "open"}
        found = formula({"formula": "count(lines)", "where": where}, "OrderManager")
        assert found == Aggregated(
            "sum",
            Behind("lines", "count", None, And((And((Condition(("quantity",), "gt", 2),)),))),
            And((Condition(("status",), "exact", "open"),)),
        )

    def test_dates(self) -> None:
        due, ordered = FieldValue(("due_on",), "date"), FieldValue(("ordered_at",), "datetime")
        assert formula("avg(due_on - ordered_at)", "OrderManager") == Aggregated("avg", Elapsed(due, ordered, "days"))
        assert formula("max(ordered_at - ordered_at)", "OrderManager").of == Elapsed(ordered, ordered, "seconds")
        assert formula("max(today - due_on)", "OrderManager").of.end == Constant(
            formula("max(today - due_on)", "OrderManager").of.end.value
        )
        assert type(formula("min(TODAY - due_on)", "OrderManager").of.end.value) is date
        assert formula("now - max(ordered_at)", "OrderManager").unit == "seconds"
        part = formula("avg(2030 - due_on__year)", "OrderManager")
        assert part.of == Arithmetic("-", Constant(Decimal(2030)), FieldValue(("due_on",), "date", "year"))
        assert formula("count(distinct ordered_at__day)", "OrderManager").of.part == "day"

    def test_measures_name_each_other(self) -> None:
        found = plan(measures={"n": "count()", "total": "sum(quantity)", "mean": "total / N"}).measures
        assert found[2] == Measure("mean", Arithmetic("/", MeasureValue("total"), MeasureValue("n")), "number")

    def test_comparisons_of_groups(self) -> None:
        groups = ["order__status", "order__ordered_at__month"]
        measures = {"n": "count()", "place": "rank(n)", "within": "share(n, order.status)", "up": "change(n)"}
        found = {item.name: item for item in plan(measures=measures, group_by=groups).measures}
        assert found["place"] == Measure("place", AcrossGroups("rank", "n"), "integer")
        assert found["within"] == Measure("within", AcrossGroups("share", "n", ("order__status",)), "number")
        # What runs along the only date stays within the other groups.
        assert found["up"] == Measure("up", AcrossGroups("change", "n", ("order__status",)), "integer")
        assert plan(measures={"n": "running(count())"}, group_by=groups[:1]).measures[-1].formula.within == ()

    def test_what_is_no_measure_yet_becomes_one_that_is_not_shown(self) -> None:
        found = plan(measures={"n": "count()", "s": "100 * share(count()) - sum(quantity)"}, group_by=["part"]).measures
        assert [(item.name, item.hidden) for item in found] == [("n", False), ("#1", True), ("s", False)]
        assert AcrossGroups("share", "n") in parts_of(found[2].formula)
        assert MeasureValue("#1") in parts_of(found[2].formula)
        error = refusal(measures={"a": "rank(sum(quantity))"}, group_by=["part"], order_by=["#0"])
        assert sorted(error.details["allowed"]) == ["a", "part"]

    def test_having_compares_measures(self) -> None:
        (condition,) = plan(
            measures={"a": "sum(quantity)", "b": "count()"}, group_by=["part"], having={"a__gt": {"field": "b"}}
        ).having.parts
        assert condition == Condition(("a",), "gt", FieldReference(("b",), "decimal"))

    @pytest.mark.parametrize("part", FILLED)
    def test_fill(self, part: str) -> None:
        args: dict[str, Any] = {"group_by": [f"order__due_on__{part}", "part"], "measures": "count()"}
        assert plan(fill=True, **args).fill == f"order__due_on__{part}"
        assert plan(fill=False, **args).fill is plan(**args).fill is None

    def test_a_limit_above_the_cap_is_lowered(self) -> None:
        assert plan(group_by=["part"], limit=10**6).limit == plan(group_by=["part"]).limit == 200


MISTAKES: list[tuple[dict[str, Any], str, str]] = [
    ({}, "invalid_argument", "measures must be an object"),
    ({"measures": {}}, "invalid_argument", "measures must be an object"),
    ({"measures": 5, "group_by": ["part"]}, "invalid_argument", "got 5"),
    ({"measures": {"n": 5}}, "invalid_argument", "measure 'n' must be a formula"),
    ({"measures": {"n": {"formula": "count()", "when": {}}}}, "invalid_argument", "measure 'n' must be a formula"),
    ({"measures": {"a b": "count()"}}, "invalid_argument", "'a b' is no name"),
    ({"measures": {"a__b": "count()"}}, "invalid_argument", "'a__b' is no name"),
    ({"measures": {"#0": "count()"}}, "invalid_argument", "'#0' is no name"),
    ({"measures": {"quantity": "count()"}, "group_by": ["quantity"]}, "invalid_argument", "the name of a group"),
    ({"measures": "count()", "goup_by": []}, "invalid_argument", "'goup_by'"),
    ({"measures": "cuont()"}, "invalid_formula", "no function 'cuont'"),
    ({"measures": "quantity"}, "invalid_formula", "inside a function"),
    ({"measures": "nothing"}, "unknown_field", "'nothing'"),
    ({"measures": "sum(quantty)"}, "unknown_field", "'quantty'"),
    ({"measures": "sum(ordr__id)"}, "unknown_field", "'ordr'"),
    ({"measures": "sum(order__status)"}, "invalid_formula", "needs numbers, got a string"),
    ({"measures": "min(part__purchased)"}, "invalid_formula", "got a boolean"),
    ({"measures": "sum(part__attributes)"}, "invalid_formula", "no stored field"),
    ({"measures": "sum(part__gross)"}, "invalid_formula", "no stored field"),
    ({"measures": "sum()"}, "invalid_formula", "takes one field"),
    ({"measures": "sum(quantity, quantity)"}, "invalid_formula", "takes one field"),
    ({"measures": "sum(order__status + 1)"}, "invalid_formula", "'+' needs numbers"),
    ({"measures": "sum(order__due_on * 2)"}, "invalid_formula", "'*' needs numbers"),
    ({"measures": "sum(quantity"}, "invalid_formula", "')' is missing"),
    ({"measures": "sum(part__projects__budget + 1)"}, "invalid_formula", "'projects' holds many rows"),
    ({"measures": "count(distinct part__projects)"}, "invalid_formula", "aggregate ProjectManager instead"),
    ({"measures": "sum(avg(quantity))"}, "invalid_formula", "needs a to-many relation"),
    ({"measures": "rank(count())"}, "invalid_formula", "name some in group_by"),
    ({"measures": "rank()", "group_by": ["part"]}, "invalid_formula", "takes a measure"),
    ({"measures": "rank(max(order__number))", "group_by": ["part"]}, "invalid_formula", "needs numbers"),
    ({"measures": "rank(share(count()))", "group_by": ["part"]}, "invalid_formula", "not from other groups"),
    ({"measures": "rank(count(), order)", "group_by": ["part"]}, "invalid_formula", "takes names of groups"),
    ({"measures": "change(count(), part)", "group_by": ["part"]}, "invalid_formula", "to run along"),
    ({"group_by": 5}, "invalid_argument", "group_by must be a list"),
    ({"group_by": [5]}, "invalid_argument", "5 is not a field"),
    ({"group_by": ["part__projects__name"]}, "invalid_argument", "holds many rows of ProjectManager"),
    ({"group_by": ["part__attributes"]}, "invalid_argument", "cannot be grouped by"),
    ({"group_by": ["part__gross"]}, "invalid_argument", "cannot be grouped by"),
    ({"group_by": ["order__due_on__hour"]}, "invalid_argument", "no part 'hour'"),
    ({"group_by": ["order__due_on__moon"]}, "invalid_argument", "no part 'moon'"),
    ({"group_by": ["quantity__month"]}, "unknown_field", "no relation 'quantity'"),
    ({"group_by": ["a__" * 20 + "b"]}, "too_large", "more than 6 relations"),
    ({"group_by": ["part"], "measures": "count()", "having": {"vlaue__gt": 1}}, "unknown_filter", "'vlaue'"),
    ({"group_by": ["part"], "measures": "count()", "having": {"value__gt": "x"}}, "invalid_value", "value"),
    ({"group_by": ["part"], "having": {"first": {"per": [], "order_by": ["part"]}}}, "invalid_argument", "'first'"),
    (
        {
            "group_by": ["part"],
            "measures": {"a": "max(order__due_on)"},
            "having": {"a": {"field": "a", "plus": "1 day"}},
        },
        "invalid_argument",
        "'plus'",
    ),
    ({"measures": "count()", "having": {"value__gt": 1}}, "invalid_argument", "name some in group_by"),
    ({"group_by": ["part"], "order_by": ["nmae"]}, "unknown_field", "'nmae'"),
    ({"group_by": ["part"], "order_by": 5}, "invalid_argument", "order_by must be a list"),
    ({"group_by": ["part"], "order_by": ["part"] * 9}, "too_large", "more than 6 terms"),
    ({"group_by": ["part"], "limit": 0}, "invalid_argument", "limit"),
    ({"group_by": ["part"], "limit": "5"}, "invalid_argument", "without quotes"),
    ({"group_by": ["part"], "offset": -1}, "invalid_argument", "offset"),
    ({"group_by": ["order__due_on", "order__ordered_at__day"], "fill": True}, "invalid_argument", "not of 2"),
    ({"group_by": ["order__ordered_at__hour"], "fill": True}, "invalid_argument", "adds no periods to"),
    ({"group_by": ["order__due_on"], "fill": "yes"}, "invalid_argument", "fill must be true or false"),
    ({"group_by": ["part"] * 9}, "too_large", f"more than {MAX_GROUPS} fields"),
    ({"measures": {f"m{n}": "count()" for n in range(13)}}, "too_large", f"more than {MAX_MEASURES} measures"),
    ({"measures": "1 + " * 200 + "1"}, "too_large", "characters"),
    ({"measures": "(" * 20 + "1" + ")" * 20}, "too_large", "deeper"),
]


class TestWhatIsMeant:
    def test_a_measure_may_be_named_as_in_sql(self) -> None:
        assert plan(measures={"count()": "n", "sum(quantity)": "pieces"}) == plan(
            measures={"n": "count()", "pieces": "sum(quantity)"}
        )
        assert refusal(measures={"count()": "n", "sum(quantity)": "n"}).code == "invalid_argument"

    def test_all_rows_are_no_group(self) -> None:
        assert plan(group_by=["*"], measures="count()", having={}) == plan(measures="count()")

    def test_without_a_date_there_is_nothing_to_fill(self) -> None:
        assert plan(group_by=["part"], fill=True) == plan(group_by=["part"])

    def test_a_group_is_kept_by_its_choices(self) -> None:
        args: dict[str, Any] = {"manager": "PartManager", "group_by": ["status"]}
        kept = plan(**args, having={"status": "In design"})
        assert kept.having == plan(**args, having={"status": "draft"}).having
        assert refusal(**args, having={"status": "relased"}).details["allowed"][0] == "released"


class TestMistakes:
    @pytest.mark.parametrize(("args", "code", "says"), MISTAKES, ids=lambda value: str(value)[:60])
    def test_they_name_the_culprit(self, args: dict[str, Any], code: str, says: str) -> None:
        error = refusal(**args)
        assert error.code == code
        assert says in error.message
        assert len(error.details.get("allowed", "")) <= 120

    def test_the_nearest_is_first(self) -> None:
        assert refusal(measures="sum(quantty)").details["allowed"][0] == "quantity"
        assert refusal(group_by=["order__stauts"]).details["allowed"][0] == "status"
        assert (
            refusal(group_by=["part"], measures={"total": "count()"}, order_by=["totl"]).details["allowed"][0]
            == "total"
        )
        assert refusal(group_by=["part"], measures={"n": "count()", "r": "rank(count(), prt)"}).details["allowed"] == [
            "part"
        ]
        assert set(refusal(measures="median_of(quantity)").details["allowed"]) >= {"median", "count", "rank", "running"}
        assert "hour" not in refusal(group_by=["order__due_on__moon"]).details["allowed"]

    def test_short_formulas_that_build_on_each_other_do_not_grow_without_bound(self) -> None:
        measures = {"m0": "count()"} | {f"m{n}": " + ".join([f"m{n - 1}"] * 50) for n in range(1, 12)}
        assert refusal(measures=measures).code == "too_large"
        measures = {f"m{n}": " + ".join(f"share(count() + {n * 20 + k})" for k in range(15)) for n in range(12)}
        assert refusal(measures=measures, group_by=["part"]).code == "too_large"
        assert MAX_SIZE < 500
        assert MAX_COLUMNS < 100


# --- anything -----------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(
    [
        *(
            "quantity",
            "unit_price",
            "order",
            "order__status",
            "order__due_on__month",
            "part__projects",
            "part__tags__name",
        ),
        *("part__attributes", "id", "", "__", "first", "m", "n", "count()", "sum(quantity)", "rank(n)", "change(m)"),
        *("avg(order__due_on - today)", "count(distinct part)", "n / m", "share(n, order__status)", "running(count())"),
    ]
)
JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | NAMES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=10) | NAMES | st.sampled_from(["formula", "where", "per", "order_by"]), inner
        )
    ),
    max_leaves=12,
)
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "measures": JSON
        | st.dictionaries(st.sampled_from(["m", "n"]), NAMES | st.text("sumcount()quantity +-*/,", max_size=30)),
        "group_by": JSON | st.lists(NAMES, max_size=3),
        "filters": JSON,
        "having": JSON,
        "order_by": JSON | st.lists(NAMES, max_size=2),
        "fill": JSON,
        "limit": JSON,
        "offset": JSON,
    },
)


def test_a_part_of_no_date_is_answered_with_the_dates_that_there_are() -> None:
    error = refusal("OrderManager", group_by=["date__month"], measures="count()")
    assert sorted(error.details["allowed"]) == ["due_on__month", "ordered_at__month"]


@given(ARGUMENTS)
@settings(max_examples=300)
@example({"measures": {"n": "count()", "m": "n / n"}, "group_by": ["order__due_on__month"], "fill": True})
@example({"measures": {"m": "count()"}, "group_by": ["order"], "having": {"not": {"m__in": [1, 2.5]}}})
def test_any_arguments_give_a_plan_or_a_tool_error(args: dict[str, Any]) -> None:
    try:
        found: Any = plan(**args)
    except ToolError as error:
        found = error
    assert isinstance(found, AggregatePlan | ToolError)
    assert len(str(found)) < 20_000
