from __future__ import annotations

import io

from gm_chat.evals.progress import Progress
from gm_chat.evals.record import Observed, Outcome


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def outcome(error: str = "") -> Outcome:
    return Outcome(observed=Observed(dataset="d", case="open-orders", error=error))


def shown(out: io.StringIO) -> str:
    with Progress(4, out) as progress:
        progress.advance(outcome())
        progress.advance(outcome("chat_error"))
    return out.getvalue()


def test_a_terminal_shows_how_far_it_is_and_is_left_clean() -> None:
    lines = shown(Terminal()).split("\r\x1b[K")
    assert lines[1].startswith("[........................] 0/4  0 pass, 0 fail, 0 error")
    assert lines[-2].startswith("[############............] 2/4  1 pass, 0 fail, 1 error")
    assert lines[-2].endswith("open-orders")
    assert lines[-1] == ""


def test_a_file_gets_nothing() -> None:
    assert shown(io.StringIO()) == ""
