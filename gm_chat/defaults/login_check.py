"""Changes need a login. (Specification: "Chat tools", mutations.)"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gm_chat.plugin import Action, Actor, Decision

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LoginCheck"]


class LoginCheck:
    """Denies mutations to everyone who is not logged in, and has no opinion on anything else."""

    async def check(self, action: Action, actor: Actor, context: Mapping[str, Any]) -> Decision:
        """Answer by the actor alone."""
        del context
        if action.kind == "mutation" and not actor.is_authenticated:
            return Decision.deny(f"{action.name} needs a logged-in user")
        return Decision.abstain()
