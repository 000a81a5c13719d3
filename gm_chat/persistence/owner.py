"""Whose conversation it is: a user's, or an anonymous session's."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gm_chat.plugin.context import Actor

__all__ = ["Owner", "owner_of"]

SESSION_KEY_LENGTH: Final = 64


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner's columns in a conversation row, and the value of ``current_key`` in the current one."""

    user_id: str | None
    session_key: str | None
    current_key: str


def owner_of(actor: Actor) -> Owner | None:
    """Say who owns the actor's conversations; ``None`` for an actor with neither user nor session, who owns none."""
    if actor.user_id is None and not actor.session_key:
        return None
    # A digest has one length and one case: MariaDB compares text without regard to case, users' ids may differ by it.
    current_key = _sha256(actor.key)
    if actor.user_id is not None:
        return Owner(actor.user_id, None, current_key)
    key = actor.session_key or ""
    return Owner(None, key if len(key) <= SESSION_KEY_LENGTH else _sha256(key), current_key)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
