"""What is aggregated over a million sales: the ``aggregate`` tool's arguments, and the SQL that one would write.

The SQL gives the same columns in the same order. Where databases differ it has ``{month}`` and the like.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SUMS", "Sum"]

DIALECTS: Final[Mapping[str, Mapping[str, str]]] = {
    "sqlite": {
        "month": "strftime('%Y-%m-01', s.sold_on)",
        "year": "cast(strftime('%Y', s.sold_on) as integer)",
        "weekday": "cast(strftime('%w', s.sold_on, '-1 day') as integer) + 1",
        "days": "julianday(s.paid_on) - julianday(s.sold_on)",
        "float": "* 1.0",
    },
    "postgresql": {
        "month": "date_trunc('month', s.sold_on)::date",
        "year": "extract(year from s.sold_on)",
        "weekday": "extract(isodow from s.sold_on)",
        "days": "s.paid_on - s.sold_on",
        "float": "::double precision",
    },
    "mysql": {
        "month": "date_format(s.sold_on, '%Y-%m-01')",
        "year": "year(s.sold_on)",
        "weekday": "weekday(s.sold_on) + 1",
        "days": "datediff(s.paid_on, s.sold_on)",
        "float": "* 1e0",
    },
}


@dataclass(frozen=True)
class Sum:
    """One question; ``but`` names databases whose SQL is another one.

    ``has_target`` is false where ours is known to be another statement than the best that one could write.
    """

    name: str
    arguments: Mapping[str, Any]
    sql: str
    but: Mapping[str, str] | None = None
    has_target: bool = True

    def by_hand(self, vendor: str) -> str:
        """The SQL for a database."""
        text = (self.but or {}).get(vendor, self.sql)
        for word, meaning in DIALECTS[vendor].items():
            text = text.replace(f"{{{word}}}", meaning)
        return " ".join(text.split())


def _of_sales(**arguments: Any) -> dict[str, Any]:
    return {"manager": "SaleManager", **arguments}


_MIDDLE: Final = """
    SELECT status, avg(price) FROM (
      SELECT status, price, row_number() OVER (PARTITION BY status ORDER BY price) AS place,
        count(*) OVER (PARTITION BY status) AS many FROM store_sale) m
    WHERE place IN ((many + 1) / 2, (many + 2) / 2) GROUP BY status ORDER BY status
"""
SUMS: Final = (
    Sum(
        "all in all",
        _of_sales(measures={"n": "count()", "revenue": "sum(price * quantity)"}),
        "SELECT count(*), sum(price * quantity) FROM store_sale",
    ),
    Sum(
        "per status",
        _of_sales(
            group_by=["status"],
            measures={"n": "count()", "revenue": "sum(price * quantity)", "mean": "avg(price)", "most": "max(price)"},
            order_by=["-revenue"],
        ),
        """SELECT status, count(*), sum(price * quantity), avg(price), max(price) FROM store_sale
        GROUP BY status ORDER BY 3 DESC""",
    ),
    Sum(
        "per month",
        _of_sales(group_by=["sold_on__month"], measures={"revenue": "sum(price * quantity)"}),
        "SELECT {month}, sum(price * quantity) FROM store_sale s GROUP BY 1 ORDER BY 1",
    ),
    Sum(
        "per year and weekday",
        _of_sales(group_by=["sold_on__year", "sold_on__weekday"], measures={"n": "count()"}),
        "SELECT {year}, {weekday}, count(*) FROM store_sale s GROUP BY 1, 2 ORDER BY 1, 2",
    ),
    Sum(
        "per region, over a relation",
        _of_sales(
            group_by=["customer__region"],
            measures={"revenue": "sum(price * quantity)", "buyers": "count(distinct customer__id)"},
        ),
        """SELECT c.region, sum(s.price * s.quantity), count(DISTINCT c.id)
        FROM store_sale s JOIN store_customer c ON c.id = s.customer_id GROUP BY c.region ORDER BY c.region""",
    ),
    Sum(
        "ten best customers of a year",
        _of_sales(
            group_by=["customer__name"],
            measures={"revenue": "sum(price * quantity)"},
            filters={"sold_on__year": 2024},
            order_by=["-revenue"],
            limit=10,
        ),
        """SELECT c.name, sum(s.price * s.quantity) FROM store_sale s JOIN store_customer c ON c.id = s.customer_id
        WHERE s.sold_on BETWEEN '2024-01-01' AND '2024-12-31' GROUP BY c.name ORDER BY 2 DESC, 1 LIMIT 10""",
    ),
    Sum(
        "rates: measures with filters of their own",
        _of_sales(
            group_by=["customer__region"],
            measures={
                "returned": {"formula": "count()", "where": {"status": "returned"}},
                "rate": "returned / count()",
            },
        ),
        """SELECT c.region, count(CASE WHEN s.status = 'returned' THEN 1 END),
        count(CASE WHEN s.status = 'returned' THEN 1 END) {float} / count(*)
        FROM store_sale s JOIN store_customer c ON c.id = s.customer_id GROUP BY c.region ORDER BY c.region""",
    ),
    Sum(
        "shares and ranks",
        _of_sales(
            group_by=["customer__region"],
            measures={"revenue": "sum(price)", "share": "share(revenue)", "place": "rank(revenue)"},
            order_by=["place"],
        ),
        """SELECT region, revenue, revenue {float} / sum(revenue) OVER (), rank() OVER (ORDER BY revenue DESC) FROM (
        SELECT c.region, sum(s.price) AS revenue FROM store_sale s JOIN store_customer c ON c.id = s.customer_id
        GROUP BY c.region) t ORDER BY 4, 1""",
    ),
    Sum(
        "days between dates",
        _of_sales(group_by=["status"], measures={"days": "avg(paid_on - sold_on)"}),
        "SELECT status, avg({days}) FROM store_sale s GROUP BY status ORDER BY status",
        {
            "postgresql": """SELECT status, avg(({days})::double precision) FROM store_sale s
            GROUP BY status ORDER BY status""",
        },
    ),
    Sum(
        "having",
        _of_sales(
            group_by=["customer__id"],
            measures={"n": "count()", "revenue": "sum(price)"},
            filters={"price__gt": "50"},
            having={"revenue__gt": 20_500},
            order_by=["-revenue"],
            limit=20,
        ),
        """SELECT customer_id, count(*), sum(price) FROM store_sale WHERE price > 50 GROUP BY customer_id
        HAVING sum(price) > 20500 ORDER BY 3 DESC, 1 LIMIT 20""",
    ),
    Sum(
        "medians",
        _of_sales(group_by=["status"], measures={"median": "median(price)"}),
        _MIDDLE,
        {
            "postgresql": """SELECT status, percentile_cont(0.5) WITHIN GROUP (ORDER BY price::double precision)
            FROM store_sale GROUP BY status ORDER BY status""",
            "mysql": _MIDDLE.replace("/ 2", "div 2"),
        },
    ),
    Sum(
        "behind each customer",
        {"manager": "CustomerManager", "group_by": ["region"], "measures": {"spent": "avg(sum(sales__price))"}},
        """SELECT region, avg(spent) FROM (
        SELECT c.id, c.region, sum(s.price) AS spent FROM store_customer c
        LEFT JOIN store_sale s ON s.customer_id = c.id GROUP BY c.id, c.region) t GROUP BY region ORDER BY region""",
        has_target=False,  # a subselect for each customer: right for few of them, which a join of sums is not
    ),
)
