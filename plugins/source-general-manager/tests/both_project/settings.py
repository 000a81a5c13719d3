"""Both chats enabled: GeneralManager's by its own setting, ours by GM_CHAT, at another place."""

import os

SECRET_KEY = "only-for-tests"
ALLOWED_HOSTS = ["*"]
USE_TZ = True
ROOT_URLCONF = "both_project.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "gm_chat",
    "simple_history",
    "general_manager",
    "both_project.depot",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("BOTH_DATABASE", ":memory:"),
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": "PRAGMA journal_mode=WAL"},
    }
}
MIGRATION_MODULES = {"depot": None}
AUTOCREATE_GRAPHQL = True
GRAPHQL_URL = "graphql/"
GENERAL_MANAGER = {
    "CHAT": {
        "enabled": True,
        "provider": "both_project.provider.TheirProvider",
        "max_results": 7,
        "a_key_of_next_year": True,
    },
}
GM_CHAT = {
    "enabled": True,
    "url": "/assistant/",
    "provider": "gm_chat.testing.ScriptedProvider",
    "provider_config": {"max_retries": 0},
    "allowed_mutations": ["createBox"],
}
