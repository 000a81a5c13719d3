"""Settings of one of several server processes: a PostgreSQL database, and a model that is slow on purpose."""

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
GM_CHAT = {
    "enabled": True,
    "provider": "testproject.slow_provider.SlowProvider",
    "allowed_mutations": ["createMaterial"],
    "confirm_mutations": ["createMaterial"],
    "resume_grace_seconds": 4,
}
