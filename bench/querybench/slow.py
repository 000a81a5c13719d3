"""What takes too long over a million sales: arguments of the two tools, and rules about rows that do the rest."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from gm_chat.managers.aggregate import build_aggregate
from gm_chat.managers.aggregation import execute_aggregate
from gm_chat.managers.binding import ComputedField
from gm_chat.managers.executor import execute_plan
from gm_chat.managers.plan import build_plan
from querybench.pages.ours import ACTOR, BINDINGS, VIEW

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["WORK"]

ALIKE: Final = {"customer": {"sales": {"price": {"outer": "price"}, "quantity__gt": {"outer": "quantity"}}}}
SPELLINGS: Final = [{"customer__name__icontains": f"{number}x"} for number in range(12)]
STATEMENTS: Final[Mapping[str, dict[str, Any]]] = {
    "query, sorts": {"fields": ["id"], "order_by": ["status", "-customer__name", "price"], "offset": 900_000},
    "query, first of each": {"fields": ["*"], "order_by": ["-price", "sold_on"], "first_per": ["customer", "status"]},
    "query, compares with all others": {"fields": ["*"], "filters": ALIKE},
    "query, twelve conditions": {"fields": ["*"], "filters": {"or": SPELLINGS}},
    "aggregate, median of all": {"measures": "median(price)"},
    "aggregate, medians of groups": {"group_by": ["sold_on", "status"], "measures": "median(price * quantity)"},
    "aggregate, distinct": {"group_by": ["customer__name"], "measures": ["count(distinct price)", "max(paid_on)"]},
    "aggregate, ranks": {"group_by": ["sold_on", "price"], "measures": {"n": "count()", "place": "rank(n, sold_on)"}},
}
SALE: Final = BINDINGS["SaleManager"]


def asking(name: str, arguments: Mapping[str, Any], **changes: Any) -> Callable[[float], Any]:
    """What runs the tool that the name begins with, until a deadline."""
    given = {"manager": "SaleManager", **arguments}
    bindings = {**BINDINGS, "SaleManager": replace(SALE, **changes)}
    if name.startswith("query"):
        plan = build_plan(given, VIEW, max_results=200)
        return lambda deadline: execute_plan(plan, bindings, ACTOR, deadline=deadline)
    sums = build_aggregate(given, VIEW, max_results=200)
    return lambda deadline: execute_aggregate(sums, bindings, ACTOR, deadline=deadline)


def many_small_statements(rows: Any, _: Any) -> Any:
    while rows.filter(pk=1).exists():
        pass
    return rows


def lists_as_long_as_they_may_be(rows: Any, _: Any) -> Any:
    while list(rows.values_list()[:20_000]):
        pass
    return rows


def all_rows(rows: Any, _: Any) -> Any:
    return rows.filter(pk__in=[sale.pk for sale in rows])


def computing(*_: Any) -> int:
    time.sleep(0.01)
    return 1


def _work() -> dict[str, Callable[[float], Any]]:
    work = {name: asking(name, arguments) for name, arguments in STATEMENTS.items()}
    for tool, arguments in (("query", {"fields": ["price"]}), ("aggregate", {"measures": "sum(price)"})):
        for rule in (many_small_statements, lists_as_long_as_they_may_be, all_rows):
            name = f"{tool}, {rule.__name__.replace('_', ' ')}"
            work[name] = asking(name, arguments, visible_to=rule)
    columns = {name: column for name, column in SALE.columns.items() if name != "price"}
    computed = {"price": ComputedField(compute=computing, type="decimal", needs=("id",))}
    name = "query, computing"
    work[name] = asking(name, {"fields": ["price"]}, columns=columns, computed=computed)
    return work


WORK: Final = _work()
