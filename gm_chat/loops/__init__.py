"""Ways to work a turn: each is a function from a :class:`~gm_chat.engine.state.TurnState` to its events."""

from gm_chat.loops.legacy import legacy_loop
from gm_chat.loops.planned import planned_loop

__all__ = ["legacy_loop", "planned_loop"]
