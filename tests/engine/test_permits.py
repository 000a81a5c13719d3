from __future__ import annotations

from typing import Any

from gm_chat.engine.permits import PermittedManagers
from gm_chat.plugin.context import Actor, TurnContext
from gm_chat.testing.services import OWNER, MemoryServices


class Managers:
    """A manager service that notes whose view is asked for."""

    def __init__(self) -> None:
        self.asked: list[Actor] = []

    async def view(self, actor: Actor) -> Any:
        self.asked.append(actor)
        return object()


async def test_what_the_turn_s_actor_sees_is_worked_out_once_and_nobody_else_gets_it() -> None:
    managers, other = Managers(), Actor("8")
    services: Any = MemoryServices(managers=managers)  # type: ignore[arg-type]  # nothing but the view is asked for
    permitted = PermittedManagers(services, TurnContext("t1", None, OWNER, "Hi", "http"))
    own = [await permitted.view(OWNER) for _ in range(2)]
    assert own[0] is own[1]
    assert await permitted.view(other) is not own[0]
    assert managers.asked == [OWNER, other]
