"""What ``manage.py check`` reports of catalogs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError
from django.test import override_settings
from testproject.catalogs import shop
from testproject.checking import CHAT

from gm_chat import checks
from gm_chat.managers import registry
from gm_chat.plugin import CatalogSpec, hookimpl

if TYPE_CHECKING:
    from collections.abc import Callable

Run = Any
PART = {**shop()["PartManager"], "distinguish_from": []}


def no_table() -> Any:
    raise OperationalError("no such table: words")


def fails() -> Any:
    raise ValueError("two\nlines")


class Words:
    def __init__(self, load: Callable[[], Any]) -> None:
        self.load = load

    @hookimpl
    def gm_chat_catalogs(self) -> list[CatalogSpec]:
        return [CatalogSpec(name="acme", load=self.load)]


def of_setting(catalog: Any) -> dict[str, Any]:
    """The findings over the test project's own managers with this catalog, by id."""
    with registry.using(*_declared()), override_settings(GM_CHAT={**CHAT, "planned": {"catalog": catalog}}):
        return {str(item.id).removeprefix("gm_chat."): item for item in checks.check_chat()}


def _declared() -> Any:
    from testproject.shop import chat_managers

    return [chat_managers.PartManager, chat_managers.MaterialManager]


@pytest.mark.parametrize("catalog", [None, {"PartManager": PART}, shop, "testproject.catalogs.shop"])
def test_a_good_catalog_is_no_finding(catalog: Any) -> None:
    assert {"E002", "W010", "W018"}.isdisjoint(of_setting(catalog))


@pytest.mark.parametrize(
    ("catalog", "message"),
    [
        ({"PratManager": PART}, "Did you mean 'PartManager'?"),
        ({"PartManager": {**PART, "use_when": ""}}, "'PartManager': 'use_when' must say something"),
        (fails, "it raised ValueError: two lines."),
        ("testproject.catalogs.nothing", "'testproject.catalogs.nothing', which cannot be imported"),
    ],
)
def test_a_mistake_in_the_setting_is_an_error_beside_the_others(catalog: Any, message: str) -> None:
    found = of_setting(catalog)
    assert message in found["E002"].msg
    assert found["E002"].is_serious()
    assert "Catalogs: words for managers" in found["E002"].hint
    assert "E001" not in found


def test_a_catalog_in_a_table_that_is_not_there_yet_does_not_keep_migrate_from_making_it() -> None:
    found = of_setting(no_table)
    assert "no such table: words" in found["W018"].msg
    assert not found["W018"].is_serious()
    assert "E002" not in found


def test_a_mistake_of_a_plugin_is_a_warning(run: Run) -> None:
    assert "W010" not in run(words=Words(lambda: {"PartManager": PART}))
    found = run(words=Words(lambda: {"PartManager": PART, "GhostManager": PART}))["W010"]
    assert found.msg == (
        "plugin 'words' (test-words 0), gm_chat_catalogs: its catalog 'acme' speaks of managers that are not exposed: "
        "GhostManager."
    )
    assert not found.is_serious()


def test_broken_sources_are_told_once(run: Run) -> None:
    assert list(run(managers=ValueError("broken"), words=Words(lambda: {"PartManager": PART}))) == ["E001"]
