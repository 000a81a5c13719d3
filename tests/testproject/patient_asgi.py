"""The chat under ASGI, looking into the database once a minute: what arrives sooner came over the channel layer."""

from gm_chat.engine import following, pulse

MINUTE = 60.0
JOIN_SECONDS = pulse.PULSE_SECONDS

vars(pulse).update(PULSE_SECONDS=MINUTE)
vars(following).update(FOLLOW_SECONDS=MINUTE, TOLD_SECONDS=MINUTE)

from gm_chat.asgi import application  # noqa: E402 - Django is set up by this
from gm_chat.wiring import channel_bus  # noqa: E402

# A busy machine is no outage: in the tests nothing but Redis itself may fail.
vars(channel_bus).update(JOIN_SECONDS=JOIN_SECONDS, EXCHANGE_SECONDS=MINUTE / 2)

__all__ = ["application"]
