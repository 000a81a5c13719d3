"""Settings of the test project: SQLite in a file, so that threads and processes share it."""

import os
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pymysql

# Django asks for mysqlclient, which must be compiled; PyMySQL speaks the same DB-API.
pymysql.version_info = (2, 2, 7, "final", 0)
pymysql.install_as_MySQLdb()

SECRET_KEY = "only-for-tests"
DEBUG = False
ALLOWED_HOSTS = ["*"]
USE_TZ = True
ROOT_URLCONF = "testproject.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "gm_chat",
    "testproject.shop",
    "testproject.chinook",
    "testproject.defog",
    # The environments for other parts lack it.
    *(["gm_chat_audit_logging"] if find_spec("gm_chat_audit_logging") else []),
]
DATABASE_ROUTERS = ["testproject.chinook.router.ChinookRouter"]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]

_worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
_folder = Path(tempfile.gettempdir()) / f"gm-chat-tests-{os.getuid()}"
_folder.mkdir(exist_ok=True)

DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": _folder / f"{os.getpid()}-{_worker}.sqlite3",
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": "PRAGMA journal_mode=WAL"},
        "TEST": {"NAME": _folder / f"test-{os.getpid()}-{_worker}.sqlite3"},
    }
}
# The data layer's random tests run on each server as well: GM_CHAT_TEST_SERVER=postgres pytest tests/managers
SERVERS: dict[str, dict[str, Any]] = {
    "postgres": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ.get("PGDATABASE", "postgres"),
        "USER": os.environ.get("PGUSER", "postgres"),
        "HOST": os.environ.get("PGHOST", "127.0.0.1"),
        "PORT": os.environ.get("PGPORT", ""),
    },
    "mariadb": {
        "ENGINE": "django.db.backends.mysql",
        "NAME": os.environ.get("MYSQL_DATABASE", "test"),
        "USER": os.environ.get("MYSQL_USER", "root"),
        "HOST": os.environ.get("MYSQL_HOST", "localhost"),
    },
}
if server := os.environ.get("GM_CHAT_TEST_SERVER"):
    DATABASES["default"] = {**SERVERS[server], "TEST": {"NAME": f"gm_chat_test_{os.getpid()}_{_worker}"}}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# A script has one round for each call: a failure must not use up the next one.
GM_CHAT: dict[str, Any] = {
    "enabled": True,
    "provider": "gm_chat.testing.ScriptedProvider",
    "provider_config": {"max_retries": 0},
}
