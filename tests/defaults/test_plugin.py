import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest

from gm_chat.defaults import CORE_PLUGIN, core_plugins
from gm_chat.defaults.cache_store import CacheRateLimitStore
from gm_chat.defaults.login_check import LoginCheck
from gm_chat.host import PluginHost
from gm_chat.host.stores import GuardedStore
from gm_chat.planned.catalog import CatalogError
from gm_chat.plugin import Action, Actor, Verdict
from gm_chat.settings import ChatSettings, build_settings
from gm_chat.settings.sources import Source

EVENTS: list[Mapping[str, Any]] = []
CATALOG = {"PartManager": {"aliases": ["component"]}}


def remember(event: Mapping[str, Any]) -> None:
    EVENTS.append(event)


def make_catalog() -> Any:
    return CATALOG


def settings(**given: Any) -> ChatSettings:
    return build_settings([Source("GM_CHAT", given)])


def host(**given: Any) -> PluginHost:
    return PluginHost.build(core=core_plugins(settings(**given)), entry_points=[])


def test_what_the_core_brings() -> None:
    core = host()
    assert core.problems == ()
    assert [record.name for record in core.plugins] == [CORE_PLUGIN]
    assert [tool.definition.name for tool in core.tools] == [
        "search_managers",
        "get_manager_schema",
        "find_path",
        "query",
        "mutate",
        "aggregate",
    ]
    assert isinstance(core.permission_checks[0], LoginCheck)
    store = core.rate_limit_stores["cache"].build()
    assert isinstance(store, GuardedStore)
    assert isinstance(store.store, CacheRateLimitStore)
    assert [source.name for source in core.manager_sources] == ["django"]
    assert core.audit_sinks == ()
    assert core.catalogs == ()


@pytest.mark.parametrize("logger", [remember, "acme_audit.remember"])
async def test_the_logger_setting_becomes_a_sink(logger: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("acme_audit")
    module.remember = remember  # type: ignore[attr-defined]  # a module made by hand
    monkeypatch.setitem(sys.modules, "acme_audit", module)
    [sink] = host(audit={"logger": logger}).audit_sinks
    assert (sink.name, sink.required) == ("logger", False)
    EVENTS.clear()
    await sink.start()
    await sink.emit({"event_type": "user_message"})
    await sink.aclose()
    assert EVENTS == [{"event_type": "user_message"}]


def test_a_logger_that_does_not_exist_is_a_problem() -> None:
    [problem] = host(audit={"logger": "nowhere.to_be_found"}).problems
    assert (problem.plugin, problem.hook, problem.severity) == (CORE_PLUGIN, "gm_chat_audit_sinks", "error")
    assert "audit.logger" in problem.message


@pytest.mark.parametrize("catalog", [CATALOG, make_catalog])
def test_the_catalog_setting_becomes_a_catalog(catalog: Any) -> None:
    [spec] = host(planned={"catalog": catalog}).catalogs
    assert spec.name == "settings"
    assert {name: list(entry["aliases"]) for name, entry in spec.load().items()} == {"PartManager": ["component"]}


def test_a_catalog_that_is_no_mapping_says_so() -> None:
    [spec] = host(planned={"catalog": lambda: ["PartManager"]}).catalogs
    with pytest.raises(CatalogError, match="it gave a list; it must give a mapping"):
        spec.load()


@pytest.mark.parametrize(
    ("kind", "actor", "verdict"),
    [
        ("mutation", Actor(), Verdict.DENY),
        ("mutation", Actor(session_key="s"), Verdict.DENY),
        ("mutation", Actor(user_id="1"), Verdict.ALLOW),
        ("tool", Actor(), Verdict.ALLOW),
        ("message", Actor(), Verdict.ALLOW),
    ],
)
async def test_changes_need_a_login(kind: Any, actor: Actor, verdict: Verdict) -> None:
    decision = await host().permit(Action(kind, "createPart"), actor, {})
    assert decision.verdict is verdict
    if verdict is Verdict.DENY:
        assert decision.reason == "createPart needs a logged-in user"
