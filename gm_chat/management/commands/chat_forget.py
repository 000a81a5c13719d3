"""``manage.py chat_forget``: delete everything that the chat keeps of one person, and say what it cannot reach."""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from gm_chat.audit import audited_actor
from gm_chat.engine.budgets import prefix_of
from gm_chat.persistence.cleanup import BATCH_SIZE
from gm_chat.persistence.forgetting import FORGOTTEN, Export, ask_to_stop, forget
from gm_chat.persistence.owner import owner_of
from gm_chat.plugin import Actor
from gm_chat.signals import chat_forgotten

if TYPE_CHECKING:
    from collections import Counter

    from gm_chat.persistence.owner import Owner

__all__ = ["Command"]

WAIT_SECONDS: Final = 20.0
"""Longer than a turn counts as alive whose process has died."""

LOOK_SECONDS: Final = 0.2

_UNREACHED: Final = """\
Not reached from here:
- the user's own row and Django's sessions, and whatever the project itself keeps of the person;
- log files, and the audit's lines and callables: whatever took events elsewhere than to the database;
- what the model's provider keeps of the requests that it was sent;
- backups and replicas of the database, and the file that --export wrote;
- rate limits that are counted in a cache or in Redis, or by address: they end with their window;
- what a running server remembers of a turn, for a minute after its end."""


class Command(BaseCommand):
    """Run it again if in doubt: a second run finds the rest, or nothing."""

    help = "Delete what the chat keeps of a user or of an anonymous session: conversations, approvals, limits, audit."
    # Nothing that `manage.py check` finds, such as a broken plugin, may keep a person's data from being deleted.
    requires_system_checks: list[str] = []  # noqa: RUF012 - the base class's type

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Say who, and whether the data is to be written out before."""
        parser.add_argument("user", nargs="?", help="The name that the user logs in with.")
        parser.add_argument("--id", help="The user's primary key instead, also of one who is deleted already.")
        parser.add_argument("--session", metavar="KEY", help="The key of an anonymous visitor's session instead.")
        parser.add_argument(
            "--export",
            type=Path,
            metavar="FILE",
            help="Write each row to this new file, as JSON lines, before it goes.",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Count what would be deleted, and delete nothing. --export is done."
        )
        parser.add_argument(
            "--batch-size", type=_positive, default=BATCH_SIZE, help=f"Conversations at a time (default {BATCH_SIZE})."
        )
        parser.add_argument(
            "--wait",
            type=float,
            default=WAIT_SECONDS,
            metavar="SECONDS",
            help=f"How long to wait until the person's running turn has stopped (default {WAIT_SECONDS:g}).",
        )

    def handle(self, *_args: Any, dry_run: bool, batch_size: int, **options: Any) -> None:
        """Stop the person's turns; delete; say how much."""
        actor = _actor(options["user"], options["id"], options["session"])
        owner = owner_of(actor)
        assert owner is not None, "an actor with a user or a session owns something"  # noqa: S101 - of ours
        if not dry_run:
            _stop(owner, options["wait"])
        with ExitStack() as stack:
            export = None if options["export"] is None else stack.enter_context(closing(_file(options["export"])))
            found = forget(owner, prefix_of(actor), export=export, dry_run=dry_run, batch_size=batch_size)
            in_use = found.pop("conversations in use", 0)
            lines = found.pop("lines of the ledger", 0)
            faults = _tell(found, actor=audited_actor(actor), export=export, dry_run=dry_run)
        told = ", ".join(f"{count} {what}" for what, count in found.items() if count) or "nothing"
        self.stdout.write(f"{'Would delete' if dry_run else 'Deleted'} of {audited_actor(actor)}: {told}.")
        self.stdout.write(f"{lines} lines of the ledger {'would be' if dry_run else 'are'} kept as {FORGOTTEN!r}.")
        self.stdout.write(_UNREACHED)
        if in_use:
            faults.append(f"{in_use} conversations were left, for a turn began in them meanwhile.")
        if faults:
            raise CommandError(f"Not all is deleted: {' '.join(faults)} Mend that, then type the same command again.")


def _actor(user: str | None, key: str | None, session: str | None) -> Actor:
    if sum(value is not None for value in (user, key, session)) != 1:
        raise CommandError("Name one person: chat_forget USER, chat_forget --id KEY or chat_forget --session KEY.")
    model: Any = get_user_model()
    if session is not None:
        if not session.strip():
            raise CommandError("--session is empty: give the key of a session, as the table django_session has it.")
        return Actor(session_key=session)
    if key is not None:
        try:
            return Actor(user_id=str(model._meta.pk.to_python(key)))
        except ValidationError as error:
            raise CommandError(f"--id {key!r} is no primary key of {model.__name__}: {error.messages[0]}") from None
    try:
        return Actor(user_id=str(model._default_manager.get_by_natural_key(user).pk))
    except model.DoesNotExist:
        raise CommandError(
            f"There is no user {user!r}, so nothing was deleted. One who is deleted already is named by the primary "
            "key that they had: chat_forget --id KEY."
        ) from None


def _stop(owner: Owner, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while running := ask_to_stop(owner):
        if time.monotonic() > deadline:
            raise CommandError(
                f"Nothing was deleted: the turn {running[0]!r} still runs {seconds:g} s after it was told to stop. "
                "Type the same command again in half a minute: by then its process has answered, or counts as dead."
            )
        time.sleep(LOOK_SECONDS)


def _file(path: Path) -> Export:
    try:
        return Export(path)
    except OSError as error:
        raise CommandError(
            f"Nothing was deleted: --export {str(path)!r} must be a new file: {error.strerror}."
        ) from None


def _tell(found: Counter[str], **arguments: Any) -> list[str]:
    """Let plugins and the project delete what they keep; return what failed."""
    faults = []
    for receiver, answer in chat_forgotten.send_robust(sender=Command, **arguments):
        if isinstance(answer, Exception):
            name = f"{receiver.__module__}.{getattr(receiver, '__qualname__', type(receiver).__name__)}"
            faults.append(f"{name} failed with {type(answer).__name__}: {answer}.")
        elif answer:
            found.update(answer)
    return faults


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value
