"""Whose conversation it is: a user's, or an anonymous session's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gm_chat.persistence.rows import sha256_hex
from gm_chat.plugin.context import Actor

if TYPE_CHECKING:
    from gm_chat.models import ChatConversation

__all__ = ["Owner", "actor_of", "owner_of"]

SESSION_KEY_LENGTH: Final = 64


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner's columns in a conversation row, and the digest that stands for the owner everywhere else.

    ``key`` is the ``current_key`` of the current conversation and the ``owner_key`` of turns and confirmations.
    """

    user_id: str | None
    session_key: str | None
    key: str


def owner_of(actor: Actor) -> Owner | None:
    """Say who owns the actor's conversations; ``None`` for an actor with neither user nor session, who owns none."""
    if actor.user_id is None and not actor.session_key:
        return None
    # A digest has one length and one case: MariaDB compares text without regard to case, users' ids may differ by it.
    key = sha256_hex(actor.key)
    if actor.user_id is not None:
        return Owner(actor.user_id, None, key)
    session = actor.session_key or ""
    return Owner(None, session if len(session) <= SESSION_KEY_LENGTH else sha256_hex(session), key)


def actor_of(conversation: ChatConversation) -> Actor:
    """The owner as an actor, as far as the row knows: no address, and of a long session key the digest."""
    if conversation.user is not None:
        return Actor(user_id=str(conversation.user.pk), user=conversation.user)
    return Actor(session_key=conversation.session_key)
