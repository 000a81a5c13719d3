"""GeneralManager's desk beside those of the other sources, and users whose rights are alike in all of them."""

from __future__ import annotations

from typing import Any

from desks import Desk, actor_of
from django.contrib.auth.models import Permission
from gm_chat_source_general_manager import Options
from gm_chat_source_general_manager.source import GeneralManagerSource
from testproject.shop_rows import fill_shop

SHOWN = {  # what the other sources show of these tables
    "Part": (
        *("id", "number", "name", "status", "price", "weight", "purchased", "released_on", "created_at"),
        *("material", "supplier", "tags"),
    ),
    "Supplier": ("id", "name", "country", "rating", "parts"),
    "Material": ("id", "name", "density", "parts"),
    "Tag": ("id", "name", "parts"),
}


def gm_source(**options: Any) -> GeneralManagerSource:
    return GeneralManagerSource(Options(**options))


def desk(user: Any, **options: Any) -> Desk:
    return Desk(gm_source(**options), actor_of(user))


def alike_desk(user: Any) -> Desk:
    """One that shows just what the other sources do."""
    return desk(user, managers={name: {"fields": fields} for name, fields in SHOWN.items()})


def fill() -> dict[str, Any]:
    """The shop's rows. Django's own permissions, which GeneralManager does not know, let everybody do everything."""
    users = fill_shop()
    users["staff"].is_superuser = False  # GeneralManager asks superusers nothing
    users["staff"].is_staff = True
    users["staff"].save()
    for user in users.values():
        user.user_permissions.set(Permission.objects.filter(content_type__app_label="shop"))
    return {name: type(user).objects.get(pk=user.pk) for name, user in users.items()}
