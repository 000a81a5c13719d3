"""The chat under ASGI, looking into the database once a minute: what arrives sooner came over the channel layer."""

from gm_chat.engine import following, pulse

MINUTE = 60.0
JOIN_SECONDS = pulse.PULSE_SECONDS

vars(pulse).update(PULSE_SECONDS=MINUTE)
vars(following).update(FOLLOW_SECONDS=MINUTE, TOLD_SECONDS=MINUTE)

from gm_chat.asgi import application  # noqa: E402 - Django is set up by this
from gm_chat.wiring import channel_bus  # noqa: E402

vars(channel_bus).update(JOIN_SECONDS=JOIN_SECONDS)

__all__ = ["application"]
