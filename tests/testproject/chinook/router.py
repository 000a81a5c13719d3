"""Chinook lies in a database of its own, read-only; nothing else goes there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.db.models import Model

ALIAS = "chinook"


class ChinookRouter:
    """Send the app's models to the alias that the Chinook tests add; keep migrations away from it."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        return ALIAS if model._meta.app_label == "chinook" else None

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        return False if db == ALIAS else None
