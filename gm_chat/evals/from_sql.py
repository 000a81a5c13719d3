"""``python -m gm_chat.evals.from_sql FILE.csv --out dataset.yaml``: a dataset from questions with their reference SQL.

Every statement is run before its question is taken: one that fails or gives nothing to compare with could fail every
model for no fault of its own. What is left out is listed with its line and the reason.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from gm_chat.evals.dataset import DatasetError, parse_dataset
from gm_chat.evals.questions import CsvError, read_questions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gm_chat.evals.questions import Question

__all__ = ["LeftOut", "Taken", "main", "sift", "to_yaml"]

MAX_ROWS: Final = 200
"""What the setting ``max_results`` is by default: no result of a tool is longer, so none could equal more rows."""

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Taken:
    """A question, and the one of its statements that became its reference."""

    question: Question
    sql: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A question that became no case, and why."""

    question: Question
    reason: str


def sift(questions: Iterable[Question], read: Callable[[str], Rows], *, max_rows: int) -> Iterator[Taken | LeftOut]:
    """Run each question's statements until one gives rows to compare with. ``read`` raises ``ValueError``."""
    for question in questions:
        yield _judged(question, read, max_rows)


def _judged(question: Question, read: Callable[[str], Rows], max_rows: int) -> Taken | LeftOut:
    reasons = []
    for sql in question.statements:
        try:
            rows = read(sql)
        except ValueError as error:
            reasons.append(f"its SQL {error}")
            continue
        if not any(value is not None for row in rows for value in row):
            reasons.append("its SQL gives no rows" if not rows else "its SQL gives nothing but NULL")
        elif len(rows) > max_rows:
            reasons.append(f"its SQL gives {len(rows):,} rows, more than {max_rows:,}")
        else:
            return Taken(question, sql)
    return LeftOut(question, "; ".join(dict.fromkeys(reasons)) or "it has no SQL")


def to_yaml(taken: Iterable[Taken], *, source: str) -> str:
    """Write the dataset: each case expects that some tool result consists of the reference's rows."""
    seen: Counter[str] = Counter()
    cases = []
    for item in taken:
        question = item.question
        slug = _slug(question)
        seen[slug] += 1
        message = "\n\n".join(filter(None, (question.text, question.instructions)))
        cases.append(
            {
                "name": slug if seen[slug] == 1 else f"{slug}.{seen[slug]}",
                "tags": list(dict.fromkeys(filter(None, (question.database, question.category)))),
                "conversation": [{"user": message}],
                "expectations": {
                    "contract": {
                        "category": question.category or "sql",
                        "hard": {"result_set": {"sql": item.sql}},
                    }
                },
            }
        )
    head = f"# Made by gm_chat.evals.from_sql from {source}. Edit it as you like: it is not read back.\n"
    return head + yaml.safe_dump(cases, sort_keys=False, allow_unicode=True, width=110)


def _slug(question: Question) -> str:
    """A name from the first words of the question; a dot never occurs in it, so that numbered names are new ones."""
    words = re.findall(r"[a-z0-9]+", question.text.lower())[:9]
    return "-".join(words)[:80].strip("-") or f"line-{question.line}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command. 0: written; 1: nothing could be taken, nothing is written; 2: wrong arguments."""
    parser = _parser()
    args = parser.parse_args(argv)
    out: Path = args.out
    if out.exists() and not args.force:
        parser.error(f"{out} exists; --force overwrites it")
    if not out.parent.is_dir():
        parser.error(f"--out: there is no folder {out.parent}")
    try:
        questions = [item for item in read_questions(args.file) if args.only in (None, item.database)]
    except CsvError as error:
        parser.error(str(error))
    if not questions:
        parser.error(f"{args.file}: no question is of the database {args.only!r}")
    read = _reader(parser, args)
    sifted = list(sift(questions, read, max_rows=args.max_rows))
    for left in sifted:
        if isinstance(left, LeftOut):
            print(f"line {left.question.line}: left out, {left.reason}: {left.question.text[:70]}", file=sys.stderr)  # noqa: T201 (a command's output)
    taken = [item for item in sifted if isinstance(item, Taken)]
    if not taken:
        print(f"none of {len(questions)} questions could be taken; {out} is not written", file=sys.stderr)  # noqa: T201 (as above)
        return 1
    text = to_yaml(taken, source=args.file.name)
    try:
        parse_dataset(text.encode(), name=out.stem, source=str(out))
    except DatasetError as error:
        parser.error(f"the questions make no valid dataset: {error}")
    _write(out, text)
    print(f"{len(taken)} of {len(questions)} questions written to {out}")  # noqa: T201 (as above)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gm_chat.evals.from_sql", description=__doc__.split("\n\n")[1])
    parser.add_argument("file", type=Path, metavar="FILE.csv", help="columns: question, sql; also database, category")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.yaml", help="the dataset to write")
    parser.add_argument("--settings", metavar="MODULE", help="Django settings, before DJANGO_SETTINGS_MODULE")
    parser.add_argument("--database", default="default", metavar="ALIAS", help="where the SQL is run (default)")
    parser.add_argument("--only", metavar="NAME", help="take the questions of this database only, by their column")
    parser.add_argument("--max-rows", type=int, default=MAX_ROWS, metavar="N", help=f"leave out longer ({MAX_ROWS})")
    parser.add_argument("--force", action="store_true", help="overwrite the dataset if it exists")
    return parser


def _reader(parser: argparse.ArgumentParser, args: argparse.Namespace) -> Callable[[str], Rows]:
    """Start Django, and return what runs a statement on the chosen database."""
    if args.settings:
        os.environ["DJANGO_SETTINGS_MODULE"] = args.settings
    elif not os.environ.get("DJANGO_SETTINGS_MODULE"):
        parser.error("which project? Give --settings MODULE or set DJANGO_SETTINGS_MODULE")
    # Imported here: --help and wrong arguments need no Django.
    import django
    from django.apps import apps
    from django.db import connections

    if not apps.ready:
        django.setup()
    if args.database not in connections:
        parser.error(f"--database: there is no {args.database!r}; known: {', '.join(connections)}")
    from gm_chat.evals.reading import read_rows

    return lambda sql: read_rows(sql, args.database)


def _write(out: Path, text: str) -> None:
    """Write the whole file or none of it."""
    handle, temporary = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}.")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).replace(out)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


if __name__ == "__main__":
    sys.exit(main())
