"""The project's own gate: the setting ``permission``. (Specification: "Top-level chat settings".)"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import AnonymousUser

from gm_chat.persistence.threads import run_db
from gm_chat.plugin import Action, Actor, Decision

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["PermissionSetting"]


class PermissionSetting:
    """Asks ``permission(user, scope)`` when somebody connects, sends a message or confirms; ``False`` denies.

    The callable may be sync, and is then called off the event loop where it may use the ORM, or async. Nobody logged
    in is Django's ``AnonymousUser``. What it raises denies, as for every permission check.
    """

    def __init__(self, permission: Callable[..., Any]) -> None:
        self._permission = permission

    async def check(self, action: Action, actor: Actor, context: Mapping[str, Any]) -> Decision:
        """Deny on ``False``; any other answer leaves the decision to the other checks."""
        if action.kind not in {"connect", "message", "confirm"}:
            return Decision.abstain()
        user = AnonymousUser() if actor.user is None else actor.user
        scope = context.get("scope", {})
        if inspect.iscoroutinefunction(self._permission):
            answer = await self._permission(user, scope)
        else:
            answer = await run_db(self._permission, user, scope)
            if inspect.isawaitable(answer):  # an object whose __call__ is async, or a partial of an async function
                answer = await answer
        return Decision.deny("the chat's `permission` setting said no") if answer is False else Decision.abstain()
