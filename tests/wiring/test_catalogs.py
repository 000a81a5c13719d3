"""The setting's catalog and the plugins' become one."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from testproject.catalogs import shop

from gm_chat.defaults import core_plugins
from gm_chat.managers import registry
from gm_chat.plugin import Actor, CatalogSpec, hookimpl
from gm_chat.settings import ChatConfigurationError, build_settings
from gm_chat.settings.sources import Source
from gm_chat.testing.hosts import make_host
from gm_chat.wiring.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PART, MATERIAL = shop()["PartManager"], shop()["MaterialManager"]


class Words:
    """A plugin with one catalog."""

    def __init__(self, name: str, load: Callable[[], Any]) -> None:
        self.spec = CatalogSpec(name=name, load=load)

    @hookimpl
    def gm_chat_catalogs(self) -> list[CatalogSpec]:
        return [self.spec]


def runtime(setting: Any = None, **plugins: Callable[[], Any]) -> Runtime:
    settings = build_settings([Source("GM_CHAT", {"planned": {"catalog": setting}})])
    words = {name: Words(f"{name}-words", load) for name, load in plugins.items()}
    return Runtime(settings, make_host(core=core_plugins(settings), strict=False, **words))


def aliases(built: Runtime) -> Mapping[str, tuple[str, ...]]:
    return {name: entry.aliases for name, entry in built.catalogs.catalog.entries.items()}


def test_without_catalogs_there_are_no_words() -> None:
    built = runtime()
    assert dict(built.catalogs.catalog.entries) == {}
    assert built.catalogs.problems == ()
    assert built.index.managers["TagManager"] is registry.bindings()["TagManager"].info


@pytest.mark.parametrize("setting", [shop(), shop, "testproject.catalogs.shop"])
def test_the_setting_is_a_mapping_a_callable_or_its_path(setting: Any) -> None:
    built = runtime(setting)
    assert aliases(built)["MaterialManager"] == ("alloy", "substance")
    part = built.index.managers["PartManager"]
    assert part.use_when == PART["use_when"]
    assert part.distinguish_from == ("MaterialManager",)


def test_the_setting_wins_manager_by_manager(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gm_chat.wiring.catalogs")
    built = runtime({"PartManager": PART}, acme=lambda: {"PartManager": {**PART, "aliases": ["x"]}, **material("ore")})
    assert aliases(built) == {"PartManager": ("component", "spare part"), "MaterialManager": ("ore",)}
    assert built.catalogs.problems == ()  # it was meant; the log says what it is
    assert "its catalog 'acme-words' is not heard about PartManager: the setting's is." in caplog.text


def material(*names: str) -> dict[str, Any]:
    return {"MaterialManager": {**MATERIAL, "aliases": list(names)}}


def test_between_plugins_the_first_is_heard_and_the_other_is_named() -> None:
    built = runtime(acme=lambda: material("ore"), zeta=lambda: {**material("stuff"), "PartManager": PART})
    assert aliases(built) == {"MaterialManager": ("ore",), "PartManager": ("component", "spare part")}
    [problem] = built.catalogs.problems
    assert (problem.plugin, problem.severity, problem.hook) == ("zeta", "warning", "gm_chat_catalogs")
    assert problem.message == (
        "its catalog 'zeta-words' is not heard about MaterialManager: 'acme-words' of plugin 'acme' comes first. "
        "An entry in planned['catalog'] decides."
    )


def test_a_plugin_may_speak_of_managers_that_are_not_there() -> None:
    """Hidden ones too: that it is not exposed is all that anybody learns."""
    others = {f"Ghost{number:02}Manager": PART for number in range(20)}
    built = runtime(
        acme=lambda: {**others, "PaymentManager": PART, "PartManager": {**PART, "distinguish_from": ["Ghost"]}}
    )
    assert list(built.catalogs.catalog.entries) == ["PartManager"]
    assert built.index.managers["PartManager"].distinguish_from == ()
    [problem] = built.catalogs.problems
    assert problem.message.startswith(
        "its catalog 'acme-words' speaks of managers that are not exposed: Ghost00Manager, "
    )
    assert problem.message.endswith(" and 11 more.")


def exits() -> Any:
    raise SystemExit(1)


class Odd(dict[str, Any]):
    """A mapping whose entries cannot be looked at."""

    def __contains__(self, key: object) -> bool:
        raise RuntimeError("no entry")


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (exits, "is not used: it raised SystemExit: 1."),
        (lambda: ["PartManager"], "is not used: it gave a list; it must give a mapping of manager names to entries."),
        (lambda: {3: PART}, "is not used: its key 3 is no manager's name."),
        (lambda: {"PartManager": {}}, "has an entry that is not used: 'PartManager' lacks 'domain', 'aliases', "),
        (lambda: {"PartManager": {**PART, "aliases": "x"}}, "'PartManager': 'aliases' must be a list of texts"),
        (lambda: {"PartManager": Odd(PART)}, "has an entry that is not used: RuntimeError: no entry."),
    ],
)
def test_what_is_wrong_with_a_plugin_s_catalog_costs_its_words_alone(load: Callable[[], Any], message: str) -> None:
    def loading() -> Any:
        entries = load()
        return {**material("ore"), **entries} if isinstance(entries, dict) else entries

    built = runtime(acme=loading, zeta=lambda: {"TagManager": {**PART, "aliases": ["label"]}})
    assert [problem.plugin for problem in built.catalogs.problems] == ["acme"]
    assert message in built.catalogs.problems[0].message
    assert aliases(built)["TagManager"] == ("label",)
    assert ("MaterialManager" in aliases(built)) == ("has an entry" in built.catalogs.problems[0].message)
    assert "PartManager" not in aliases(built)


def test_a_mistake_in_the_setting_is_raised_each_time() -> None:
    failing = True

    def load() -> Any:
        if failing:
            raise ConnectionError("try again")
        return {"PartManager": PART}

    built = runtime(load)
    for _ in range(2):
        with pytest.raises(
            ChatConfigurationError, match=r"planned\['catalog'\]: it raised ConnectionError: try again\."
        ):
            built.index  # noqa: B018  # asking for it is the test
    failing = False
    assert list(built.catalogs.catalog.entries) == ["PartManager"]


def test_an_unknown_manager_in_the_setting_is_a_mistake() -> None:
    for name in ("PratManager", "PaymentManager"):
        with pytest.raises(ChatConfigurationError, match=f"'{name}' is no exposed manager"):
            runtime({name: PART}).catalogs  # noqa: B018  # as above


@pytest.mark.django_db(transaction=True)
async def test_a_catalog_may_be_read_from_the_database_by_a_server() -> None:
    """The index is built by whoever needs it first, and that may be an event loop."""

    def load() -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 'component'")
            return {"PartManager": {**PART, "aliases": list(cursor.fetchone())}}

    boss = await get_user_model().objects.acreate(username="boss", is_superuser=True)
    actor = Actor(user_id=str(boss.pk), user=boss)
    for built in (runtime(load), runtime(acme=load)):
        view = await built.managers.view(actor)
        assert view.catalog.entries["PartManager"].use_when == PART["use_when"]
        assert next(iter(view.search("components"))).name == "PartManager"
