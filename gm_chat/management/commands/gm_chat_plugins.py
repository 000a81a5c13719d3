"""``manage.py gm_chat_plugins``: which plugins are installed, what they implement, and what is wrong with them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gm_chat.host.validation import SPECS
from gm_chat.settings import ChatConfigurationError, suggestion
from gm_chat.wiring import get_runtime

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gm_chat.host import PluginHost, PluginRecord, Problem

_HEADINGS = ("PLUGIN", "STATE", "DISTRIBUTION", "VERSION", "HOOKS")


class Command(BaseCommand):
    """Lists plugins; exit code 1 if one of them has an error."""

    help = "List the chat's plugins: distribution, version, state, hooks and problems."
    # A broken plugin is an error of `manage.py check`, which would otherwise end this command before it could name it.
    requires_system_checks: list[str] = []  # noqa: RUF012 - the base class's type

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare ``--json`` and ``--hook``."""
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
        parser.add_argument("--hook", metavar="NAME", help="only plugins that implement this hook")

    def handle(self, *, hook: str | None, **options: Any) -> None:
        """Print, then fail if there are errors."""
        if hook is not None and hook not in SPECS:
            raise CommandError(f"There is no hook {hook!r}. {suggestion(hook, SPECS)}")
        host = _host()
        plugins = [record for record in host.plugins if hook is None or hook in record.hooks]
        names = {record.name for record in plugins}
        problems = [problem for problem in host.problems if hook is None or problem.plugin in names]
        if options["json"]:
            shown = {"plugins": [asdict(item) for item in plugins], "problems": [asdict(item) for item in problems]}
            self.stdout.write(json.dumps(shown, indent=2))
        else:
            self._print_table(plugins)
            self._print_problems(problems)
        errors = sum(problem.severity == "error" for problem in problems)
        if errors:
            raise CommandError(f"{errors} plugin error{'s' if errors > 1 else ''}.")

    def _print_table(self, plugins: Sequence[PluginRecord]) -> None:
        rows = [
            (record.name, record.state, record.distribution, record.version, ", ".join(_short(record.hooks)) or "-")
            for record in plugins
        ]
        widths = [max(map(len, column)) for column in zip(_HEADINGS, *rows, strict=True)]
        self.stdout.write(_line(_HEADINGS, widths), self.style.MIGRATE_HEADING)
        for row in rows:
            paint = self.style.ERROR if row[1] in {"failed", "refused"} else str
            self.stdout.write(_line(row, widths), paint)

    def _print_problems(self, problems: Sequence[Problem]) -> None:
        for problem in problems:
            style = self.style.ERROR if problem.severity == "error" else self.style.WARNING
            self.stdout.write("")
            self.stdout.write(f"{problem.severity}: {problem}", style)


def _host() -> PluginHost:
    try:
        return get_runtime().host
    except ChatConfigurationError as error:
        raise CommandError(f"The chat's settings are invalid, so no plugin was loaded: {error}") from error


def _short(hooks: Sequence[str]) -> list[str]:
    return [hook.removeprefix("gm_chat_") for hook in hooks]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
