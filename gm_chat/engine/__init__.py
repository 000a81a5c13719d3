"""One turn: from a user's message to its last event. No transport, no SDK, no Django.

``run_turn`` is the only place where a turn happens, ``TurnRunner`` the only thing that runs it. What a turn needs
from outside are the protocols of :mod:`gm_chat.engine.ports`; how it works the model is a loop of ``gm_chat.loops``.
"""

from gm_chat.engine.runner import TurnRunner, UnknownTurnError
from gm_chat.engine.turn import run_turn

__all__ = ["TurnRunner", "UnknownTurnError", "run_turn"]
