"""Settings of one of several server processes: a PostgreSQL database, and a model that is slow on purpose.

``GM_CHAT_TEST_LAYER`` is the channel layer between them, as JSON; without it there is none.
"""

import json
import os

from testproject.settings import *  # noqa: F403 - that is what a settings module of its own is

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ["GM_CHAT_TEST_DATABASE"],
        "USER": os.environ.get("PGUSER", "postgres"),
        "HOST": os.environ.get("PGHOST", "127.0.0.1"),
    }
}
CHANNEL_LAYERS = {"default": json.loads(layer)} if (layer := os.environ.get("GM_CHAT_TEST_LAYER")) else {}
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"gm_chat": {"handlers": ["console"], "level": "INFO"}},
}
GM_CHAT = {
    "enabled": True,
    "provider": "testproject.slow_provider.SlowProvider",
    "allowed_mutations": ["createMaterial"],
    "confirm_mutations": ["createMaterial"],
    "resume_grace_seconds": 4,
}
