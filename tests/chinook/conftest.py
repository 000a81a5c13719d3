"""The Chinook database, read-only, under an alias of its own for as long as these tests run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connections
from testproject.chinook.router import ALIAS

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED = Path(os.environ.get("GM_CHAT_SHARED") or Path(__file__).resolve().parents[2].parent / "shared")
FILE = SHARED / "data" / "chinook" / "chinook.sqlite"


@pytest.fixture(scope="session", autouse=True)
def chinook(django_db_setup: None, django_db_blocker: Any) -> Iterator[str]:
    """Add the alias once Django has made its own test databases: it must not "create" this one."""
    if not FILE.exists():
        if "shared" in os.environ.get("GM_CHAT_REQUIRE", "").split(","):
            pytest.fail(f"GM_CHAT_REQUIRE names shared, but there is no {FILE}")
        pytest.skip(f"there is no {FILE}; set GM_CHAT_SHARED")
    default = connections.databases["default"]
    connections.databases[ALIAS] = {
        **default,
        "NAME": f"file:{FILE}?mode=ro&immutable=1",
        "OPTIONS": {"uri": True},
        "TEST": {**default["TEST"], "NAME": None},
    }
    yield ALIAS
    with django_db_blocker.unblock():
        connections[ALIAS].close()
    del connections[ALIAS]
    del connections.databases[ALIAS]
