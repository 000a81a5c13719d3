"""Read-only pages for operators: what was asked, what the tools did, what went wrong and what waits.

Nothing imports this module but the autodiscovery of ``django.contrib.admin``, where that is installed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import Count
from django.utils.html import format_html

from gm_chat.models import ChatConversation, ChatMessage, ChatPendingConfirmation, ChatTurn, ChatUsage
from gm_chat.persistence.lapsed import end_lapsed
from gm_chat.persistence.ledger import kept_of, used_of
from gm_chat.persistence.segments import whole_log
from gm_chat.prices import cost_of
from gm_chat.settings import get_chat_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import Model, QuerySet
    from django.http import HttpRequest

    # Generic for type checkers only.
    ModelAdmin = admin.ModelAdmin[Any]
    StackedInline = admin.StackedInline[Any, Any]
    TabularInline = admin.TabularInline[Any, Any]
else:
    ModelAdmin, StackedInline, TabularInline = admin.ModelAdmin, admin.StackedInline, admin.TabularInline

__all__ = ["ConfirmationAdmin", "ConversationAdmin", "TurnAdmin", "UsageAdmin"]


class ReadOnly:
    """History is the record of what happened: no page changes it, and ``chat_cleanup`` ends it."""

    def has_add_permission(self, *_: Any, **__: Any) -> bool:
        """Nobody adds rows by hand."""
        return False

    def has_change_permission(self, *_: Any, **__: Any) -> bool:
        """Nobody changes rows; the view permission shows them."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Deny it on the chat's own pages only: a user's deletion takes conversations along, and asks here too."""
        match = request.resolver_match
        if match is None or (match.url_name or "").startswith("gm_chat_"):
            return False
        return bool(super().has_delete_permission(request, obj))  # type: ignore[misc]  # the next class is an admin


def indented(name: str) -> Callable[[Any, Model], str]:
    """A method that shows a JSON field over several lines."""

    @admin.display(description=name.replace("_", " "))
    def show(_: Any, row: Model) -> str:
        return pretty(getattr(row, name))

    return show


def pretty(value: Any) -> str:
    """JSON over several lines."""
    return format_html("<pre>{}</pre>", json.dumps(value, indent=2, ensure_ascii=False)) if value else "-"


class MessageInline(ReadOnly, StackedInline):
    """The conversation as it went."""

    model = ChatMessage
    calls, args, result = indented("tool_calls"), indented("tool_args"), indented("tool_result")
    fields = (("role", "created", "turn"), "content", "tool_name", "calls", "args", "result")
    readonly_fields = ("created", "calls", "args", "result")
    ordering = ("pk",)
    extra = 0


class TurnInline(ReadOnly, TabularInline):
    """The conversation's turns, with links to their events."""

    model = ChatTurn
    fields = readonly_fields = ("id", "state", "error_code", "usage", "created", "finished")
    ordering = ("created",)
    show_change_link = True
    extra = 0


@admin.register(ChatConversation)
class ConversationAdmin(ReadOnly, ModelAdmin):
    """Who talked when, and about what."""

    list_display = ("id", "owner", "current", "message_count", "created", "updated")
    list_select_related = ("user",)
    ordering = ("-updated",)
    date_hierarchy = "updated"
    fields = readonly_fields = ("owner", "current", "created", "updated", "summary_text", "summary_updated_at")
    inlines = (TurnInline, MessageInline)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Count the messages in the same statement; a search joins them once more, hence distinct."""
        rows: QuerySet[Any] = super().get_queryset(request).annotate(message_count=Count("messages", distinct=True))
        return rows

    def get_search_fields(self, *_: Any) -> tuple[str, ...]:
        """Search by the name that users log in with, and by what was said."""
        return f"user__{get_user_model().USERNAME_FIELD}", "messages__content"

    @admin.display(description="owner")
    def owner(self, row: ChatConversation) -> str:
        """The user, or a hint of the session: a whole key would let a reader take the session over."""
        return str(row.user) if row.user is not None else f"session {(row.session_key or '')[:6]}…"

    @admin.display(description="current", boolean=True)
    def current(self, row: ChatConversation) -> bool:
        """Whether the owner's next message continues it."""
        return row.is_current

    @admin.display(description="messages", ordering="message_count")
    def message_count(self, row: Any) -> int:
        """How many rows it has, as annotated by :meth:`get_queryset`."""
        return int(row.message_count)


@admin.register(ChatTurn)
class TurnAdmin(ReadOnly, ModelAdmin):
    """What became of each message; failures by code."""

    list_display = ("id", "conversation", "state", "error_code", "models", "usage", "cost", "created", "finished")
    list_filter = ("state", "error_code")
    list_select_related = ("conversation",)
    ordering = ("-created",)
    date_hierarchy = "created"
    search_fields = ("id",)
    fields = readonly_fields = (
        "id", "conversation", "state", "error_code", "created", "alive_until", "cancel_requested", "finished", "usage",
        "spent", "cost", "log",
    )  # fmt: skip

    @admin.display(description="models")
    def models(self, row: ChatTurn) -> str:
        """Which models worked for it."""
        return ", ".join(row.spent) or "-"

    @admin.display(description="cost")
    def cost(self, row: ChatTurn) -> str:
        """What it cost by the setting ``prices``, as far as all of that is known."""
        prices = get_chat_settings().prices
        costs = [cost_of(model, used_of(counts), prices) for model, counts in row.spent.items()]
        known = [cost for cost in costs if cost is not None]
        return f"{sum(known):.6f}" if costs and len(known) == len(costs) else "-"

    @admin.display(description="events")
    def log(self, row: ChatTurn) -> str:
        """All events, those in segments included."""
        return pretty(whole_log(row))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """A turn whose process died does not read as running: it is ended by whoever looks."""
        end_lapsed()
        return super().get_queryset(request)


@admin.register(ChatUsage)
class UsageAdmin(ReadOnly, ModelAdmin):
    """What conversations that were deleted had used; ``manage.py chat_usage`` adds up these and the others."""

    list_display = (
        "day", "actor", "conversation", "model", "turns", "unreported", "input_tokens", "cached_tokens",
        "output_tokens", "cost",
    )  # fmt: skip
    list_filter = ("model",)
    ordering = ("-day", "actor")
    date_hierarchy = "day"
    search_fields = ("actor",)

    @admin.display(description="cost")
    def cost(self, row: ChatUsage) -> str:
        """What it cost by the setting ``prices``, where that is known."""
        cost = cost_of(row.model, kept_of(row), get_chat_settings().prices)
        return "-" if cost is None else f"{cost:.6f}"


@admin.register(ChatPendingConfirmation)
class ConfirmationAdmin(ReadOnly, ModelAdmin):
    """Which changes wait, or waited, for their owner's word, and which have an unknown outcome."""

    list_display = ("confirmation_id", "mutation_name", "state", "conversation", "created", "expires_at", "resolved_at")
    list_filter = ("state", "mutation_name")
    list_select_related = ("conversation",)
    ordering = ("-created",)
    search_fields = ("confirmation_id",)
    shown = indented("preview")
    fields = readonly_fields = (
        "confirmation_id", "mutation_name", "state", "conversation", "turn", "payload", "payload_sha256", "shown",
        "progress", "created", "expires_at", "lease_until", "resolved_at",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """A claim whose lease is over reads as unknown: it is stored so by whoever looks."""
        end_lapsed()
        return super().get_queryset(request)
