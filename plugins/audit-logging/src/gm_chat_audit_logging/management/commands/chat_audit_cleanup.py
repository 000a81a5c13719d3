"""``manage.py chat_audit_cleanup --days N``: delete audit events that are older than N days."""

from __future__ import annotations

import argparse
from datetime import timedelta
from typing import Any, Final

from django.core.management.base import BaseCommand
from django.db import router
from django.utils import timezone

from gm_chat_audit_logging.models import AuditRecord

__all__ = ["Command"]

BATCH_SIZE: Final = 1000


class Command(BaseCommand):
    """Schedule it with the deployment's task runner; nothing else deletes audit events."""

    help = "Delete audit events of the chat that are older than --days."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Ask how long to keep events: there is no default, since law and house rules differ."""
        parser.add_argument("--days", type=_positive, required=True, help="How long an event is kept.")
        parser.add_argument("--dry-run", action="store_true", help="Count what would be deleted, and delete nothing.")

    def handle(self, *_args: Any, days: int, dry_run: bool, **_options: Any) -> None:
        """Delete the oldest first, each batch in a transaction of its own, so that no lock is held for long."""
        rows = AuditRecord.objects.using(router.db_for_write(AuditRecord))
        old = rows.filter(created__lt=timezone.now() - timedelta(days=days)).order_by("id")
        count = old.count() if dry_run else 0
        while not dry_run and (ids := list(old.values_list("id", flat=True)[:BATCH_SIZE])):
            count += rows.filter(id__in=ids).delete()[0]
        self.stdout.write(f"{'Would delete' if dry_run else 'Deleted'} {count} audit events older than {days} days.")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value
