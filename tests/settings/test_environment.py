"""Settings from environment variables."""

from typing import Any

import pytest

from gm_chat.settings import ChatConfigurationError, ChatSettings, build_settings
from gm_chat.settings.environment import read_environment, unknown_variables
from gm_chat.settings.sources import Source


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> Any:
    def build(base: dict[str, Any] | None = None, **variables: str) -> ChatSettings:
        for name, value in variables.items():
            monkeypatch.setenv(f"GM_CHAT_{name}", value)
        return build_settings([Source("GM_CHAT", base or {}), read_environment()])

    return build


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("ENABLED", "true", "enabled", True),
        ("ENABLED", "1", "enabled", True),
        ("ENABLED", "off", "enabled", False),
        ("URL", "assistant", "url", "/assistant/"),
        ("PROVIDER", "openai", "provider", "openai"),
        ("PROVIDER_CONFIG", '{"model": "m"}', "provider_config", {"model": "m"}),
        ("PERMISSION", "project.may_chat", "permission", "project.may_chat"),
        ("ALLOWED_MUTATIONS", '["createPart"]', "allowed_mutations", ("createPart",)),
        ("ALLOWED_MUTATIONS", "createPart, updatePart", "allowed_mutations", ("createPart", "updatePart")),
        ("ALLOWED_ORIGINS", "https://a.example", "allowed_origins", ("https://a.example",)),
        ("DISABLED_PLUGINS", "weather", "disabled_plugins", ("weather",)),
        ("ENABLED_PLUGINS", "a,b", "enabled_plugins", ("a", "b")),
        ("ENABLED_PLUGINS", "null", "enabled_plugins", None),
        ("MAX_RESULTS", "50", "max_results", 50),
        ("QUERY_TIMEOUT_SECONDS", "2.5", "query_timeout_seconds", 2.5),
        ("QUERY_TIMEOUT_SECONDS", "null", "query_timeout_seconds", None),
        ("CONFIRM_TIMEOUT_SECONDS", "60", "confirm_timeout_seconds", 60.0),
        ("MAX_RETRIES_PER_MESSAGE", "0", "max_retries_per_message", 0),
        ("MAX_TOTAL_ROUNDS_PER_MESSAGE", "5", "max_total_rounds_per_message", 5),
        ("TOOL_STRATEGY", "direct", "tool_strategy", "direct"),
        ("DISABLED_TOOLS", "aggregate,mutate", "disabled_tools", ("aggregate", "mutate")),
        ("SYSTEM_PROMPT", "42", "system_prompt", "42"),
        ("MAX_RESULTS", "", "max_results", 200),
    ],
)
def test_a_variable_sets_a_setting(build: Any, variable: str, text: str, name: str, value: object) -> None:
    assert build(**{variable: text})[name] == value


def test_double_underscores_reach_inside(build: Any) -> None:
    settings = build(
        {"rate_limit": {"tokens": 9}, "provider_config": {"model": "m", "timeout_seconds": 5}},
        RATE_LIMIT__REQUESTS="7",
        RATE_LIMIT__INPUT_TOKENS="null",
        AUDIT__REDACT_FIELDS="a,b",
        AUDIT__ENABLED="yes",
        PROVIDER_CONFIG__TIMEOUT_SECONDS="30",
        PROVIDER_CONFIG__OPTIONS__TEMPERATURE="0.5",
        PROVIDER_PROFILES__FAST__PROVIDER="local",
        PROVIDER_PROFILES__FAST__TRUST_GROUP="us",
        PROVIDER_PROFILES__FAST__PROVIDER_CONFIG__MODEL="small",
        PLANNED__ROLES__PLANNER="fast",
        PLANNED__MAX_CONCURRENT_TASKS="2",
        PLUGINS__WEATHER__CITY="Oslo",
    )
    assert (settings.rate_limit.requests, settings.rate_limit.tokens) == (7, 9)
    assert settings.audit.redact_fields == ("a", "b")
    assert settings.audit.enabled is True
    assert settings.provider_config == {"model": "m", "timeout_seconds": 30, "options": {"temperature": 0.5}}
    profile = settings.provider_profiles["fast"]
    assert profile == {"provider": "local", "trust_group": "us", "provider_config": {"model": "small"}}
    assert settings.planned.roles == {"planner": "fast"}
    assert settings.planned.max_concurrent_tasks == 2
    assert settings.plugins["weather"]["city"] == "Oslo"


def test_without_variables_nothing_is_read(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GM_CHAT_REQUIRE", "shared")
    assert read_environment().values == {}


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("PROVIDER_CONFIG", '{"api_key": "sk-42"', "GM_CHAT_PROVIDER_CONFIG: the value is not valid JSON."),
        ("PROVIDER_CONFIG", "sk-42", "GM_CHAT_PROVIDER_CONFIG: the value is not valid JSON."),
        ("ALLOWED_MUTATIONS", '["sk-42', "GM_CHAT_ALLOWED_MUTATIONS: the value is not valid JSON."),
        ("AUDIT__REDACT_FIELDS", '["sk-42', "GM_CHAT_AUDIT__REDACT_FIELDS: the value is not valid JSON."),
        ("PLANNED", "{sk-42", "GM_CHAT_PLANNED: the value is not valid JSON."),
        ("ENABLED", "sk-42", "GM_CHAT_ENABLED: must be a valid boolean, got a str"),
        ("MAX_RESULTS", "sk-42", "GM_CHAT_MAX_RESULTS: must be a valid integer, got a str"),
        ("RATE_LIMIT__REQUESTS", "sk-42", "GM_CHAT_RATE_LIMIT__REQUESTS: must be a valid integer, got a str"),
        ("RATE_LIMIT", '{"requests": "sk-42"}', 'GM_CHAT_RATE_LIMIT["requests"]: must be a valid integer, got a str'),
        (
            "PROVIDER_CONFIG",
            '{"a":' * 5_000 + "1" + "}" * 5_000,
            "GM_CHAT_PROVIDER_CONFIG: a value is nested too deeply.",
        ),
        (
            "PROVIDER_PROFILES",
            '{"a": {"provider": "x", "trust_group": "t", "providr_config": 1}}',
            'GM_CHAT_PROVIDER_PROFILES["a"]["providr_config"] is not a chat setting. Did you mean \'provider_config\'?',
        ),
        ("RATE_LIMIT__REQESTS", "42", "GM_CHAT_RATE_LIMIT__REQESTS is not a chat setting. Did you mean 'requests'?"),
    ],
)
def test_an_error_names_the_variable_and_not_its_value(build: Any, variable: str, text: str, message: str) -> None:
    with pytest.raises(ChatConfigurationError) as caught:
        build(**{variable: text})
    assert str(caught.value) == message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_variables_that_set_nothing_are_named_with_the_nearest() -> None:
    names = [
        "GM_CHAT_PROVDER",
        "gm_chat_enabled",
        "GM_CHAT_RATE_LIMIT__REQESTS",
        "GM_CHAT_URL__X",
        "GM_CHAT_PROVIDER_PROFILES__FAST__TRUSTGROUP",
        "GM_CHAT_PROVIDER_CONFIG__ANY__THING",
        "GM_CHAT_PLUGINS__WEATHER__CITY",
        "GM_CHAT_PLANNED__ROLES__PLANNER",
        "GM_CHAT_SHARED",
        "GM_CHAT_REQUIRE",
        "GM_CHATTY",
        "PATH",
    ]
    assert [(name, unknown.hint) for name, unknown in unknown_variables(names)] == [
        ("GM_CHAT_PROVDER", "Did you mean 'provider'?"),
        ("GM_CHAT_PROVIDER_PROFILES__FAST__TRUSTGROUP", "Did you mean 'trust_group'?"),
        ("GM_CHAT_RATE_LIMIT__REQESTS", "Did you mean 'requests'?"),
        ("GM_CHAT_URL__X", "'url' is a single value."),
    ]
