"""One server under test: ``python -m turnbench.server {ours,reference} FOLDER [--summaries] [--planned] [--users N]``.

Run in an interpreter that has the chat in question. Makes a SQLite file in FOLDER with the parts, the users and their
sessions, serves on a free port, and prints one line of JSON: ``{"port": ..., "sessions": [...], ...}``.
"""

from __future__ import annotations

import argparse
import json
import platform
import socket
import sys
from datetime import timedelta
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Final

PARTS: Final = 301
CSRF: Final = "b" * 32
NEVER: Final = 1_000_000
CHATS: Final = {
    "ours": {"app": "gm_chat", "events": "gm_chat.providers.base", "asgi": "gm_chat.asgi", "package": "gm-chat"},
    "reference": {
        "app": "general_manager",
        "events": "general_manager.chat.providers.base",
        "asgi": "turnbench.asgi",
        "package": "GeneralManager",
    },
}


def settings_of(kind: str, folder: Path, *, summaries: bool, planned: bool) -> dict[str, Any]:
    """The two projects' settings; they differ in the chat's app and in where it looks for its own settings."""
    chat: dict[str, Any] = {
        "enabled": True,
        "provider": "turnbench.provider.BenchProvider",
        "rate_limit": {"requests": None},
    }
    if not summaries:
        chat["summarize_after"] = NEVER
    if planned:
        chat["planned"] = {"enabled": True}
    own = {"GM_CHAT": chat} if kind == "ours" else {"GENERAL_MANAGER": {"AUTOCREATE_GRAPHQL": True, "CHAT": chat}}
    return {
        "SECRET_KEY": "only-for-a-benchmark",
        "ALLOWED_HOSTS": ["127.0.0.1"],
        "USE_TZ": True,
        "DEFAULT_AUTO_FIELD": "django.db.models.BigAutoField",
        "ROOT_URLCONF": "turnbench.urls",
        "ASGI_APPLICATION": CHATS[kind]["asgi"] + ".application",
        "TURNBENCH_EVENTS": CHATS[kind]["events"],
        "TURNBENCH_PLANNED": planned,
        "INSTALLED_APPS": [
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            CHATS[kind]["app"],
            "turnbench.catalog",
        ],
        "MIDDLEWARE": [
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        "PASSWORD_HASHERS": ["django.contrib.auth.hashers.MD5PasswordHasher"],
        "DATABASES": {
            "default": {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": folder / "bench.sqlite3",
                "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": "PRAGMA journal_mode=WAL"},
            }
        },
        **own,
    }


def fill(users: int) -> list[str]:
    """Make the parts and ``users`` logged-in users; return their sessions' keys."""
    from django.contrib.auth.models import User
    from django.contrib.sessions.backends.db import SessionStore
    from django.contrib.sessions.models import Session
    from django.utils import timezone

    models: Any = import_module("turnbench.catalog.models")
    names = ("Steel", "Aluminum", "Cobalt")
    materials = [models.Material.objects.create(name=name, density=number) for number, name in enumerate(names, 3)]
    models.Part.objects.bulk_create(
        models.Part(
            number=f"P-{number:04}",
            name=f"{('Bolt', 'Gear', 'Bearing')[number % 3]} {number}",
            price=number % 97,
            material=materials[number % 3],
        )
        for number in range(PARTS)
    )
    people = User.objects.bulk_create(User(username=f"user-{n}", password="md5$x$y") for n in range(users))
    store = SessionStore()
    sessions = [
        Session(
            session_key=f"{person.pk:032}",
            session_data=store.encode(
                {
                    "_auth_user_id": str(person.pk),
                    "_auth_user_backend": "django.contrib.auth.backends.ModelBackend",
                    "_auth_user_hash": person.get_session_auth_hash(),
                }
            ),
            expire_date=timezone.now() + timedelta(days=1),
        )
        for person in people
    ]
    return [session.session_key for session in Session.objects.bulk_create(sessions)]


def listen() -> socket.socket:
    """Listen on a free port.

    The protocol is named: of a socket that only says "stream", asyncio does not know that it is TCP, leaves Nagle's
    algorithm on, and every answer in two writes waits 40 ms for the client's delayed acknowledgement.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    return listener


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=CHATS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--summaries", action="store_true", help="leave summarize_after at its default")
    parser.add_argument("--planned", action="store_true", help="plan every question")
    parser.add_argument("--standard", action="store_true", help="serve with uvloop and httptools")
    parser.add_argument("--users", type=int, default=100)
    options = parser.parse_args()

    import django
    from django.conf import settings

    settings.configure(
        **settings_of(options.kind, options.folder, summaries=options.summaries, planned=options.planned)
    )
    django.setup()
    from django.core.management import call_command
    from django.db import connections

    call_command("migrate", verbosity=0, run_syncdb=True)
    sessions = fill(options.users)
    connections.close_all()

    import uvicorn

    from turnbench.probes import Probes, resident_bytes

    application = Probes(import_module(CHATS[options.kind]["asgi"]).application)
    listener = listen()
    about = {
        "port": listener.getsockname()[1],
        "sessions": sessions,
        "csrf": CSRF,
        "memory": resident_bytes(),
        "version": f"{CHATS[options.kind]['package']} {metadata.version(CHATS[options.kind]['package'])}, "
        f"Django {django.__version__}, Python {platform.python_version()}, uvicorn {uvicorn.__version__}",
    }
    print(json.dumps(about), flush=True)
    config = uvicorn.Config(
        application,
        loop="uvloop" if options.standard else "asyncio",
        http="httptools" if options.standard else "h11",
        lifespan="auto",
        log_level="error",
        access_log=False,
        backlog=1024,
    )
    uvicorn.Server(config).run(sockets=[listener])
    return 0


if __name__ == "__main__":
    sys.exit(main())
