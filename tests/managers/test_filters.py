from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone
from testproject.desk import whole_view

from gm_chat.managers.api import And, Condition, Not, Or, Related
from gm_chat.managers.filters import FilterLimits, filter_names, parse_filters
from gm_chat.managers.resolve import split_path
from gm_chat.plugin import ToolError

VIEW = whole_view()


def parse(filters: Any, manager: str = "PartManager", limits: FilterLimits | None = None) -> And:
    info = VIEW.get(manager)
    assert info is not None
    return parse_filters(filters, info, VIEW, limits or FilterLimits())


def refusal(filters: Any, manager: str = "PartManager", limits: FilterLimits | None = None) -> ToolError:
    with pytest.raises(ToolError) as caught:
        parse(filters, manager, limits)
    return caught.value


def test_nothing_is_no_condition() -> None:
    assert parse(None) == parse({}) == And(())


@pytest.mark.parametrize(
    "key",
    [
        *("name__icontains", "name_icontains", "name_Icontains", "nameIcontains", "name__Icontains"),
        *("NAME__ICONTAINS", "name.icontains"),
    ],
)
def test_every_spelling_of_a_lookup(key: str) -> None:
    assert parse({key: "bolt"}) == And((Condition(("name",), "icontains", "bolt"),))


def test_operators_may_be_an_object() -> None:
    assert parse({"weight": {"gte": 1, "lt": 2.5}}) == And(
        (And((Condition(("weight",), "gte", 1.0), Condition(("weight",), "lt", 2.5))),)
    )


@pytest.mark.parametrize(
    "filters",
    [
        {"order_lines__order__customer__icontains": "a", "order_lines__quantity__gt": 2},
        {"orderLines": {"order": {"customer__icontains": "a"}, "quantity__gt": 2}},
        {"order_lines": {"order__customer": {"icontains": "a"}}, "orderLines__quantityGt": 2},
        {"orderLines_Order_CustomerIcontains": "a", "orderLines": {"quantity_Gt": 2}},
    ],
)
def test_flat_and_nested_speak_of_the_same_row(filters: Any) -> None:
    (related,) = parse(filters).parts
    assert isinstance(related, Related)
    assert related.relation == "order_lines"
    assert isinstance(related.part, And)
    parts = [*related.part.parts]
    if isinstance(parts[1], Condition):
        parts.reverse()
    customer = Condition(("customer",), "icontains", "a")
    assert parts[0] == Condition(("quantity",), "gt", 2)
    assert parts[1] in (Related("order", And((customer,))), Related("order", And((And((customer,)),))))


def test_logic() -> None:
    name, draft = Condition(("name",), "exact", "x"), Condition(("status",), "exact", "draft")
    assert parse({"or": [{"name": "x"}, {"status": "draft"}]}) == And((Or((And((name,)), And((draft,)))),))
    assert parse({"or": {"name": "x", "status": "draft"}}) == parse({"OR": [{"name": "x"}, {"status": "draft"}]})
    assert parse({"and": [{"name": "x"}, {"status": "draft"}]}) == And((And((And((name,)), And((draft,)))),))
    assert parse({"not": {"name": "x", "status": "draft"}}) == And((Not(And((name, draft))),))


def test_null_asks_for_absence() -> None:
    assert parse({"weight": None}) == And((Condition(("weight",), "isnull", value=True),))
    absent = And((Not(Related("supplier", And(()))),))
    assert parse({"supplier": None}) == parse({"supplier__isnull": True}) == parse({"supplierIsnull": True}) == absent
    assert parse({"tags__isnull": False}) == And((Related("tags", And(())),))
    assert refusal({"tags__isnull": "no"}).code == "invalid_value"
    assert refusal({"weight__gt": None}).code == "invalid_value"


def test_a_date_means_the_whole_day_for_a_moment() -> None:
    def day(number: int) -> datetime:
        return datetime(2024, 1, number, tzinfo=timezone.get_default_timezone())

    def parts(**filters: Any) -> list[tuple[str, Any]]:
        found: list[Any] = []
        stack: list[Any] = list(parse(filters).parts)
        while stack:
            part = stack.pop(0)
            stack = [*part.parts, *stack] if isinstance(part, And | Or) else stack
            found += [(part.lookup, part.value)] if isinstance(part, Condition) else []
        return found

    assert parts(created_at="2024-01-02") == [("gte", day(2)), ("lt", day(3))]
    assert parts(created_at__gt="2024-01-02") == [("gte", day(3))]
    assert parts(created_at__lte="2024-01-02") == [("lt", day(3))]
    assert parts(created_at__gte="2024-01-02") == [("gte", day(2))]
    assert parts(created_at__lt="2024-01-02") == [("lt", day(2))]
    assert parts(created_at__range=["2024-01-01", "2024-01-02"]) == [("gte", day(1)), ("lt", day(3))]
    moment = datetime(2024, 1, 5, tzinfo=UTC)
    found = parts(created_at__in=["2024-01-01", "2024-01-05T00:00:00Z"])
    assert found == [("gte", day(1)), ("lt", day(2)), ("exact", moment)]
    assert parts(created_at__date="2024-01-02") == [("date", date(2024, 1, 2))]
    assert parts(created_at__year=2024) == [("year", 2024)]
    assert parts(released_on__lte="2024-01-02") == [("lte", date(2024, 1, 2))]


def test_null_behind_a_relation_asks_for_no_related_row_where_the_field_is_never_null() -> None:
    none = Not(Related("supplier", And(())))
    for filters in ({"supplier__name__isnull": True}, {"supplier__name": None}, {"supplier": {"name__isnull": True}}):
        assert parse(filters) == And((none,))
    rating = Condition(("rating",), "isnull", value=True)
    assert parse({"supplier__rating": None}) == And((Related("supplier", And((rating,))),))
    assert parse({"supplier__name__isnull": False}) == And(
        (Related("supplier", And((Condition(("name",), "isnull", value=False),))),)
    )


def test_choices_take_values_and_labels() -> None:
    for value in ("released", "Released", "RELEASED"):
        assert parse({"status": value}) == And((Condition(("status",), "exact", "released"),))
    assert parse({"status__in": ["In design", "released"]}) == And(
        (Condition(("status",), "in", ("draft", "released")),)
    )
    assert parse({"status__icontains": "rel"}) == And((Condition(("status",), "icontains", "rel"),))
    for lookup, text in {
        "icontains": "in DESIGN",
        "contains": "In des",
        "istartswith": "in ",
        "endswith": "gn",
    }.items():
        (found,) = parse({f"status__{lookup}": text}).parts
        assert found == Or((Condition(("status",), lookup, text), Condition(("status",), "in", ("draft",))))
    assert parse({"status__contains": "in des"}) == And((Condition(("status",), "contains", "in des"),))
    error = refusal({"status": "relased"})
    assert error.code == "invalid_value"
    assert error.details["allowed"] == ["released", "obsolete", "draft"]


@pytest.mark.parametrize(
    ("filters", "code", "says"),
    [
        ({"nmae": "x"}, "unknown_filter", "'nmae'"),
        ({"nmae__icontains": "x"}, "unknown_filter", "'nmae'"),
        ({"material__densty__gt": 1}, "unknown_filter", "'densty'"),
        ({"name__like": "x"}, "unknown_lookup", "'like'"),
        ({"name__icontains__x": "x"}, "unknown_lookup", "icontains__x"),
        ({"created_at__date__contains": "2024-01-01"}, "unknown_lookup", "date__contains"),
        ({"purchased__gt": True}, "unknown_lookup", "'gt'"),
        ({"gross": "1.19"}, "unknown_filter", "'gross'"),
        ({"attributes": {"colour": "red"}}, "unknown_lookup", "'colour'"),
        ({"material": 3}, "invalid_value", "relation"),
        ({"material": {}}, "invalid_value", "relation"),
        ({"name": ["x"]}, "invalid_value", "name"),
        ({"name": 5}, "invalid_value", "text in quotes"),
        ({"weight__gt": "5"}, "invalid_value", "without quotes"),
        ({"weight__gt": True}, "invalid_value", "without quotes"),
        ({"weight__gt": "price"}, "invalid_value", 'with a field, write {"field": "price"}'),
        ({"count(id)__gt": 1}, "invalid_argument", "formulas are measures of aggregate"),
        ({"weight__in": 5}, "invalid_value", "list"),
        ({"weight__range": [1, 2, 3]}, "invalid_value", "two values"),
        ({"weight__isnull": 1}, "invalid_value", "true or false"),
        ({"created_at__month": 13}, "invalid_value", "1 to 12"),
        ({"created_at__year": 0}, "invalid_value", "2 to 9998"),
        ({"purchased": "true"}, "invalid_value", "true or false"),
        ({"weight__icontains": 5}, "unknown_lookup", "'icontains'"),
        ({"created_at__icontains": "soon"}, "unknown_lookup", "'icontains'"),
        ({"name": "a\x00b"}, "invalid_value", "NUL"),
        ({"name__in": ["a\ud800"]}, "invalid_value", "surrogates"),
        ({"or": []}, "invalid_argument", "or must"),
        ({"or": {}}, "invalid_argument", "'or' needs"),
        ({"or": "x"}, "invalid_argument", "or must be an object"),
        ({"not": [{"name": "x"}]}, "invalid_argument", "not must be an object"),
        ([{"name": "x"}], "invalid_argument", "filters must be an object"),
        ("name=x", "invalid_argument", "filters must be an object"),
        ({1: 2}, "invalid_argument", "not text"),
        ({"": 2}, "invalid_argument", "path"),
    ],
)
def test_mistakes_name_the_culprit(filters: Any, code: str, says: str) -> None:
    error = refusal(filters)
    assert error.code == code
    assert says in error.message
    if code.startswith("unknown"):
        assert error.details["allowed"]
        assert len(error.details["allowed"]) <= 20


def test_the_nearest_is_first() -> None:
    assert refusal({"nmae": "x"}).details["allowed"][0] == "name"
    assert refusal({"name__icontain": "x"}).details["allowed"][0] == "name__icontains"
    assert "gross" not in refusal({"gros": "x"}).details["allowed"]
    assert refusal({"material": 3}).details["allowed"] == [
        *("material__name", "material__notes", "material__id", "material__density")
    ]
    for key in ("material", "material__icontains", "materialIcontains"):
        assert refusal({key: "steel"}).details["allowed"] == ["material__name__icontains", "material__notes__icontains"]
    assert refusal({"material__gt": 3}).details["allowed"][-1] == "material__density__gt"


def test_sizes_are_bounded() -> None:
    assert refusal({"or": [{"name": "x"}] * 5_000}).code == "too_large"
    assert refusal({"id__in": list(range(501))}).code == "too_large"
    assert parse({"id__in": list(range(500))}).parts
    assert refusal({"name": {"exact": "x", "icontains": "y"}}, limits=FilterLimits(conditions=2)).code == "too_large"
    deep: Any = {"name": "x"}
    for _ in range(30):
        deep = {"boss": deep}
    assert refusal(deep, "EmployeeManager").code == "too_large"
    assert refusal({"boss__" * 30 + "name": "x"}, "EmployeeManager").code == "too_large"


def test_decimals_stay_exact() -> None:
    (condition,) = parse({"price__gt": 0.1}).parts
    assert condition == Condition(("price",), "gt", Decimal("0.1"))


def test_filter_names_show_the_usual_or_all() -> None:
    info = VIEW.get("PartManager")
    assert info is not None
    usual, every = filter_names(info), filter_names(info, complete=True)
    assert [name for name in usual if name.startswith("price")] == ["price", "price__gte", "price__lte"]
    assert [name for name in usual if name.startswith("name")] == ["name", "name__icontains"]
    assert {"price__in", "name__startswith", "attributes__isnull", "status"} <= set(every)
    assert not [name for name in every if name.startswith("gross")]
    for name in every:
        assert split_path(name, "filter")
