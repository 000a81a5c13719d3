"""Functions without arguments find the Runtime of the moment."""

from typing import Any

import pytest
from django.test import override_settings

from gm_chat.audit import emit_planned_audit_event
from gm_chat.doors import current_runtime
from gm_chat.settings import ChatConfigurationError, get_chat_settings
from gm_chat.wiring import get_runtime


def test_the_doors_lead_to_the_runtime() -> None:
    with override_settings(GM_CHAT={"max_results": 7}):
        assert current_runtime().settings is get_chat_settings()
        assert current_runtime().settings.max_results == 7
        assert current_runtime().audit is get_runtime().audit
        assert current_runtime().provider_spec("testproject.checking.Bare").name == "testproject.checking.Bare"
        with pytest.raises(ChatConfigurationError):
            current_runtime().provider_spec("testproject.checking.Nobody")


def test_planned_diagnostics_reach_the_logger_of_the_settings() -> None:
    events: list[Any] = []
    chat = {"audit": {"enabled": True, "level": "all", "logger": events.append}}
    with override_settings(GM_CHAT=chat):
        emit_planned_audit_event("usage", {"role": "planner", "input_tokens": 3, "profile": "secret"})
        get_runtime().audit.close()
    assert events == [{"event_type": "planned_usage", "role": "planner", "input_tokens": 3}]
