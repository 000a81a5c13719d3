"""graphene-django as its tutorial has it, without an optimizer: statements for each row."""

from __future__ import annotations

from typing import Any

from querybench.pages.graphene import ask, plain

__all__ = ["page", "plain"]


def page() -> Any:
    return ask("plainAlbums")
