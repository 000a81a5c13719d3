"""One turn: from a user's message to its last event. No transport, no SDK, no Django.

A ``Turn`` is the only place where one happens, ``TurnRunner`` the only thing that runs it. What a turn needs
from outside are the protocols of :mod:`gm_chat.engine.ports`; how it works the model is a loop of ``gm_chat.loops``.
"""

from gm_chat.engine.runner import TurnRunner, UnknownTurnError

__all__ = ["TurnRunner", "UnknownTurnError"]
