"""``manage.py chat_usage``: tokens and money by actor, conversation, model and day, as a table or as CSV."""

from __future__ import annotations

import argparse
import csv
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from gm_chat.persistence.ledger import Entry, Used, entries
from gm_chat.prices import cost_of
from gm_chat.settings import get_chat_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["Command"]

KEYS: Final = ("day", "actor", "conversation", "model")
FIGURES: Final = ("turns", "unreported", "input_tokens", "cached_tokens", "output_tokens", "cost")
DAYS: Final = 30


class _Line:
    """The sums of one group. Its cost is unknown as soon as that of a part of it is."""

    def __init__(self) -> None:
        self._used = Used()
        self._cost: Decimal | None = Decimal(0)

    def add(self, entry: Entry, prices: Mapping[str, Any]) -> None:
        self._used.add(entry.used)
        cost = cost_of(entry.model, entry.used, prices)
        self._cost = None if cost is None or self._cost is None else self._cost + cost

    def figures(self) -> tuple[int | Decimal | None, ...]:
        used = self._used
        tokens = (used.input_tokens, used.cached_tokens, used.output_tokens) if used.is_known else (None,) * 3
        return used.turns, used.unreported, *tokens, self._cost


class Command(BaseCommand):
    """Reads what is stored; nothing is asked of a provider."""

    help = "Show what the chat's users used of its models, and what that costs by the setting 'prices'."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Offer the period, the grouping and the form."""
        parser.add_argument("--since", type=_day, help=f"First day, YYYY-MM-DD (default {DAYS} days before the last).")
        parser.add_argument("--until", type=_day, help="Last day, YYYY-MM-DD (default today).")
        parser.add_argument(
            "--by", type=_keys, default=("actor", "model"), help=f"Group by some of {', '.join(KEYS)} (actor,model)."
        )
        parser.add_argument("--csv", action="store_true", help="Write CSV; what is unknown is an empty cell.")

    def handle(self, *_args: Any, by: Sequence[str], **options: Any) -> None:
        """Sum up and print."""
        until: date = options["until"] or timezone.localdate(timezone=timezone.get_default_timezone())
        since: date = options["since"] or until - timedelta(DAYS)
        if since > until:
            raise CommandError(f"--since {since} is after --until {until}.")
        lines = _grouped(entries(since, until), by, get_chat_settings().prices)
        header = (*by, *FIGURES)
        rows = ([*map(str, key), *map(_text, line.figures())] for key, line in lines)
        if options["csv"]:
            csv.writer(self.stdout, lineterminator="\n").writerows([header, *map(_harmless, rows)])
            return
        self.stdout.write(f"{since} to {until}")
        self._table(header, [[cell or "-" for cell in row] for row in rows], left=len(by))

    def _table(self, header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> None:
        if not rows:
            self.stdout.write("Nothing was used.")
            return
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        for row in (header, *rows):
            cells = (
                cell.ljust(width) if place < left else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            self.stdout.write("  ".join(cells).rstrip())


def _grouped(
    used: Iterable[Entry], by: Sequence[str], prices: Mapping[str, Any]
) -> Iterator[tuple[tuple[Any, ...], _Line]]:
    lines: dict[tuple[Any, ...], _Line] = {}
    for entry in used:
        lines.setdefault(tuple(getattr(entry, key) for key in by), _Line()).add(entry, prices)
    return iter(sorted(lines.items(), key=lambda item: item[0]))


def _text(figure: int | Decimal | None) -> str:
    match figure:
        case None:
            return ""
        case Decimal():
            return f"{figure:.6f}"
        case _:
            return str(figure)


def _harmless(row: Sequence[str]) -> Sequence[str]:
    """A spreadsheet takes what begins like a formula for one, and a model's name is whatever somebody configured."""
    return [f"'{cell}" if cell[:1] in {"=", "+", "-", "@"} else cell for cell in row]


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day: write it as 2030-01-31") from None


def _keys(text: str) -> tuple[str, ...]:
    keys = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not keys or (unknown := [key for key in keys if key not in KEYS]):
        wrong = f"{unknown[0]!r} is none of them" if keys else "nothing is named"
        raise argparse.ArgumentTypeError(f"{wrong}: group by some of {', '.join(KEYS)}")
    return keys
