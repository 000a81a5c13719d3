"""Ready tests for the hooks that fire in each turn."""

# ruff: noqa: S101 (these are tests, which pytest runs from here)

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from gm_chat.plugin import (
    ToolDefinition,
    ToolSpec,
    TurnOutcome,
)
from gm_chat.testing.hook_contracts.base import HookContract

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["FilterToolsContract", "SelectProviderContract", "SystemPromptContract", "TurnObserverContract"]


class SelectProviderContract(HookContract):
    """``gm_chat_select_provider``."""

    hooks = ("gm_chat_select_provider",)
    candidates: ClassVar[tuple[str, ...]] = ("default", "large")

    def test_it_chooses_a_candidate_or_nobody(self) -> None:
        """From several, from one that it cannot have planned for, and twice alike."""
        host = self.host()
        for candidates in (self.candidates, ("some-other",)):
            choice = host.select_provider(self.context(), candidates)
            assert choice is None or choice in candidates
            assert choice == host.select_provider(self.context(), candidates)


class FilterToolsContract(HookContract):
    """``gm_chat_filter_tools``."""

    hooks = ("gm_chat_filter_tools",)
    tools: ClassVar[tuple[str, ...]] = ("search_managers", "get_manager_schema", "find_path", "query", "mutate")

    def test_it_only_removes(self) -> None:
        """From the core's tools, and from none."""

        async def never_run(args: Mapping[str, Any], context: Any) -> None:
            raise AssertionError((args, context))

        definitions = [ToolDefinition(name, name, {"type": "object"}) for name in self.tools]
        specs = [ToolSpec(definition=definition, run=never_run) for definition in definitions]
        assert {tool.definition.name for tool in self.host().filter_tools(self.context(), specs)} <= set(self.tools)
        assert self.host().filter_tools(self.context(), []) == []


class SystemPromptContract(HookContract):
    """``gm_chat_system_prompt``."""

    hooks = ("gm_chat_system_prompt",)

    def test_its_section_is_text(self) -> None:
        """Or there is none; equal for equal turns, so that providers can cache the prompt."""
        sections = self.host().prompt_sections(self.context())
        assert all(section.strip() for section in sections)
        assert sections == self.host().prompt_sections(self.context())


class TurnObserverContract(HookContract):
    """``gm_chat_turn_started``, ``gm_chat_turn_paused`` and ``gm_chat_turn_finished``."""

    hooks = ()
    outcomes: ClassVar[Sequence[TurnOutcome]] = (
        TurnOutcome("done", input_tokens=10, output_tokens=2),
        TurnOutcome("failed", code="chat_error"),
        TurnOutcome("cancelled"),
    )

    def test_it_observes_every_kind_of_turn(self, caplog: Any) -> None:
        """Without raising, which would only be logged."""
        host = self.host()
        for outcome in self.outcomes:
            host.turn_started(self.context())
            host.turn_paused(self.context(), TurnOutcome("paused"))
            host.turn_finished(self.context(), outcome)
        assert [record.getMessage() for record in caplog.records if record.name.startswith("gm_chat.host")] == []
