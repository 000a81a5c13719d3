"""One shop, three GraphQL schemas: the same tables, the same hidden rows, three libraries."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet


def parts_for(user: Any, rows: QuerySet[Any]) -> QuerySet[Any]:
    """Staff sees every part, others no drafts."""
    return rows if getattr(user, "is_staff", False) else rows.exclude(status="draft")


def suppliers_for(user: Any, rows: QuerySet[Any]) -> QuerySet[Any]:
    """Staff sees every supplier, others no badly rated ones."""
    return rows if getattr(user, "is_staff", False) else rows.filter(Q(rating__gte=2) | Q(rating=None))
