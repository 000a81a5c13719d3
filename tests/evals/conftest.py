from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from testproject.exam import PUPIL
from testproject.pupil import Pupil

from gm_chat.evals.command import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def evals(django_db_setup: None, django_db_blocker: Any) -> Iterator[Callable[..., int]]:
    """The command in this process, over the toy."""

    def run(*line: str, fixture: str | None = "toy", provider: str | None = PUPIL) -> int:
        chosen = [*(["--fixture", fixture] if fixture else []), *(["--provider", provider] if provider else [])]
        return main([*chosen, *line])

    Pupil.asked.clear()
    with django_db_blocker.unblock():
        yield run
