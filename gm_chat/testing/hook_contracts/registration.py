"""Ready tests for the hooks that hand something out while the host is built."""

# ruff: noqa: S101 (these are tests, which pytest runs from here)

from __future__ import annotations

import asyncio
import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from gm_chat.planned.catalog import CatalogError, ManagerCatalogEntry
from gm_chat.plugin import (
    Action,
    Actor,
    AuditSink,
    Decision,
    Verdict,
)
from gm_chat.testing.hook_contracts.base import HookContract

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "AuditSinksContract",
    "CatalogsContract",
    "EvalDatasetsContract",
    "ManagerSourcesContract",
    "PermissionChecksContract",
    "ProvidersContract",
    "StreamProtocolsContract",
    "SystemChecksContract",
    "ToolsContract",
    "UrlsContract",
]


class ProvidersContract(HookContract):
    """``gm_chat_providers``. The streams themselves: :class:`gm_chat.testing.ProviderContract`."""

    hooks = ("gm_chat_providers",)
    config: ClassVar[Mapping[str, Any]] = {}

    def test_it_offers_providers_that_can_be_built(self) -> None:
        """``build`` takes a configuration and gives something with ``complete``."""
        providers = self.host().providers
        assert providers
        for spec in providers.values():
            assert callable(getattr(spec.build(self.config), "complete", None)), spec.name


class ToolsContract(HookContract):
    """``gm_chat_tools``."""

    hooks = ("gm_chat_tools",)

    def test_a_model_can_read_its_tools(self) -> None:
        """Each has a description and a JSON Schema of a closed object."""
        tools = self.host().tools
        assert tools
        for tool in tools:
            assert tool.definition.description.strip()
            schema = json.loads(json.dumps(tool.definition.input_schema))
            assert schema["type"] == "object"
            assert schema.get("additionalProperties") is False, f"{tool.definition.name}: close the object"
            assert set(schema.get("required", ())) <= set(schema.get("properties", {}))


class ManagerSourcesContract(HookContract):
    """``gm_chat_manager_sources``."""

    hooks = ("gm_chat_manager_sources",)

    def test_its_descriptions_are_stable_and_consistent(self) -> None:
        """Equal at each call, names unique, and every actor's visibility stays within them."""
        for source in self.host().manager_sources:
            managers = list(source.describe())
            assert managers == list(source.describe())
            by_name = {manager.name: manager for manager in managers}
            assert len(by_name) == len(managers)
            for actor in (self.actor, Actor()):
                seen = asyncio.run(source.visibility(actor))
                assert seen == asyncio.run(source.visibility(actor))
                for name, visible in seen.managers.items():
                    assert visible.fields <= {field.name for field in by_name[name].fields}
                    assert visible.relations <= {relation.name for relation in by_name[name].relations}
                    assert visible.mutations <= {mutation.name for mutation in by_name[name].mutations}


class CatalogsContract(HookContract):
    """``gm_chat_catalogs``."""

    hooks = ("gm_chat_catalogs",)

    def test_its_catalogs_load(self) -> None:
        """Each maps names of managers to entries with all that an entry needs."""
        catalogs = self.host().catalogs
        assert catalogs
        for catalog in catalogs:
            entries: Mapping[Any, Any] = catalog.load()
            assert all(isinstance(name, str) for name in entries)
            assert [fault for name, entry in entries.items() if (fault := _fault_of(name, entry))] == []


def _fault_of(name: str, entry: object) -> str | None:
    try:
        ManagerCatalogEntry.parse(name, entry)
    except CatalogError as error:
        return str(error)
    return None


class PermissionChecksContract(HookContract):
    """``gm_chat_permission_checks``."""

    hooks = ("gm_chat_permission_checks",)
    denied: ClassVar[Sequence[tuple[Action, Actor]]] = ()
    """What it must deny."""

    def decide(self, action: Action, actor: Actor) -> Decision:
        """The host's decision with this plugin's checks alone."""
        return asyncio.run(self.host().permit(action, actor, {"scope": {}, "args": {}}))

    def test_it_judges_every_kind_of_action(self) -> None:
        """No kind of action and no actor makes a check raise, which would be a denial by accident."""
        for check in self.host().permission_checks:
            for kind in ("connect", "message", "tool", "mutation", "confirm"):
                for actor in (self.actor, Actor(), Actor(session_key="s")):
                    answer = asyncio.run(check.check(Action(kind, "x"), actor, {"scope": {}, "args": {}}))
                    assert isinstance(answer, Decision)

    def test_it_denies_what_it_says_it_denies(self) -> None:
        """Every pair in :attr:`denied`."""
        for action, actor in self.denied:
            assert self.decide(action, actor).verdict is Verdict.DENY, (action, actor)


class AuditSinksContract(HookContract):
    """``gm_chat_audit_sinks``."""

    hooks = ("gm_chat_audit_sinks",)
    events: ClassVar[Sequence[Mapping[str, Any]]] = (
        {"event_type": "user_message", "turn_id": "t", "content": "Grüße \u2028 \U0001f600\n"},
        {"event_type": "tool_result", "turn_id": "t", "tool_name": "query", "result": {"data": [None, 1.5, True]}},
    )

    def run(self, sink: AuditSink, events: Sequence[Mapping[str, Any]]) -> None:
        """Start, emit, close: the whole life of a sink."""

        async def live() -> None:
            await sink.start()
            for event in events:
                await sink.emit(event)
            await sink.aclose()

        asyncio.run(live())

    def test_it_takes_events_and_can_start_again(self) -> None:
        """Twice the whole life, each on an event loop of its own; the events are left as they were."""
        sinks = self.host().audit_sinks
        assert sinks
        for sink in sinks:
            events = copy.deepcopy(list(self.events))
            self.run(sink, events)
            self.run(sink, events)
            assert events == list(self.events)


class StreamProtocolsContract(HookContract):
    """``gm_chat_stream_protocols``."""

    hooks = ("gm_chat_stream_protocols",)
    events: ClassVar[Sequence[Mapping[str, Any]]] = (
        {"type": "tool_call", "turn_id": "t", "seq": 1, "id": "c", "name": "query", "args": {}},
        {"type": "tool_result", "turn_id": "t", "seq": 2, "id": "c", "name": "query", "result": {"data": []}},
        {"type": "text_chunk", "turn_id": "t", "seq": 3, "content": "None."},
        {"type": "confirm_mutation", "turn_id": "t", "seq": 4, "id": "c", "mutation": "createPart", "input": {}},
        {"type": "error", "turn_id": "t", "seq": 5, "code": "chat_error", "message": "It failed."},
        {"type": "done", "turn_id": "t", "seq": 6, "usage": {"input_tokens": 1, "output_tokens": 1}},
        {"type": "from_a_later_version", "turn_id": "t", "seq": 7},
    )

    def test_it_encodes_every_event(self) -> None:
        """Also one that it does not know; what it gives is JSON."""
        protocols = self.host().stream_protocols
        assert protocols
        for protocol in protocols.values():
            assert "/" in protocol.media_type
            for event in self.events:
                for encoded in protocol.encode(event):
                    json.dumps(dict(encoded))


class EvalDatasetsContract(HookContract):
    """``gm_chat_eval_datasets``."""

    hooks = ("gm_chat_eval_datasets",)

    def test_its_files_exist(self) -> None:
        """Each path is a YAML file."""
        paths = self.host().eval_datasets
        assert paths
        for path in paths:
            assert Path(path).is_file(), path
            assert path.endswith((".yaml", ".yml"))


class UrlsContract(HookContract):
    """``gm_chat_urls``."""

    hooks = ("gm_chat_urls",)

    def test_its_patterns_are_django_s(self) -> None:
        """Each can be resolved."""
        patterns = self.host().urls[self.name]
        assert patterns
        assert all(hasattr(pattern, "resolve") for pattern in patterns)


class SystemChecksContract(HookContract):
    """``gm_chat_system_checks``."""

    hooks = ("gm_chat_system_checks",)

    def test_its_findings_have_ids_of_their_own(self) -> None:
        """An id is ``<something>.<letter><number>`` and none of gm-chat's."""
        for finding in self.host().system_checks():
            owner, _, code = finding.id.rpartition(".")
            assert owner, finding
            assert owner != "gm_chat", finding
            assert code[:1] in "DIWEC", finding
