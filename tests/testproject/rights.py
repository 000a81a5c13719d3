"""Actors with rights drawn at random: hidden managers, fields, relations, and rows by rules of every kind."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db.models import Count, Exists, OuterRef

from gm_chat.managers import registry
from testproject.desk import Desk, actor_of
from testproject.hard_rows import add_hard_rows
from testproject.shop import models as shop
from testproject.shop_rows import fill_shop
from testproject.walk import REMOVABLE, RULES, hiding

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from django.db.models import QuerySet

    from gm_chat.managers.binding import Binding, VisibleTo
    from gm_chat.plugin import Actor

__all__ = ["desk_of"]

_ANY: list[Callable[[QuerySet[Any]], QuerySet[Any]]] = [
    lambda rows: rows.order_by("-pk")[:7],
    lambda rows: rows.order_by("pk")[3:30],
    lambda rows: rows.distinct(),
    lambda rows: rows.none(),
]
_MORE: dict[str, list[Callable[[QuerySet[Any]], QuerySet[Any]]]] = {
    "PartManager": [
        lambda rows: rows.exclude(tags__name="tag 1"),
        lambda rows: rows.annotate(uses=Count("bomline")).filter(uses__gte=1),
        lambda rows: rows.filter(Exists(shop.Document.objects.filter(part=OuterRef("pk"), confidential=False))),
        lambda rows: rows.filter(material__name__in=["material 0", "material 2"], supplier__isnull=False),
    ],
    "OrderManager": [lambda rows: rows.filter(status="open"), lambda rows: rows.filter(lines__quantity__gt=3)],
    "OrderLineManager": [lambda rows: rows.filter(order__customer="Acme")],
    "EmployeeManager": [lambda rows: rows.filter(boss__salary__gte=1000)],
    "MaterialManager": [lambda rows: rows.filter(parts__status="draft").distinct()],
}


def desk_of(number: int) -> Desk:
    """Fill the shop with rows, odd ones among them, and make somebody who asks.

    0 may see everything, 1 what staff may not hide from others, 2 what the rules leave, the others what chance does.
    """
    users = fill_shop()
    add_hard_rows()
    users["plain"].user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    known = registry.bindings()
    match number:
        case 0:
            return Desk(known, actor_of(users["staff"]))
        case 1:
            return Desk(known, actor_of(users["plain"]))
        case 2:
            return Desk(hiding(known), actor_of(users["staff"]))
    return _random_desk(number, known)


def _random_desk(seed: int, known: Mapping[str, Binding]) -> Desk:
    random_ = random.Random(seed)  # noqa: S311 - reproducible
    user = get_user_model().objects.create_user(f"somebody {seed}")
    rights = Permission.objects.filter(content_type__app_label="shop").order_by("codename")
    user.user_permissions.set([right for right in rights if random_.random() < 0.85])
    return Desk({name: _narrowed(known[name], random_) for name in sorted(known)}, actor_of(user))


def _narrowed(binding: Binding, random_: random.Random) -> Binding:
    name = binding.info.name
    rules = [*_ANY, *_MORE.get(name, ()), *(rules[name] for rules in (RULES, REMOVABLE) if name in rules)]
    visible_to = _rule(random_.choice(rules)) if random_.random() < 0.5 else binding.visible_to
    fields = [item.name for item in binding.info.fields]
    hidden = {item for item in fields if random_.random() < 0.25}
    hidden |= {item.name for item in binding.info.relations if random_.random() < 0.2}
    if not any(item.lookups and item.name not in hidden for item in _usual(binding)):
        hidden.discard(random_.choice([item.name for item in _usual(binding)]))  # something to ask for
    return replace(binding, visible_to=visible_to, visible_fields=_without(hidden))


def _usual(binding: Binding) -> list[Any]:
    return [item for item in binding.info.fields if item.type in ("string", "boolean", "integer")]


def _rule(rule: Callable[[QuerySet[Any]], QuerySet[Any]]) -> VisibleTo:
    return lambda rows, actor: rule(rows)


def _without(hidden: set[str]) -> Callable[[frozenset[str], Actor], Collection[str]]:
    return lambda names, actor: names - hidden
