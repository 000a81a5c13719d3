"""``manage.py chat_cleanup``: end what waited too long, delete conversations older than ``ttl_hours``."""

from __future__ import annotations

import argparse
from datetime import timedelta
from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import BaseCommand
from django.utils import timezone

from gm_chat.persistence.cleanup import BATCH_SIZE, prune
from gm_chat.wiring import get_runtime

__all__ = ["Command"]


class Command(BaseCommand):
    """Schedule it with the deployment's task runner; nothing else calls it."""

    help = "Delete chat conversations without a turn for ttl_hours, and resolved or expired confirmations."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Offer a dry run and the size of a transaction."""
        parser.add_argument("--dry-run", action="store_true", help="Count what would be deleted, and delete nothing.")
        parser.add_argument(
            "--batch-size", type=_positive, default=BATCH_SIZE, help=f"Rows per transaction (default {BATCH_SIZE})."
        )

    def handle(self, *_args: Any, dry_run: bool, batch_size: int, **_options: Any) -> None:
        """End expired confirmations as a turn would, so that signals and audit hear of it; prune; say how much."""
        runtime = get_runtime()
        now = timezone.now()
        if not dry_run:
            async_to_sync(runtime.runner.expire)()
        ttl_hours = runtime.settings.ttl_hours
        pruned = prune(stale_before=now - timedelta(hours=ttl_hours), now=now, dry_run=dry_run, batch_size=batch_size)
        self.stdout.write(
            f"{'Would delete' if dry_run else 'Deleted'} {pruned.conversations} conversations without a turn for "
            f"{ttl_hours:g} hours and {pruned.confirmations} resolved or expired confirmations."
        )


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value
