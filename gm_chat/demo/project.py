"""The demo as a Django project: its settings as a function of what the command line chose.

Worth copying into an own project: SQLite in WAL mode with immediate transactions and a 20 s timeout (at 32 clients
of the default settings, one turn in seven ended in "database is locked"), and ``GM_CHAT``.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping
    from pathlib import Path

    from gm_chat.demo.choice import Choice

__all__ = ["DATABASE", "chat_settings", "demo_settings", "foreign_variables", "set_up"]

DATABASE = "demo.sqlite3"
"""The database's name in the data folder."""

PROMPT = """\
The data is that of a builder of packaging machines. Prices are in EUR, weights in kg, densities in g/cm3.
Texts are in British spelling (aluminium, not aluminum). Names are longer than what people say: "Carbon steel C45"."""
"""What a project tells its model: whose data it is, and what its fields do not say themselves."""


def demo_settings(database: Path, choice: Choice, *, host: str = "127.0.0.1") -> dict[str, Any]:
    """Return the project's settings for a database file, a provider and the address that the server binds."""
    return {
        "SECRET_KEY": secrets.token_urlsafe(48),
        "ALLOWED_HOSTS": ["*"] if host in {"0.0.0.0", "::"} else [host, "127.0.0.1", "localhost", "[::1]"],  # noqa: S104
        "ROOT_URLCONF": "gm_chat.demo.urls",
        "USE_TZ": True,
        "STATIC_URL": "/static/",
        "INSTALLED_APPS": [
            "django.contrib.admin",
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "django.contrib.messages",
            "django.contrib.staticfiles",
            "gm_chat",
            "gm_chat.demo",
        ],
        "MIDDLEWARE": [
            "django.middleware.security.SecurityMiddleware",
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.common.CommonMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
        ],
        "TEMPLATES": [
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {
                    "context_processors": [
                        "django.template.context_processors.request",
                        "django.contrib.auth.context_processors.auth",
                        "django.contrib.messages.context_processors.messages",
                    ]
                },
            }
        ],
        "DATABASES": {
            "default": {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": database,
                "OPTIONS": {
                    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
                    "transaction_mode": "IMMEDIATE",
                    "timeout": 20,
                },
            }
        },
        "GM_CHAT": chat_settings(choice),
    }


def chat_settings(choice: Choice) -> dict[str, Any]:
    """Return the setting ``GM_CHAT`` for a provider."""
    return {
        "enabled": True,
        "provider": choice.provider,
        "provider_config": dict(choice.config),
        "allowed_mutations": [
            *("updatePart", "updateStockLevel", "transferStock", "createBomLine", "deleteBomLine", "updateOrder"),
        ],
        "confirm_mutations": ["updatePart", "transferStock", "deleteBomLine", "updateOrder"],
        "taint_mutations": True,  # the others run unasked only as long as the model has read no records
        "system_prompt": PROMPT,
        "max_results": 25 if choice.has_model else 200,  # a small model on a processor reads 40 tokens a second
        "recover_missing_tool_calls": choice.has_model,  # small models write a call as text now and then
    }


TEST_VARIABLES: Final = frozenset({"GM_CHAT_SHARED", "GM_CHAT_REQUIRE"})
"""Set by this project's own tox; they are no settings."""


def foreign_variables(environment: Mapping[str, str]) -> list[str]:
    """Name the ``GM_CHAT_*`` variables of the surroundings, which would overrule what the demo announces."""
    return sorted(name for name in environment if name.startswith("GM_CHAT_") and name not in TEST_VARIABLES)


def set_up(settings: Mapping[str, Any], *, environment: MutableMapping[str, str] = os.environ) -> list[str]:
    """Start Django with these settings alone. Returns the environment variables that were put aside."""
    # Django costs a quarter of a second and --help needs none of it.
    import django
    from django.conf import settings as django_settings

    aside = foreign_variables(environment)
    for name in aside:
        del environment[name]
    django_settings.configure(**settings)
    django.setup()
    return aside
