"""strawberry-django without its optimizer: statements for each row."""

from __future__ import annotations

from typing import Any

from querybench.pages.strawberry import PLAIN, ask, plain

__all__ = ["page", "plain"]


def page() -> Any:
    return ask(PLAIN)
