"""What each setting accepts, and what the validated value is like."""

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from gm_chat.providers.base import SecretMapping
from gm_chat.settings import REQUIRED_ROLES, ChatConfigurationError, ChatSettings, build_settings, canonical_path, plain
from gm_chat.settings.sources import Source

PROFILES = {
    "fast": {"provider": "local", "provider_config": {"model": "small"}, "trust_group": "local"},
    "strong": {"provider": "local", "provider_config": {"model": "large"}, "trust_group": "local"},
    "cloud": {"provider": "openai", "trust_group": "vendor"},
}


def build(**values: Any) -> ChatSettings:
    return build_settings([Source("GM_CHAT", values)])


def refusal(**values: Any) -> str:
    with pytest.raises(ChatConfigurationError) as caught:
        build(**values)
    return str(caught.value)


def test_the_defaults_are_the_specification_s() -> None:
    assert plain(build()) == {
        "enabled": False,
        "url": "/chat/",
        "provider": "gm_chat.providers.OllamaProvider",
        "provider_config": {},
        "provider_profiles": {},
        "fallback_profile": None,
        "planned": {
            "enabled": False,
            "mode": "always",
            "catalog": None,
            "roles": {},
            "max_concurrent_tasks": 3,
            "evidence_timeout_seconds": 90,
            "synthesis_timeout_seconds": 30,
        },
        "permission": None,
        "allowed_origins": None,
        "allowed_mutations": [],
        "confirm_mutations": [],
        "taint_mutations": False,
        "confirm_timeout_seconds": 30,
        "claim_lease_seconds": 60,
        "max_results": 200,
        "query_timeout_seconds": None,
        "turn_timeout_seconds": None,
        "resume_grace_seconds": 10,
        "max_message_characters": 32_000,
        "max_retries_per_message": 3,
        "max_mutations_per_message": 8,
        "max_total_rounds_per_message": None,
        "tool_strategy": "discovery",
        "disabled_tools": [],
        "recover_missing_tool_calls": False,
        "system_prompt": "",
        "max_recent_messages": 20,
        "summarize_after": 10,
        "ttl_hours": 24,
        "rate_limit": {
            "requests": 60,
            "window_seconds": 3600,
            "tokens": None,
            "input_tokens": None,
            "output_tokens": None,
            "address_requests": None,
            "output_reservation": 1024,
            "trusted_proxies": [],
            "store": "cache",
            "cache": "default",
            "on_failure": "deny",
        },
        "prices": {},
        "audit": {
            "enabled": False,
            "level": "off",
            "logger": None,
            "required": [],
            "max_result_size": 4096,
            "redact_fields": ["password", "secret", "token", "key", "credential"],
        },
        "plugins": {},
        "disabled_plugins": [],
        "enabled_plugins": None,
    }


def test_a_setting_is_read_by_attribute_and_by_key() -> None:
    settings = build(rate_limit={"requests": 5}, max_results=7)
    assert isinstance(settings, Mapping)
    assert settings.rate_limit.requests == settings["rate_limit"]["requests"] == 5
    assert settings.get("max_results") == 7
    assert settings.get("maximum") is None
    assert "url" in settings
    assert "urls" not in settings
    assert list(settings) == list(ChatSettings.model_fields)
    assert len(settings) == len(ChatSettings.model_fields)
    assert dict(settings)["url"] == "/chat/"
    with pytest.raises(KeyError):
        settings["model_fields"]


def test_sections_equal_plain_mappings_of_their_values() -> None:
    settings = build(audit={"redact_fields": ["a"]}, provider_config={"stop": ["x"], "options": {"n": 1}})
    audit = {
        "enabled": False,
        "level": "off",
        "logger": None,
        "required": [],
        "max_result_size": 4096,
        "redact_fields": ["a"],
    }
    assert settings.audit == audit
    assert settings.audit != {**audit, "level": "all"}
    assert settings.audit != 5
    assert hash(settings.audit) == hash(build(audit={"redact_fields": ("a",)}).audit)
    assert settings == build(audit={"redact_fields": ("a",)}, provider_config={"stop": ["x"], "options": {"n": 1}})


def test_nothing_can_be_changed_at_any_depth() -> None:
    given = {"options": {"tags": ["a"]}, "set": {1}}
    settings: Any = build(provider_config=given, provider_profiles=PROFILES, allowed_mutations=["a"])
    given["options"]["tags"].append("b")  # type: ignore[index]  # the test's own dict
    assert settings.provider_config["options"]["tags"] == ("a",)
    assert settings.provider_config["set"] == frozenset({1})
    changes: tuple[Callable[[], object], ...] = (
        lambda: setattr(settings, "url", "/x/"),
        lambda: setattr(settings.rate_limit, "requests", 1),
        lambda: setattr(settings.provider_profiles["fast"], "provider", "x"),
    )
    for change in changes:
        with pytest.raises(ValidationError):
            change()
    changes = (
        lambda: settings.__setitem__("url", 1),
        lambda: settings.provider_config.__setitem__("a", 1),
        lambda: settings.provider_config["options"].__setitem__("a", 1),
        lambda: settings.provider_profiles.__setitem__("a", 1),
        lambda: settings.planned.roles.__setitem__("a", 1),
        lambda: settings.plugins.__setitem__("a", 1),
        lambda: settings.allowed_mutations.append("b"),
    )
    for change in changes:
        with pytest.raises(AttributeError):
            change()
    assert copy.deepcopy(settings) == settings


def test_plain_gives_fresh_containers_that_json_takes() -> None:
    settings = build(provider_config={"options": {"tags": ["a"]}})
    config = plain(settings.provider_config)
    assert json.loads(json.dumps(config)) == {"options": {"tags": ["a"]}}
    config["options"]["tags"].append("b")
    assert plain(settings.provider_config) == {"options": {"tags": ["a"]}}


def test_no_repr_shows_a_secret() -> None:
    secret = "sk-7f3a"
    settings = build(
        provider_config={"api_key": secret, "client": {"clientSecret": secret, "headers": {"Authorization": secret}}},
        provider_profiles={"a": {"provider": "x", "trust_group": "t", "provider_config": {"api_key": secret}}},
        plugins={"weather": {"token": secret, "city": "Oslo", "dsn": f"https://me:{secret}@x", "retries": 3}},
    )
    assert secret not in repr(settings)
    assert secret not in repr(SecretMapping({"nested": {"dsn": secret}}))
    assert "'retries': 3" in repr(settings)
    assert secret not in str(settings)
    assert "'city': <str>" in repr(settings)
    assert settings.provider_config["client"]["clientSecret"] == secret
    assert isinstance(settings.provider_config, SecretMapping)


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("/chat/", "/chat/"),
        ("chat", "/chat/"),
        ("//assistant//", "/assistant/"),
        ("a/b", "/a/b/"),
        ("", "/"),
        ("/", "/"),
        ("/gespräch", "/gespräch/"),
    ],
)
def test_url_is_normalised(given: str, normal: str) -> None:
    assert build(url=given).url == normal


@pytest.mark.parametrize("given", ["https://host/chat", "/chat?x=1", "/<int:x>/", "/a b/", "/a#b", "\\chat", "/a\n"])
def test_a_url_that_is_no_plain_path_is_refused(given: str) -> None:
    assert refusal(url=given).startswith('GM_CHAT["url"]: must be a plain path such as "/chat/"')


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_results", 0),
        ("max_results", "200"),
        ("max_results", True),
        ("max_results", 1.5),
        ("max_results", None),
        ("max_message_characters", 0),
        ("confirm_timeout_seconds", 0),
        ("confirm_timeout_seconds", True),
        ("confirm_timeout_seconds", float("inf")),
        ("query_timeout_seconds", 0),
        ("query_timeout_seconds", -1),
        ("query_timeout_seconds", float("nan")),
        ("query_timeout_seconds", "5"),
        ("turn_timeout_seconds", 0),
        ("max_recent_messages", 0),
        ("summarize_after", 0),
        ("ttl_hours", -1),
        ("enabled", "false"),
        ("enabled", 1),
        ("recover_missing_tool_calls", None),
        ("tool_strategy", "discover"),
        ("system_prompt", None),
        ("provider", ""),
        ("provider", object),
        ("allowed_mutations", "createPart"),
        ("allowed_mutations", ["createPart", 3]),
        ("allowed_mutations", [""]),
        ("allowed_origins", "https://example.org"),
        ("provider_config", "key"),
        ("provider_config", None),
        ("provider_config", {1: 2}),
        ("plugins", {"weather": 5}),
        ("plugins", []),
        ("rate_limit", None),
        ("rate_limit", {"requests": True}),
        ("rate_limit", {"requests": "60"}),
        ("rate_limit", {"window_seconds": 0}),
        ("audit", {"level": "most"}),
        ("audit", {"logger": 5}),
        ("audit", {"logger": "print"}),
        ("audit", {"max_result_size": 0}),
        ("planned", {"max_concurrent_tasks": 0}),
        ("planned", {"evidence_timeout_seconds": 0}),
        ("planned", {"synthesis_timeout_seconds": float("nan")}),
        ("planned", {"catalog": 5}),
        ("planned", {"roles": {"planner": 5}}),
        ("provider_profiles", {"fast": {"provider": "x"}}),
        ("provider_profiles", {"fast": {"trust_group": "x"}}),
        ("provider_profiles", {"fast": 5}),
        ("provider_profiles", ["fast"]),
    ],
)
def test_a_wrong_value_is_refused_at_its_place(name: str, value: Any) -> None:
    assert refusal(**{name: value}).startswith(f'GM_CHAT["{name}"]')


@pytest.mark.parametrize(
    "values",
    [
        {"query_timeout_seconds": 0.5},
        {"query_timeout_seconds": None},
        {"rate_limit": {"requests": None, "tokens": 0, "input_tokens": -1}},
        {"allowed_mutations": ("b", "a")},
        {"allowed_mutations": {"b", "a"}},
        {"enabled_plugins": []},
        {"audit": {"logger": print}},
        {"planned": {"catalog": {"PartManager": {"aliases": ["part"]}}}},
        {"planned": {"catalog": print}},
        {"planned": {"catalog": "project.catalog"}},
    ],
)
def test_right_values_are_taken(values: dict[str, Any]) -> None:
    build(**values)


def test_a_set_of_names_gets_an_order() -> None:
    assert build(allowed_mutations={"b", "a"}).allowed_mutations == ("a", "b")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("max_total_rounds_per_message", 0, "a positive integer or None"),
        ("max_total_rounds_per_message", True, "a positive integer or None"),
        ("max_total_rounds_per_message", "5", "a positive integer or None"),
        ("max_retries_per_message", -1, "an integer, 0 or more"),
        ("max_retries_per_message", None, "an integer, 0 or more"),
        ("max_mutations_per_message", False, "an integer, 0 or more"),
        ("max_mutations_per_message", 1.0, "an integer, 0 or more"),
    ],
)
def test_turn_limits_say_what_they_expect(name: str, value: object, expected: str) -> None:
    assert str(ChatConfigurationError.invalid_turn_limit(name, expected)) in refusal(**{name: value})


def test_turn_limits_may_be_at_their_bounds() -> None:
    settings = build(max_total_rounds_per_message=1, max_retries_per_message=0, max_mutations_per_message=0)
    assert settings.max_total_rounds_per_message == 1
    assert build(max_total_rounds_per_message=None).max_total_rounds_per_message is None


def test_only_allowed_mutations_can_need_a_confirmation() -> None:
    assert build(allowed_mutations=["a", "b"], confirm_mutations=["b"]).confirm_mutations == ("b",)
    expected = ChatConfigurationError.invalid_confirm_mutations("c, d")
    assert refusal(allowed_mutations=["a"], confirm_mutations=["d", "a", "c"]) == str(expected)


def test_the_fallback_is_one_of_the_profiles() -> None:
    assert build(provider_profiles=PROFILES, fallback_profile="cloud").fallback_profile == "cloud"
    message = refusal(provider_profiles=PROFILES, fallback_profile="clout")
    assert message == str(ChatConfigurationError.unknown_fallback_profile("Did you mean 'cloud'?"))
    assert "There is none." in refusal(fallback_profile="cloud")
    assert refusal(fallback_profile="").startswith('GM_CHAT["fallback_profile"]')


def test_permission_is_a_callable_or_its_path() -> None:
    assert build(permission=print).permission is print
    assert build(permission="general_manager.chat.may").permission == "gm_chat.may"
    for wrong in (5, "may_chat", ""):
        assert str(ChatConfigurationError.invalid_permission()) in refusal(permission=wrong)


def test_dotted_paths_of_the_reference_system_are_read_as_ours() -> None:
    old = "general_manager.chat.providers.OpenAIProvider"
    new = "gm_chat.providers.OpenAIProvider"
    settings = build(
        provider=old,
        provider_profiles={"a": {"provider": old, "trust_group": "t"}},
        audit={"logger": "general_manager.chat.log"},
        planned={"catalog": "general_manager.chat.catalog"},
    )
    assert settings.provider == settings.provider_profiles["a"].provider == new
    assert settings.audit.logger == "gm_chat.log"
    assert settings.planned.catalog == "gm_chat.catalog"
    for other in ("general_manager.chatter.X", "project.general_manager.chat.X", "ollama"):
        assert canonical_path(other) == other


class TestPlanned:
    ROLES = dict.fromkeys(REQUIRED_ROLES, "strong")

    def test_the_chat_s_own_provider_serves_every_role_by_default(self) -> None:
        assert build(planned={"enabled": True}).planned.roles == {}
        assert build(planned={"enabled": True, "roles": {"planner": "default"}}).planned.roles["planner"] == "default"

    def test_profiles_need_a_role_each(self) -> None:
        settings = build(provider_profiles=PROFILES, planned={"enabled": True, "roles": self.ROLES})
        assert settings.planned.roles["synthesizer"] == "strong"
        assert settings.provider_profiles["strong"].provider_config == {"model": "large"}
        assert settings.provider_profiles["cloud"].provider_config == {}

    @pytest.mark.parametrize(
        ("profiles", "roles", "detail"),
        [
            (PROFILES, {}, "gives no profile to 'planner'"),
            (PROFILES, {k: v for k, v in ROLES.items() if k != "synthesizer"}, "gives no profile to 'synthesizer'"),
            (PROFILES, {**ROLES, "planner": "strng"}, "Did you mean 'strong'?"),
            ({}, {"planner": "fast"}, "which provider_profiles does not define"),
            (PROFILES, {**ROLES, "planner": "cloud"}, "must share one trust_group, not 'local', 'vendor'"),
        ],
    )
    def test_roles_and_profiles_must_fit(self, profiles: Any, roles: Any, detail: str) -> None:
        message = refusal(provider_profiles=profiles, planned={"enabled": True, "roles": roles})
        assert message.startswith("The chat settings for planned turns are invalid: ")
        assert detail in message
        build(provider_profiles=profiles, planned={"enabled": False, "roles": roles})

    def test_profiles_of_another_trust_group_may_exist_unused(self) -> None:
        roles = {**self.ROLES, "simple_executor": "fast"}
        assert build(provider_profiles=PROFILES, planned={"enabled": True, "roles": roles}).planned.enabled

    def test_an_unknown_role_is_refused_with_the_nearest(self) -> None:
        assert "there is no role 'plannr'. Did you mean 'planner'?" in refusal(planned={"roles": {"plannr": "a"}})


def test_planned_errors_come_from_the_class_method() -> None:
    assert "why" in str(ChatConfigurationError.invalid_planned_settings("why"))
    assert isinstance(ChatConfigurationError.missing_graphql_schema(), ValueError)
    assert "createPart" in str(ChatConfigurationError.unknown_allowed_mutations("createPart"))
