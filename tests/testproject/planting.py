"""A module of a test's own making, under the name ``planted``."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def plant(monkeypatch: pytest.MonkeyPatch, **content: object) -> None:
    """Make ``planted`` a module with this content."""
    module = ModuleType("planted")
    module.__dict__.update(content)
    monkeypatch.setitem(sys.modules, "planted", module)
