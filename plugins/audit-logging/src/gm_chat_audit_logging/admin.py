"""A read-only page for auditors. Nothing imports this module but the autodiscovery of ``django.contrib.admin``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.utils.html import format_html

from gm_chat_audit_logging.models import AuditRecord

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[AuditRecord]  # generic for type checkers only
else:
    ModelAdmin = admin.ModelAdmin

__all__ = ["AuditRecordAdmin"]


@admin.register(AuditRecord)
class AuditRecordAdmin(ModelAdmin):
    """Events can be found and read; ``chat_audit_cleanup`` alone ends them."""

    list_display = ("created", "event_type", "actor", "turn_id")
    list_filter = ("event_type",)
    search_fields = ("=actor", "=turn_id")
    date_hierarchy = "created"
    fields = ("created", "event_type", "actor", "turn_id", "event_in_lines")
    readonly_fields = fields
    show_full_result_count = False

    @admin.display(description="event")
    def event_in_lines(self, record: AuditRecord) -> str:
        """The event's JSON, indented."""
        return format_html("<pre>{}</pre>", json.dumps(record.data, indent=2, ensure_ascii=False))

    def has_add_permission(self, *_: Any, **__: Any) -> bool:
        """Nobody adds rows by hand."""
        return False

    def has_change_permission(self, *_: Any, **__: Any) -> bool:
        """Nobody changes rows; the view permission shows them."""
        return False

    def has_delete_permission(self, *_: Any, **__: Any) -> bool:
        """Nobody deletes rows by hand."""
        return False
