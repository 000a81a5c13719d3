"""``manage.py chat_schema``: the GraphQL schema of everything that the chat exposes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from gm_chat.managers.schema import SchemaBuildError, print_sdl
from gm_chat.wiring import get_runtime

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(BaseCommand):
    """Prints the schema in the schema definition language, or writes it to a file."""

    help = "Print the GraphQL schema of the exposed managers; its mutation names are what allowed_mutations takes."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take ``--output``."""
        parser.add_argument("--output", type=Path, metavar="FILE", help="write to FILE instead of standard output")

    def handle(self, *, output: Path | None = None, **options: Any) -> None:  # noqa: ARG002 - Django's common options
        """Print or write the schema."""
        try:
            sdl = print_sdl(get_runtime().index.managers.values())
        except SchemaBuildError as error:
            raise CommandError(str(error)) from error
        if output is None:
            self.stdout.write(sdl, ending="")
            return
        try:
            output.write_text(sdl, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"cannot write {str(output)!r}: {error.strerror}") from error
