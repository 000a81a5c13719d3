"""Ten questions with known right answers, each computed from the tables by the ORM, past the chat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from gm_chat.demo.judge import Expected
from gm_chat.demo.models import BomLine, Material, Order, Part, Project, Supplier

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["QUESTIONS", "Question"]


@dataclass(frozen=True, slots=True)
class Question:
    """Who asks, on which transport, and what is right. ``user`` is ``None`` for somebody who is not logged in."""

    user: str | None
    way: Literal["http", "sse"]
    text: str
    expected: Callable[[], Expected]


def _count_parts() -> Expected:
    return Expected((str(Part._default_manager.count()),))


def _aluminium_parts() -> Expected:
    return Expected((str(Part._default_manager.filter(material__category="aluminium").count()),))


def _open_orders_of_acme() -> Expected:
    return Expected((str(Order._default_manager.filter(customer__name__startswith="Acme", status="open").count()),))


def _suppliers_in_germany() -> Expected:
    return Expected(tuple(Supplier._default_manager.filter(country="Germany").values_list("name", flat=True)))


def _no_suppliers() -> Expected:
    return Expected(lacks=tuple(Supplier._default_manager.values_list("name", flat=True)), queried=False)


def _five_most_expensive() -> Expected:
    return Expected(tuple(Part._default_manager.order_by("-price")[:5].values_list("number", flat=True)), in_order=True)


def _density_of_titanium() -> Expected:
    return Expected((str(Material._default_manager.get(name="Titanium Ti-6Al-4V").density),))


def _projects_with_bearing() -> Expected:
    lines = BomLine._default_manager.filter(part__number=BEARING).select_related("assembly__project")
    using = {line.assembly.project.code for line in lines}
    others = Project._default_manager.exclude(code__in=using).values_list("code", flat=True)
    return Expected(tuple(sorted(using)), tuple(others))


def _projects_for_viewers() -> Expected:
    shown = Project._default_manager.filter(confidential=False).count()
    return Expected((str(shown),), (str(Project._default_manager.count()),))


def _nothing_for_strangers() -> Expected:
    return Expected(lacks=(str(Part._default_manager.count()),), queried=False)


BEARING: Final = "BRG-10066"

QUESTIONS: Final = (
    Question("engineer", "http", "How many parts do we have?", _count_parts),
    Question("engineer", "sse", "Which parts use aluminium?", _aluminium_parts),
    Question("sales", "http", "How many open orders has Acme?", _open_orders_of_acme),
    Question("engineer", "sse", "List suppliers in Germany", _suppliers_in_germany),
    Question("sales", "http", "List suppliers in Germany", _no_suppliers),
    Question("engineer", "sse", "Show the five most expensive parts", _five_most_expensive),
    Question("viewer", "http", "What is the density of Titanium Ti-6Al-4V?", _density_of_titanium),
    Question("engineer", "http", f"Which projects use part {BEARING}?", _projects_with_bearing),
    Question("viewer", "sse", "How many projects do we have?", _projects_for_viewers),
    Question(None, "http", "How many parts do we have?", _nothing_for_strangers),
)
