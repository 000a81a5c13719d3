"""The command line of ``python -m gm_chat.evals``, read without Django. (Specification: "Installed evaluation CLI".)"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from gm_chat.evals.datasets import LEGACY
from gm_chat.evals.fixtures import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["DEFAULT_ALIAS", "Options", "UsageError", "parse", "parser"]

DEFAULT_ALIAS: Final = "default"
PLANNED: Final = "planned_orchestration"


class UsageError(Exception):
    """The command line asks for what cannot be run, a selection without a case included: exit status 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to run, on which cases, and what to write; each field is an option of the same name."""

    settings: str | None = None
    provider: str | None = None
    model: str | None = None
    compare: tuple[str, ...] = ()
    variants: tuple[tuple[str, Path], ...] = ()
    fixture: str | None = None
    user: str | None = None
    allow_writes: bool = False
    database: str | None = None
    datasets: tuple[str, ...] = LEGACY
    tier: int | None = None
    tags: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    half: Literal["held-out", "tuning"] | None = None
    sample: int | None = None
    seed: int = 0
    repeat: int = 1
    concurrency: int = 1
    verbose: bool = False
    trace_jsonl: Path | None = None
    resume: bool = False
    junit: Path | None = None
    html: Path | None = None
    baseline: Path | None = None

    @property
    def alias(self) -> str | None:
        """The database of reference SQL; ``None`` is the fixture's."""
        return self.database or (None if self.fixture else DEFAULT_ALIAS)


def parse(argv: Sequence[str] | None = None) -> Options:
    """Read the command line; end the process with status 2 if it is wrong, with 0 if it asks for help."""
    reader = parser()
    given = vars(reader.parse_args(argv))
    given["compare"] = _distinct(reader, "--compare", given["compare"] or ())
    given["variants"] = tuple(given["variants"] or ())
    _distinct(reader, "--variant", [name for name, _ in given["variants"]])
    given["datasets"] = _distinct(reader, "--dataset", given["datasets"] or LEGACY)
    for several in ("tags", "cases"):
        given[several] = tuple(dict.fromkeys(given[several] or ()))
    options = Options(**given)
    if (wrong := _mistake(options)) is not None:
        reader.error(wrong)
    return options


def _mistake(options: Options) -> str | None:
    if PLANNED in options.datasets:
        return (
            f"--dataset: {PLANNED} needs providers whose roles are pinned; deterministic tests run it "
            "(tests/evals/test_planned_orchestration.py), this command does not"
        )
    if options.resume and options.trace_jsonl is None:
        return "--resume: name the trace that is to be continued, with --trace-jsonl FILE"
    files = [options.trace_jsonl, options.junit, options.html, options.baseline]
    named = [file.resolve() for file in files if file is not None]
    if len(set(named)) < len(named):
        return "--trace-jsonl, --junit, --html and --baseline must be different files"
    return None


def _distinct(reader: argparse.ArgumentParser, option: str, names: Sequence[str]) -> tuple[str, ...]:
    if twice := sorted({name for name in names if list(names).count(name) > 1}):
        reader.error(f"{option}: {', '.join(map(repr, twice))} stands twice")
    return tuple(names)


def parser() -> argparse.ArgumentParser:
    """The options, with their help."""
    made = argparse.ArgumentParser(
        prog="python -m gm_chat.evals",
        description="Run evaluation datasets through the chat's own turns, and judge what came out.",
        epilog="Exit status: 0 all passed; 1 at least one failed; 2 wrong arguments, or no case is selected; 3 no case "
        "failed, but some could not be run; 4 something could not be set up or written; 130 interrupted.",
        allow_abbrev=False,
    )
    _what_to_run(made.add_argument_group("what is evaluated"))
    _which_cases(made.add_argument_group("which cases"))
    _how(made.add_argument_group("how"))
    _reports(made.add_argument_group("reports"))
    return made


def _what_to_run(group: Any) -> None:
    group.add_argument("--settings", metavar="MODULE", help="Django settings, before DJANGO_SETTINGS_MODULE")
    group.add_argument("--provider", metavar="PATH", help="a provider's class or name, before the configured one")
    group.add_argument("--model", metavar="NAME", help="merged into the provider's configuration")
    group.add_argument(
        "--compare", type=_paths, metavar="PATH,PATH", help="run each of these providers; comes before --provider"
    )
    group.add_argument(
        "--variant",
        dest="variants",
        action="append",
        type=_variant,
        metavar="NAME=FILE.yaml",
        help="run the cases with the settings of this file laid over GM_CHAT; repeat it to compare",
    )
    group.add_argument("--fixture", choices=FIXTURES, help="ask about this built-in schema instead of the project's")
    group.add_argument("--user", metavar="NAME", help="who asks where a case names nobody")
    group.add_argument(
        "--allow-writes", action="store_true", help="without --fixture: let mutations change the project's data"
    )
    group.add_argument("--database", metavar="ALIAS", help="where reference SQL is run (the fixture's, else default)")


def _which_cases(group: Any) -> None:
    group.add_argument(
        "--dataset",
        dest="datasets",
        action="append",
        metavar="NAME",
        help=f"a packaged dataset, a plugin's, or a .yaml file; repeatable ({', '.join(LEGACY)})",
    )
    group.add_argument("--tier", type=int, metavar="N", help="cases of this tier")
    group.add_argument("--tag", dest="tags", action="append", metavar="TAG", help="cases with this tag; repeatable")
    group.add_argument("--case", dest="cases", action="append", metavar="NAME", help="this case; repeatable")
    half = group.add_mutually_exclusive_group()
    half.add_argument("--held-out", dest="half", action="store_const", const="held-out", help="the held-out half")
    half.add_argument("--tuning", dest="half", action="store_const", const="tuning", help="the other half")
    group.add_argument("--sample", type=_at_least(1), metavar="N", help="so many of them, drawn by the seed")


def _how(group: Any) -> None:
    group.add_argument("--seed", type=int, default=0, metavar="N", help="of samples and ids (0)")
    group.add_argument("--repeat", type=_at_least(1), default=1, metavar="K", help="run each case so often (1)")
    group.add_argument("--concurrency", type=_at_least(1), default=1, metavar="N", help="cases side by side (1)")
    group.add_argument("--resume", action="store_true", help="run what the trace does not hold yet, and errors again")


def _reports(group: Any) -> None:
    group.add_argument("-v", "--verbose", action="store_true", help="say of each failure why")
    group.add_argument("--trace-jsonl", type=Path, metavar="FILE", help="write a line of JSON for each run of a case")
    group.add_argument("--junit", type=Path, metavar="FILE", help="write a JUnit report")
    group.add_argument("--html", type=Path, metavar="FILE", help="write a page")
    group.add_argument("--baseline", type=Path, metavar="FILE", help="compare with a former trace")


def _paths(text: str) -> list[str]:
    paths = [part.strip() for part in text.split(",")]
    if not all(paths):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of provider paths with commas between them")
    return paths


def _variant(text: str) -> tuple[str, Path]:
    name, _, file = text.partition("=")
    if not name or not file:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=FILE.yaml")
    return name, Path(file)


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number, {least} or more")
        return int(text)

    return number
