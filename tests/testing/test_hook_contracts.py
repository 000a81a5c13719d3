"""The ready tests, run on plugins that are right; and proof that each fails on one that is wrong."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.urls import path
from testproject.catalogs import shop

from gm_chat.host.validation import SPECS
from gm_chat.managers.api import FieldInfo, ManagerInfo, ManagerVisibility, Visibility
from gm_chat.plugin import (
    Action,
    Actor,
    CatalogSpec,
    CheckResult,
    Decision,
    PluginError,
    PromptSection,
    ProviderSpec,
    RateLimitStoreSpec,
    StreamProtocolSpec,
    ToolDefinition,
    ToolSpec,
    hookimpl,
)
from gm_chat.testing import ScriptedProvider
from gm_chat.testing import hook_contracts as contracts
from gm_chat.testing.memory_counts import MemoryRateLimitStore

ANONYMOUS = Actor()
CLOSED: Mapping[str, Any] = {"type": "object", "properties": {"city": {}}, "additionalProperties": False}


def module(**hooks: Any) -> ModuleType:
    """A plugin's module, without a file."""
    made = ModuleType("json")  # importable, and imports no SDK
    for name, value in hooks.items():
        setattr(made, name, hookimpl(value) if name.startswith("gm_chat_") else value)
    return made


class Sink:
    name, required = "sink", False

    async def start(self) -> None: ...
    async def emit(self, event: Mapping[str, Any]) -> None: ...
    async def aclose(self) -> None: ...


class Source:
    name = "source"

    def describe(self) -> list[ManagerInfo]:
        return [ManagerInfo(name="PartManager", description="", fields=(FieldInfo(name="id", type="integer"),))]

    async def visibility(self, actor: Actor) -> Visibility:
        return Visibility("all", {"PartManager": ManagerVisibility(frozenset({"id"}), frozenset(), frozenset())})

    async def execute(self, plan: Any, actor: Actor, *, deadline: float | None) -> Any: ...
    async def mutate(self, call: Any, actor: Actor, *, deadline: float | None) -> Any: ...


class NobodyAnonymous:
    async def check(self, action: Action, actor: Actor, context: Mapping[str, Any]) -> Decision:
        return Decision.abstain() if actor.is_authenticated else Decision.deny("log in")


async def run(args: Any, context: Any) -> None: ...


def tool(description: str, schema: Mapping[str, Any]) -> ToolSpec:
    return ToolSpec(definition=ToolDefinition("forecast", description, schema), run=run)


def view(request: Any) -> Any: ...


class TestProviders(contracts.ProvidersContract):
    plugin = module(gm_chat_providers=lambda: [ProviderSpec(name="acme", build=ScriptedProvider)])


class TestTools(contracts.ToolsContract):
    plugin = module(gm_chat_tools=lambda: [tool("The weather.", CLOSED)])


class TestManagerSources(contracts.ManagerSourcesContract):
    plugin = module(gm_chat_manager_sources=lambda: [Source()])


class TestCatalogs(contracts.CatalogsContract):
    plugin = module(gm_chat_catalogs=lambda: [CatalogSpec(name="c", load=shop)])


class TestPermissionChecks(contracts.PermissionChecksContract):
    plugin = module(gm_chat_permission_checks=lambda: [NobodyAnonymous()])
    denied = ((Action("message"), ANONYMOUS),)


class TestAuditSinks(contracts.AuditSinksContract):
    plugin = module(gm_chat_audit_sinks=lambda: [Sink()])


class TestRateLimitStores(contracts.RateLimitStoresContract):
    windows = "fixed"
    plugin = module(gm_chat_rate_limit_stores=lambda: [RateLimitStoreSpec(name="s", build=MemoryRateLimitStore)])


class TestStreamProtocols(contracts.StreamProtocolsContract):
    plugin = module(
        gm_chat_stream_protocols=lambda: [
            StreamProtocolSpec(name="p", media_type="application/x", encode=lambda event: [event])
        ]
    )


class TestEvalDatasets(contracts.EvalDatasetsContract):
    @pytest.fixture(autouse=True)
    def dataset(self, tmp_path: Path) -> None:
        file = tmp_path / "cases.yaml"
        file.write_text("[]")
        type(self).plugin = module(gm_chat_eval_datasets=lambda: [str(file)])


class TestUrls(contracts.UrlsContract):
    plugin = module(gm_chat_urls=lambda: [path("export/", view)])


class TestSystemChecks(contracts.SystemChecksContract):
    plugin = module(gm_chat_system_checks=lambda: [CheckResult(id="acme.W1", level="warning", message="hot")])


class TestSelectProvider(contracts.SelectProviderContract):
    plugin = module(gm_chat_select_provider=lambda candidates: "large" if "large" in candidates else None)


class TestFilterTools(contracts.FilterToolsContract):
    plugin = module(gm_chat_filter_tools=lambda tools: [each.name for each in tools if each.name != "mutate"])


class TestSystemPrompt(contracts.SystemPromptContract):
    plugin = module(gm_chat_system_prompt=lambda: PromptSection(text="Answer in German."))


class TestTurnObserver(contracts.TurnObserverContract):
    plugin = module(
        gm_chat_turn_started=lambda context: None,
        gm_chat_turn_paused=lambda context: None,
        gm_chat_turn_finished=lambda outcome: None,
    )


def test_every_hook_has_a_contract_class() -> None:
    assert contracts.CONTRACTS.keys() == SPECS.keys()


def nothing() -> list[Any]:
    return []


def raising() -> Any:
    raise OSError("no")


def incomplete() -> list[CatalogSpec]:
    return [CatalogSpec(name="c", load=lambda: shop() | {"OrderManager": {"aliases": ["order"]}})]


class Leaky(Source):
    async def visibility(self, actor: Actor) -> Visibility:
        return Visibility("x", {"PartManager": ManagerVisibility(frozenset({"secret"}), frozenset(), frozenset())})


class Rude(Sink):
    async def emit(self, event: Mapping[str, Any]) -> None:
        event["event_type"] = "mine"  # type: ignore[index]  # wrong on purpose


class Racy(MemoryRateLimitStore):
    async def take(self, charges: Any, *, window_seconds: int) -> Any:
        import asyncio

        before = dict(self.used)
        tally = await super().take(charges, window_seconds=window_seconds)
        self.used.update(before)
        await asyncio.sleep(0)
        return tally


Wrong = tuple[type[contracts.HookContract], str, Callable[..., Any], str]
WRONG: list[Wrong] = [
    (contracts.ToolsContract, "gm_chat_tool", nothing, "test_it_keeps_the_contract"),
    (
        contracts.ProvidersContract,
        "gm_chat_providers",
        lambda: [ProviderSpec(name="x", build=lambda config: object())],
        "test_it_offers_providers_that_can_be_built",
    ),
    (contracts.ToolsContract, "gm_chat_tools", lambda: [tool("", CLOSED)], "test_a_model_can_read_its_tools"),
    (
        contracts.ToolsContract,
        "gm_chat_tools",
        lambda: [tool("x", {"type": "object"})],
        "test_a_model_can_read_its_tools",
    ),
    (
        contracts.ManagerSourcesContract,
        "gm_chat_manager_sources",
        lambda: [Leaky()],
        "test_its_descriptions_are_stable_and_consistent",
    ),
    (contracts.CatalogsContract, "gm_chat_catalogs", incomplete, "test_its_catalogs_load"),
    (
        contracts.PermissionChecksContract,
        "gm_chat_permission_checks",
        lambda: [NobodyAnonymous()],
        "test_it_denies_what_it_says_it_denies",
    ),
    (contracts.AuditSinksContract, "gm_chat_audit_sinks", lambda: [Rude()], "test_it_takes_events_and_can_start_again"),
    (
        contracts.RateLimitStoresContract,
        "gm_chat_rate_limit_stores",
        lambda: [RateLimitStoreSpec(name="s", build=Racy)],
        "test_it_grants_no_more_when_all_come_at_once",
    ),
    (
        contracts.StreamProtocolsContract,
        "gm_chat_stream_protocols",
        lambda: [StreamProtocolSpec(name="p", media_type="json", encode=lambda event: [event])],
        "test_it_encodes_every_event",
    ),
    (contracts.EvalDatasetsContract, "gm_chat_eval_datasets", lambda: ["nowhere.yaml"], "test_its_files_exist"),
    (contracts.UrlsContract, "gm_chat_urls", lambda: ["export/"], "test_its_patterns_are_django_s"),
    (
        contracts.SystemChecksContract,
        "gm_chat_system_checks",
        lambda: [CheckResult(id="gm_chat.W1", level="info", message="x")],
        "test_its_findings_have_ids_of_their_own",
    ),
    (
        contracts.SelectProviderContract,
        "gm_chat_select_provider",
        lambda: "large",
        "test_it_chooses_a_candidate_or_nobody",
    ),
    (contracts.FilterToolsContract, "gm_chat_filter_tools", lambda: ["query"], "test_it_only_removes"),
    (
        contracts.SystemPromptContract,
        "gm_chat_system_prompt",
        lambda: PromptSection(text=str(time.perf_counter_ns())),
        "test_its_section_is_text",
    ),
]


@pytest.mark.parametrize(("contract", "hook", "implementation", "test"), WRONG)
def test_a_wrong_plugin_fails_its_contract(
    contract: type[contracts.HookContract], hook: str, implementation: Callable[..., Any], test: str
) -> None:
    wrong = type("Wrong", (contract,), {"plugin": module(**{hook: implementation})})()
    if contract is contracts.PermissionChecksContract:
        wrong.denied = ((Action("message"), Actor(user_id="1")),)
    with pytest.raises((AssertionError, PluginError)):
        getattr(wrong, test)()


def test_a_raising_observer_fails_its_contract(caplog: pytest.LogCaptureFixture) -> None:
    class Wrong(contracts.TurnObserverContract):
        plugin = module(gm_chat_turn_started=raising)

    with pytest.raises(AssertionError):
        Wrong().test_it_observes_every_kind_of_turn(caplog)


def test_a_plugin_that_imports_an_sdk_fails_its_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "openai.py").write_text("")
    (tmp_path / "acme_heavy.py").write_text("import openai")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    class Wrong(contracts.HookContract):
        plugin = ModuleType("acme_heavy")

    with pytest.raises(AssertionError, match="openai"):
        Wrong().test_importing_it_imports_no_sdk()
