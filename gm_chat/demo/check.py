"""``gm-chat demo --check``: the demo asks itself ten questions over its own server and judges the answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.table import Table

from gm_chat.demo.client import Client, Reply
from gm_chat.demo.judge import problem_with
from gm_chat.demo.questions import QUESTIONS, Question
from gm_chat.demo.serve import in_background

if TYPE_CHECKING:
    import socket

    from rich.console import Console

    from gm_chat.demo.choice import Choice

__all__ = ["run_check"]


def run_check(listener: socket.socket, choice: Choice, console: Console) -> int:
    """Ask everything, print a table, and return 0 if every answer is right, else 1."""
    table = Table("user", "over", "question", "tools", "answer", "s", "ok", title=f"provider {choice.provider}")
    wrong = 0
    with in_background(listener) as url, console.status("") as status:
        visitors: dict[str | None, Client] = {None: Client(url)}
        for question in QUESTIONS:
            if question.user is not None and question.user not in visitors:
                visitors[question.user] = Client(url)
                visitors[question.user].log_in(question.user)
            status.update(question.text)
            started = time.monotonic()
            reply, problem = _ask(visitors[question.user], question)
            seconds = time.monotonic() - started
            wrong += problem is not None
            table.add_row(
                question.user or "(nobody)",
                question.way,
                question.text,
                _counted(reply.tools),
                _first_line(reply.answer),
                f"{seconds:.2f}",
                "yes" if problem is None else f"NO: {problem}",
            )
    console.print(table, soft_wrap=False)
    console.print(f"{len(QUESTIONS) - wrong} of {len(QUESTIONS)} answers are right.")
    if not choice.has_model:
        console.print("No language model took part: the provider is offline.")
    return 1 if wrong else 0


def _ask(visitor: Client, question: Question) -> tuple[Reply, str | None]:
    try:
        reply = visitor.ask(question.text, question.way)
    except (OSError, ValueError) as error:  # no connection, a timeout, a status that is not 200, no JSON
        return Reply(()), f"{type(error).__name__}: {error}"
    if reply.error is not None:
        return reply, f"error {reply.error}"
    if not reply.events or reply.events[-1]["type"] != "done":
        return reply, "the events do not end in done"
    return reply, problem_with(reply.answer, reply.tools, question.expected())


def _counted(tools: list[str]) -> str:
    """``search_managers, query x3``."""
    counts = {name: tools.count(name) for name in tools}
    return ", ".join(name if count == 1 else f"{name} x{count}" for name, count in counts.items())


def _first_line(answer: str) -> str:
    line = answer.strip().split("\n")[0]
    return line if len(line) <= 120 else f"{line[:117]}..."
