"""Profiles and roles of planned turns, and the providers that come of them."""

import dataclasses
from typing import Any

import pytest
from django.test import override_settings
from testproject.checking import Strict

from gm_chat import doors
from gm_chat.planned.config import (
    REQUIRED_ROLES,
    PlannedChatSettings,
    ProviderProfile,
    build_profile_provider,
    get_planned_chat_settings,
    planned_chat_settings,
    profile_for_role,
    validate_profile_provider,
)
from gm_chat.settings import ChatConfigurationError, build_settings, get_chat_settings
from gm_chat.settings.sources import Source

HERE = "testproject.checking"
LEGACY: dict[str, Any] = {"provider": f"{HERE}.Strict", "provider_config": {"model": "legacy", "api_key": "sk-legacy"}}
PROFILES: dict[str, dict[str, Any]] = {
    "fast": {"provider": f"{HERE}.Strict", "provider_config": {"model": "small"}, "trust_group": "local"},
    "empty": {"provider": f"{HERE}.Strict", "trust_group": "local"},
    "foreign": {"provider": f"{HERE}.Strict", "trust_group": "elsewhere"},
}
ROLES = {**dict.fromkeys(REQUIRED_ROLES, "empty"), "simple_executor": "fast"}


def planned(**chat: Any) -> PlannedChatSettings:
    return planned_chat_settings(build_settings([Source("GM_CHAT", {**LEGACY, **chat})]))


def test_the_roles_are_the_specification_s() -> None:
    assert REQUIRED_ROLES == ("planner", "simple_executor", "complex_executor", "synthesizer", "fallback_executor")


class TestSettings:
    @pytest.mark.parametrize("chat", [{}, {"provider_profiles": PROFILES}, {"planned": {"enabled": True}}])
    def test_the_chat_s_own_provider_plays_every_role_unless_profiles_are_in_use(self, chat: dict[str, Any]) -> None:
        settings = planned(**chat)
        assert settings.enabled is bool(chat.get("planned"))
        assert dict(settings.roles) == dict.fromkeys(REQUIRED_ROLES, "default")
        assert dict(settings.profiles) == {
            "default": ProviderProfile("default", LEGACY["provider"], LEGACY["provider_config"], "default")
        }
        assert settings.profiles["default"].configured is False

    def test_the_defaults(self) -> None:
        settings = planned()
        assert settings.max_concurrent_tasks == 3
        assert (settings.evidence_timeout_seconds, settings.synthesis_timeout_seconds) == (90.0, 30.0)
        assert settings.catalog_source is None

    def test_named_profiles_inherit_nothing(self) -> None:
        settings = planned(
            provider_profiles=PROFILES,
            planned={
                "enabled": True,
                "roles": ROLES,
                "catalog": {"PartManager": {}},
                "max_concurrent_tasks": 1,
                "evidence_timeout_seconds": 5,
                "synthesis_timeout_seconds": 0.5,
            },
        )
        assert set(settings.profiles) == set(PROFILES)
        assert profile_for_role(settings, "simple_executor").provider_config == {"model": "small"}
        planner = profile_for_role(settings, "planner")
        assert (planner.provider_config, planner.configured, planner.trust_group) == ({}, True, "local")
        assert settings.catalog_source == {"PartManager": {}}
        assert settings.max_concurrent_tasks == 1
        assert (settings.evidence_timeout_seconds, settings.synthesis_timeout_seconds) == (5.0, 0.5)

    @pytest.mark.parametrize(
        ("chat", "words"),
        [
            ({"provider_profiles": PROFILES, "planned": {"enabled": True}}, "gives no profile to 'planner'"),
            (
                {"provider_profiles": PROFILES, "planned": {"enabled": True, "roles": {**ROLES, "planner": "fest"}}},
                "the role 'planner' uses the profile 'fest'",
            ),
            (
                {"provider_profiles": PROFILES, "planned": {"enabled": True, "roles": {**ROLES, "planner": "foreign"}}},
                "must share one trust_group",
            ),
            ({"planned": {"enabled": True, "max_concurrent_tasks": 0}}, "max_concurrent_tasks"),
            ({"provider_profiles": {"a": {"provider": "x.Y"}}}, "trust_group"),
        ],
    )
    def test_mistakes_name_their_key(self, chat: dict[str, Any], words: str) -> None:
        with pytest.raises(ChatConfigurationError, match=words):
            planned(**chat)

    @pytest.mark.parametrize("role", ["plannr", "", None])
    def test_there_are_no_other_roles(self, role: Any) -> None:
        with pytest.raises(ChatConfigurationError, match="there is no role"):
            profile_for_role(planned(), role)

    def test_a_role_made_by_hand_needs_its_profile(self) -> None:
        with pytest.raises(ChatConfigurationError, match="the role 'planner' uses the profile 'x'"):
            profile_for_role(dataclasses.replace(planned(), roles={"planner": "x"}), "planner")

    def test_they_are_immutable_and_show_no_secret(self) -> None:
        settings = planned()
        with pytest.raises(dataclasses.FrozenInstanceError):
            settings.enabled = True  # type: ignore[misc]  # that it is frozen is the point
        for mapping in (settings.profiles, settings.roles, settings.profiles["default"].provider_config):
            with pytest.raises(TypeError):
                mapping["x"] = 1  # type: ignore[index]  # that it is read-only is the point
        assert "sk-legacy" not in repr(settings)


class TestProviders:
    @pytest.fixture(autouse=True)
    def chat(self) -> Any:
        with override_settings(
            GM_CHAT={
                **LEGACY,
                "provider_profiles": PROFILES,
                "planned": {"enabled": True, "roles": ROLES},
            }
        ):
            yield

    def test_the_settings_of_the_process_are_read(self) -> None:
        assert get_planned_chat_settings() == planned_chat_settings(get_chat_settings())
        assert get_planned_chat_settings().enabled

    @pytest.mark.parametrize("name", PROFILES)
    def test_a_named_profile_is_built_from_its_own_configuration(self, name: str) -> None:
        provider = build_profile_provider(get_planned_chat_settings().profiles[name])
        assert isinstance(provider, Strict)
        assert provider.provider_config == PROFILES[name].get("provider_config", {})

    def test_the_implicit_one_is_built_as_the_chat_builds_its_own(self) -> None:
        provider = build_profile_provider(planned(provider_profiles={}).profiles["default"])
        assert isinstance(provider, Strict)
        assert provider.provider_config == LEGACY["provider_config"]

    def test_the_configuration_is_a_plain_copy(self) -> None:
        profile = ProviderProfile("a", f"{HERE}.Strict", {"options": {"stop": ["."]}}, "local", configured=True)
        provider = build_profile_provider(profile)
        assert isinstance(provider, Strict)
        provider.provider_config["options"]["stop"].append("!")
        assert profile.provider_config == {"options": {"stop": ["."]}}

    def test_validation_runs_the_provider_s_own_check(self) -> None:
        Strict.checked.clear()
        assert isinstance(validate_profile_provider(get_planned_chat_settings().profiles["fast"]), Strict)
        assert Strict.checked == [{"model": "small"}]

    @pytest.mark.parametrize(
        ("path", "config"),
        [
            (f"{HERE}.Strict", {"model": 5}),
            (f"{HERE}.Bare", {}),
            (f"{HERE}.Nobody", {}),
            ("nobody", {}),
        ],
    )
    def test_a_profile_that_cannot_work_is_named(self, path: str, config: dict[str, Any]) -> None:
        profile = ProviderProfile("odd", path, config, "local", configured=True)
        with pytest.raises(ChatConfigurationError, match=r"provider_profiles\['odd'\] cannot be used"):
            validate_profile_provider(profile)

    def test_a_missing_package_stays_an_import_error(self) -> None:
        with pytest.raises(ImportError):
            validate_profile_provider(
                ProviderProfile("odd", f"{HERE}.Strict", {"model": "missing"}, "local", configured=True)
            )


def test_without_the_app_the_doors_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "_source", None)
    with pytest.raises(LookupError, match="INSTALLED_APPS"):
        get_planned_chat_settings()
