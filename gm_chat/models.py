"""What the chat keeps: conversations, their messages, turns and pending confirmations; counts and usage.

Only ``gm_chat.persistence`` writes these rows. (Specification: "Persistence and cleanup".)

Uniqueness rests on ordinary unique columns, never on partial constraints: MariaDB has none, while NULLs are distinct
in a unique column on SQLite, PostgreSQL and MariaDB alike.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

__all__ = [
    "ChatConversation",
    "ChatEventSegment",
    "ChatMessage",
    "ChatPendingConfirmation",
    "ChatRateCount",
    "ChatTurn",
    "ChatUsage",
]


class ChatConversation(models.Model):
    """A conversation of one user or of one anonymous session. An actor may own many; at most one is current."""

    id = models.BigAutoField(primary_key=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    session_key = models.CharField(
        max_length=64, null=True, blank=True, help_text="Session key; its SHA-256 when it is longer than the column."
    )
    current_key = models.CharField(
        max_length=64,
        null=True,
        blank=True,
        unique=True,
        editable=False,
        help_text="SHA-256 of the actor's key while the conversation is the actor's current one, else empty.",
    )
    summary_text = models.TextField(blank=True, default="")
    summary_updated_at = models.DateTimeField(null=True, blank=True)
    summarized_through = models.ForeignKey(
        "ChatMessage",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The last message that the summary covers.",
    )
    summary_tried_through = models.BigIntegerField(
        null=True, blank=True, editable=False, help_text="The newest message when a summary was last asked for."
    )
    created = models.DateTimeField(auto_now_add=True)
    updated = models.DateTimeField(help_text="When the last message or approval was accepted; cleanup goes by it.")

    class Meta:
        verbose_name = "conversation"
        constraints: ClassVar = [
            models.CheckConstraint(
                # Neither is a state on the way: where foreign keys are checked at once, as on MariaDB, Django takes the
                # user out of the row before it deletes both.
                name="gm_chat_conversation_one_owner",
                condition=Q(user__isnull=True) | Q(session_key__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return f"conversation {self.pk}"

    @property
    def is_current(self) -> bool:
        """Whether the owner's next message continues this conversation."""
        return self.current_key is not None


class ChatTurn(models.Model):
    """One accepted message and what became of it.

    ``active_key`` lets the database refuse an owner's second turn, and ``owner_key`` with ``request_key`` a repeated
    request: both surface as an IntegrityError of the one INSERT that accepts a message.
    """

    class State(models.TextChoices):
        """``running``, then one of the states of :class:`gm_chat.plugin.TurnOutcome`; a paused turn runs again."""

        RUNNING = "running"
        PAUSED = "paused"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    id = models.CharField(primary_key=True, max_length=64)
    conversation = models.ForeignKey(ChatConversation, on_delete=models.CASCADE, related_name="turns")
    state = models.CharField(max_length=16, choices=State.choices, default=State.RUNNING)
    error_code = models.CharField(
        max_length=64, blank=True, default="", help_text="The public code of a turn that failed."
    )
    usage = models.JSONField(null=True, blank=True, help_text="Token counts; empty when the provider reported none.")
    spent = models.JSONField(
        default=dict, blank=True, help_text="The same by provider and model, each with whether it was reported."
    )
    events = models.JSONField(
        default=list, blank=True, help_text="The turn's events in order, for replay: of a long turn the first ones."
    )
    owner_key = models.CharField(max_length=64, editable=False, help_text="SHA-256 of the actor's key.")
    active_key = models.CharField(
        max_length=64,
        null=True,
        blank=True,
        unique=True,
        editable=False,
        help_text="The owner's key while the turn is running or paused, else empty.",
    )
    alive_until = models.DateTimeField(
        null=True, blank=True, help_text="A running turn that is not renewed by then has lost its process."
    )
    request_key = models.CharField(
        max_length=64, null=True, blank=True, editable=False, help_text="SHA-256 of the client's idempotency key."
    )
    request_sha256 = models.CharField(max_length=64, blank=True, default="", editable=False)
    cancel_requested = models.BooleanField(default=False)
    followed_at = models.DateTimeField(
        null=True, blank=True, help_text="When another process last read the turn for its owner."
    )
    created = models.DateTimeField(auto_now_add=True)
    finished = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "turn"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["owner_key", "request_key"], name="gm_chat_turn_request_once")
        ]

    def __str__(self) -> str:
        return f"turn {self.pk} ({self.state})"


class ChatEventSegment(models.Model):
    """Some more events of a turn, after those in its row: what was new when a long turn was shown once more.

    Segments are added and never changed; their numbers leave no gap.
    """

    id = models.BigAutoField(primary_key=True)
    # The constraint's index starts with the column and serves the foreign key too.
    turn = models.ForeignKey(ChatTurn, on_delete=models.CASCADE, related_name="segments", db_index=False)
    first_seq = models.PositiveIntegerField(help_text="The number of its first event in the turn's log.")
    last_seq = models.PositiveIntegerField()
    events = models.JSONField()

    class Meta:
        verbose_name = "event segment"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["turn", "first_seq"], name="gm_chat_event_segment_once")
        ]

    def __str__(self) -> str:
        return f"events {self.first_seq} to {self.last_seq} of turn {self.turn_id}"


class ChatMessage(models.Model):
    """One row of history; rows of a conversation are ordered by ``id``.

    ``parent`` makes the rows a tree of turns: a user's message follows the last message of the branch that it
    continues, and everything that answers it has that user's message as its parent.
    """

    class Role(models.TextChoices):
        """Who speaks."""

        USER = "user"
        ASSISTANT = "assistant"
        TOOL = "tool"

    id = models.BigAutoField(primary_key=True)
    # The index below starts with the column and serves the foreign key too.
    conversation = models.ForeignKey(
        ChatConversation, on_delete=models.CASCADE, related_name="messages", db_index=False
    )
    turn = models.ForeignKey(ChatTurn, on_delete=models.CASCADE, related_name="messages")
    parent = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="children")
    role = models.CharField(max_length=16, choices=Role.choices)
    content = models.TextField(blank=True, default="")
    # Names and ids of calls come from models, which keep to no length.
    tool_name = models.TextField(blank=True, default="")
    tool_args = models.JSONField(null=True, blank=True)
    tool_result = models.JSONField(null=True, blank=True)
    tool_calls = models.JSONField(default=list, blank=True, help_text="The calls of an assistant row: id, name, args.")
    tool_call_id = models.TextField(blank=True, default="")
    provider = models.CharField(max_length=255, blank=True, default="")
    metadata = models.JSONField(default=dict, blank=True, help_text="Opaque; returned to the same provider only.")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "message"
        indexes: ClassVar = [models.Index(fields=["conversation", "id"], name="gm_chat_message_window")]

    def __str__(self) -> str:
        return f"message {self.pk} ({self.role})"


class ChatPendingConfirmation(models.Model):
    """A mutation that waits, or waited, for its owner's word.

    Confirmation ids are minted here and never used twice, so one row per conversation and id implies at most one
    unresolved row.
    """

    class State(models.TextChoices):
        """``pending``, then ``rejected``, ``expired`` or ``claimed``; a claim ends in one of the last three."""

        PENDING = "pending"
        REJECTED = "rejected"
        EXPIRED = "expired"
        CLAIMED = "claimed"
        EXECUTED = "executed"
        FAILED = "failed"
        UNKNOWN = "unknown", "unknown outcome"

    id = models.BigAutoField(primary_key=True)
    conversation = models.ForeignKey(ChatConversation, on_delete=models.CASCADE, related_name="confirmations")
    turn = models.ForeignKey(ChatTurn, on_delete=models.CASCADE, related_name="confirmations")
    owner_key = models.CharField(max_length=64, editable=False, help_text="SHA-256 of the actor's key.")
    confirmation_id = models.CharField(max_length=64)
    state = models.CharField(max_length=16, choices=State.choices, default=State.PENDING)
    mutation_name = models.CharField(max_length=255)
    payload = models.TextField(
        help_text="The arguments exactly as they will run, as JSON text: a JSON column may change numbers."
    )
    payload_sha256 = models.CharField(max_length=64)
    preview = models.JSONField(
        null=True, blank=True, help_text="What its owner was shown: it runs only if the old values in it still hold."
    )
    progress = models.JSONField(default=dict, help_text="What the turn had used of its limits when it paused.")
    expires_at = models.DateTimeField(db_index=True)
    lease_until = models.DateTimeField(
        null=True, blank=True, help_text="A claim without an outcome by then has an unknown one."
    )
    resolved_at = models.DateTimeField(null=True, blank=True)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "pending confirmation"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["conversation", "confirmation_id"], name="gm_chat_confirmation_once")
        ]
        indexes: ClassVar = [models.Index(fields=["owner_key", "confirmation_id"], name="gm_chat_confirmation_owner")]

    def __str__(self) -> str:
        return f"confirmation {self.confirmation_id} of {self.mutation_name} ({self.state})"


class ChatRateCount(models.Model):
    """What was used of one budget in its newest window; a row of the rate-limit store ``database``."""

    key = models.CharField(primary_key=True, max_length=120, help_text="Window length, whose digest, and what counts.")
    window_ends = models.BigIntegerField(db_index=True, help_text="Seconds since 1970.")
    used = models.BigIntegerField()

    class Meta:
        verbose_name = "rate count"

    def __str__(self) -> str:
        return f"{self.used} of {self.key}"


class ChatUsage(models.Model):
    """What a conversation that was deleted had used of one model on one day. It outlives the conversation's user."""

    id = models.BigAutoField(primary_key=True)
    day = models.DateField(db_index=True)
    actor = models.CharField(max_length=255, help_text="user:<id>, or a mark of an anonymous session.")
    conversation = models.BigIntegerField(help_text="The number that the conversation had.")
    model = models.CharField(max_length=255, help_text="Provider and model.")
    turns = models.PositiveIntegerField()
    unreported = models.PositiveIntegerField(help_text="Turns of which the provider did not report all.")
    input_tokens = models.BigIntegerField(null=True, help_text="Empty when nothing was reported.")
    cached_tokens = models.BigIntegerField(null=True, help_text="Part of the input tokens.")
    output_tokens = models.BigIntegerField(null=True)

    class Meta:
        verbose_name = "usage of a deleted conversation"
        verbose_name_plural = "usage of deleted conversations"

    def __str__(self) -> str:
        return f"{self.model} on {self.day}"
