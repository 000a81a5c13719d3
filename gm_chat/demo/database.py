"""Builds the demo's database: once for each version, complete or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.apps import apps
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.db import connection, transaction

from gm_chat import __version__
from gm_chat.demo.access import PASSWORD, USERS
from gm_chat.demo.generate import DATA_VERSION, generate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["STAMP", "build", "is_current", "migrate", "stamp_file"]

STAMP: Final = f"gm-chat {__version__}, demo data {DATA_VERSION}"
"""What a complete database of this version is marked with."""

BATCH: Final = 500


def stamp_file(database: Path) -> Path:
    """Where a database's mark is kept; it is written last, so that an interrupted build has none."""
    return database.with_suffix(".version")


def is_current(database: Path) -> bool:
    """Whether the file holds a complete database of this version."""
    mark = stamp_file(database)
    return database.is_file() and mark.is_file() and mark.read_text(encoding="utf-8") == STAMP


def build(database: Path, progress: Callable[[str, int, int], None]) -> int:
    """Replace the database at Django's ``default`` connection by a new one; returns its number of rows.

    ``progress`` is told (model, rows done, rows in all).
    """
    connection.close()
    remove(database)
    migrate()
    tables = generate()
    done, total = 0, sum(len(table.rows) for table in tables)
    with transaction.atomic():
        for table in tables:
            model = apps.get_model("workshop", table.model)
            for start in range(0, len(table.rows), BATCH):
                chunk = table.rows[start : start + BATCH]
                model._default_manager.bulk_create([model(**row) for row in chunk])
                done += len(chunk)
                progress(table.model, done, total)
        create_users()
    stamp_file(database).write_text(STAMP, encoding="utf-8")
    return total


def migrate() -> None:
    """Bring the tables up to date; the demo's own ones need no migrations, as they are built anew if they change."""
    call_command("migrate", run_syncdb=True, verbosity=0, interactive=False)


def remove(database: Path) -> None:
    """Delete a database with its mark and its write-ahead log, if there is one."""
    stamp_file(database).unlink(missing_ok=True)
    for suffix in ("", "-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)


def create_users() -> None:
    """Create the users, each with a group that holds its permissions."""
    password = make_password(PASSWORD)
    for user in USERS:
        account = User.objects.create(
            username=user.name, password=password, is_staff=user.superuser, is_superuser=user.superuser
        )
        permissions = Permission.objects.filter(content_type__app_label="workshop", codename__in=user.codenames)
        if missing := user.codenames - {permission.codename for permission in permissions}:
            raise LookupError(f"demo user {user.name!r}: no such permissions: {sorted(missing)!r}")
        group = Group.objects.create(name=user.name)
        group.permissions.set(permissions)
        account.groups.add(group)
